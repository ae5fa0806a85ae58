package decide_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/admission/simulate"
	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes/quantity"
)

// fleet builds large clusters: nodes of 8 GPUs with CPU and memory, and queues
// that each deserve their part.
type fleet struct {
	s    snapshot.Snapshot
	room *snapshot.Room
	n    int64
}

func newFleet(nodes, queues int) *fleet {
	f := &fleet{}
	for i := range nodes {
		n := snapshot.Node{
			Name: fmt.Sprintf("n%05d", i), Pool: "p", Hostname: fmt.Sprintf("n%05d", i), Schedulable: true,
			Free: &snapshot.Resources{MilliCPU: 128_000, Memory: 1 << 40, Pods: 110},
		}
		for g := range 8 {
			n.GPUs = append(n.GPUs, snapshot.GPU{UUID: fmt.Sprintf("%s-%d", n.Name, g), Usable: 80 * gib, Step: 256 * quantity.MiB, Min: 256 * quantity.MiB, Healthy: true})
		}
		f.s.Nodes = append(f.s.Nodes, n)
	}
	departments := max(queues/20, 1)
	for i := range departments {
		f.s.Queues = append(f.s.Queues, snapshot.Queue{Name: fmt.Sprintf("d%04d", i), Cohort: true, SumChildren: true, Limit: quantity.Unlimited, Weight: 1000, Priority: 100, Created: int64(i)})
	}
	for i := range queues {
		f.s.Queues = append(f.s.Queues, snapshot.Queue{
			Name: fmt.Sprintf("q%05d", i), Parent: fmt.Sprintf("d%04d", i%departments), Pool: "p",
			Deserved: quantity.MilliGPU(nodes * 8000 / queues), Limit: quantity.Unlimited, Weight: 1000, Priority: 100, Created: int64(i),
		})
	}
	f.room = snapshot.NewRoom(&f.s)
	return f
}

func (f *fleet) job(queue int, pods, gpus int) snapshot.Workload {
	f.n++
	w := snapshot.Workload{
		Namespace: "ns", Name: fmt.Sprintf("w%07d", f.n), UID: fmt.Sprintf("u%07d", f.n), Created: start - 1e12 + f.n,
		Queue: fmt.Sprintf("q%05d", queue), Priority: 50,
	}
	w.PodSets = []snapshot.PodSet{{
		Name: "main", Count: pods, Requests: []snapshot.Request{{Kind: snapshot.Whole, Count: gpus}}, Charge: quantity.PerGPU.Mul(int64(gpus)),
		Needs: snapshot.Resources{MilliCPU: 4000, Memory: 16 * gib, Pods: 1},
	}}
	return w
}

func (f *fleet) waits(queue, pods, gpus int) {
	f.s.Workloads = append(f.s.Workloads, f.job(queue, pods, gpus))
}

func (f *fleet) runs(queue, pods, gpus int) {
	w := f.job(queue, pods, gpus)
	w.State, w.StartedAt = snapshot.Started, start-3600e9
	set := &w.PodSets[0]
	for i := range pods {
		node, held, ok := f.room.Pick(snapshot.Search{Pool: "p", Set: set})
		if !ok {
			return
		}
		set.Pods = append(set.Pods, snapshot.Pod{Name: simulate.PodName(w.Name, i), Node: f.s.Nodes[node].Name, Bound: true, Allocated: true, Devices: held})
	}
	f.s.Workloads = append(f.s.Workloads, w)
}

func (f *fleet) done() snapshot.Snapshot {
	for i := range f.s.Nodes {
		free := f.room.Beside(i)
		f.s.Nodes[i].GPUs, f.s.Nodes[i].Free = f.room.GPUs(i), &free
	}
	f.s.Sort()
	return f.s
}

// mixed is a full cluster with as much waiting as running, in sizes from a
// quarter of a GPU to whole nodes, whose queues use from half to one and a half
// of what they deserve.
func mixed(nodes, queues, jobs int) snapshot.Snapshot {
	f := newFleet(nodes, queues)
	for i := range jobs {
		queue := (i * 7) % queues
		if i%3 == 0 {
			queue /= 2 // half of the queues use more
		}
		f.runs(queue, 1, 1)
	}
	for i := range jobs {
		f.waits((i*13)%queues, []int{1, 1, 1, 2}[i%4], []int{1, 1, 2, 4, 8}[i%5])
	}
	return f.done()
}

func run(b *testing.B, s snapshot.Snapshot) {
	b.Helper()
	b.ReportAllocs()
	var decisions []decide.Decision
	for b.Loop() {
		decisions = decide.Cycle(s, decide.Defaults(), time.Unix(0, start))
	}
	evictions, starts := 0, 0
	for _, d := range decisions {
		switch d.Kind {
		case decide.Evict:
			evictions++
		case decide.Start:
			starts++
		case decide.Hold, decide.Release:
		}
	}
	b.ReportMetric(float64(evictions), "evictions")
	b.ReportMetric(float64(starts), "starts")
}

func BenchmarkCycle(b *testing.B) {
	for _, size := range []struct{ nodes, queues, jobs int }{{100, 500, 800}, {1000, 1000, 8000}, {4000, 1000, 20000}} {
		b.Run(fmt.Sprintf("nodes=%d/queues=%d/running=%d", size.nodes, size.queues, size.jobs), func(b *testing.B) {
			run(b, mixed(size.nodes, size.queues, size.jobs))
		})
	}
}

// A gang of 10 pods with 8 GPUs each that nobody has to make room for, on full nodes.
func BenchmarkImpossibleGang(b *testing.B) {
	for _, nodes := range []int{10, 100, 1000, 4000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			f := newFleet(nodes, 10)
			for i := range nodes * 8 {
				f.runs(i%10, 1, 1)
			}
			f.waits(0, 10, 8)
			run(b, f.done())
		})
	}
}

func BenchmarkGangOf512(b *testing.B) {
	f := newFleet(1000, 10)
	for range 488 {
		f.runs(1, 1, 8)
	}
	f.waits(0, 512, 8)
	run(b, f.done())
}

// One gang of 250 pods with 8 GPUs takes them back from one-GPU jobs.
func BenchmarkReclaimOf250Nodes(b *testing.B) {
	f := newFleet(500, 2)
	for range 4000 {
		f.runs(1, 1, 1)
	}
	f.waits(0, 250, 8)
	run(b, f.done())
}

// A cluster at rest, where nothing can change.
func BenchmarkAtRest(b *testing.B) {
	f := newFleet(1000, 1000)
	for i := range 8000 {
		f.runs(i%1000, 1, 1)
	}
	for i := range 8000 {
		f.waits(i%1000, 1, 1+i%8)
	}
	run(b, f.done())
}
