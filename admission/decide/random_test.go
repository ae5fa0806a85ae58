package decide_test

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/admission/simulate"
	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes/quantity"
)

const (
	gib   = quantity.GiB
	start = int64(1_700_000_000_000_000_000)
)

// sample draws small clusters: few nodes and GPUs, so that things collide.
type sample struct {
	*rapid.T
	s snapshot.Snapshot
}

func (c *sample) among(name string, of ...int) int { return rapid.SampledFrom(of).Draw(c.T, name) }

func (c *sample) chance(name string, percent int) bool {
	return rapid.IntRange(0, 99).Draw(c.T, name) < percent
}

// randomCluster draws nodes, a tree and workloads, of which some run.
func randomCluster(t *rapid.T) snapshot.Snapshot {
	c := &sample{T: t}
	c.nodes()
	c.queues()
	n := rapid.IntRange(1, 12).Draw(t, "workloads")
	for i := range n {
		c.workload(i)
	}
	c.s.Sort()
	c.run()
	return c.s
}

func (c *sample) nodes() {
	for i := range c.among("nodes", 1, 2, 2, 3, 4) {
		n := snapshot.Node{Name: fmt.Sprintf("n%d", i), Pool: "p", Hostname: fmt.Sprintf("n%d", i), Schedulable: !c.chance("cordoned", 5)}
		for g := range c.among("gpus", 1, 2, 2, 4, 4, 8) {
			n.GPUs = append(n.GPUs, snapshot.GPU{
				UUID: fmt.Sprintf("%s-%d", n.Name, g), Usable: 80 * gib, Step: gib, Min: gib, MIG: true, Healthy: !c.chance("sick", 4),
			})
		}
		if c.chance("cpu", 30) {
			n.Free = &snapshot.Resources{MilliCPU: int64(c.among("cpus", 2, 4, 8)) * 1000, Memory: 1 << 50, Pods: 20}
		}
		c.s.Nodes = append(c.s.Nodes, n)
	}
}

func (c *sample) queues() {
	parents := []string{""}
	for i := range c.among("cohorts", 0, 1, 2, 3) {
		name := fmt.Sprintf("d%d", i)
		c.s.Queues = append(c.s.Queues, c.queue(name, rapid.SampledFrom(parents).Draw(c.T, "parent"), true, i))
		parents = append(parents, name)
	}
	for i := range c.among("leaves", 1, 2, 2, 3, 4) {
		c.s.Queues = append(c.s.Queues, c.queue(fmt.Sprintf("q%d", i), rapid.SampledFrom(parents).Draw(c.T, "parent"), false, 10+i))
	}
}

func (c *sample) queue(name, parent string, cohort bool, created int) snapshot.Queue {
	q := snapshot.Queue{
		Name: name, Parent: parent, Cohort: cohort, Created: int64(created), Limit: quantity.Unlimited,
		Deserved: quantity.MilliGPU(c.among("deserved", 0, 0, 1000, 1000, 2000, 4000, 500, 2500)),
		Weight:   int64(c.among("weight", 0, 1000, 1000, 2000, 3000)), Priority: int32(c.among("priority", 100, 100, 100, 200)),
		Strict: !cohort && c.chance("strict", 10),
	}
	if cohort {
		q.SumChildren = c.chance("sum", 50)
	} else {
		q.Pool = "p"
	}
	if c.chance("unlimited", 10) {
		q.Deserved = quantity.Unlimited
	}
	if c.chance("limit", 15) {
		q.Limit = quantity.MilliGPU(c.among("limit of", 1000, 2000, 3000))
	}
	return q
}

func (c *sample) workload(i int) {
	w := snapshot.Workload{
		Namespace: "ns", Name: fmt.Sprintf("w%02d", i), UID: fmt.Sprintf("u%02d", i), Created: start - int64(100-i)*1e9,
		Queue: c.leaf(), Priority: int32(c.among("importance", 25, 50, 50, 100)), NonPreemptible: c.chance("solid", 20),
	}
	set := snapshot.PodSet{Name: "main", Count: c.among("pods", 1, 1, 1, 2, 3), Needs: snapshot.Resources{MilliCPU: 500, Pods: 1}}
	n := c.among("count", 1, 1, 2, 2, 4)
	switch c.among("kind", 0, 0, 0, 1, 1, 2) {
	case 0:
		set.Requests = []snapshot.Request{{Kind: snapshot.Whole, Count: n}}
		set.Charge = quantity.PerGPU.Mul(int64(n))
	case 1:
		n = min(n, 2)
		part := c.among("part", 250, 500, 500, 700, 1000)
		set.Requests = []snapshot.Request{{Kind: snapshot.Share, Count: n, Bytes: quantity.Bytes(part) * 80 * gib / 1000}}
		set.Charge = quantity.MilliGPU(part).Mul(int64(n))
	default:
		p, _ := snapshot.ParseMIG(rapid.SampledFrom([]string{"1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb"}).Draw(c.T, "profile"), 80*gib)
		set.Requests = []snapshot.Request{{Kind: snapshot.MIG, Count: 1, Profile: p}}
		set.Charge = p.Milli()
	}
	if set.Count > 1 && c.chance("elastic", 40) {
		w.MinPods = 1
	}
	w.PodSets = []snapshot.PodSet{set}
	c.s.Workloads = append(c.s.Workloads, w)
}

func (c *sample) leaf() string {
	var leaves []string
	for _, q := range c.s.Queues {
		if !q.Cohort {
			leaves = append(leaves, q.Name)
		}
	}
	return rapid.SampledFrom(leaves).Draw(c.T, "queue")
}

// run lets about half of the workloads run where they fit.
func (c *sample) run() {
	room := snapshot.NewRoom(&c.s)
	for i := range c.s.Workloads {
		w := &c.s.Workloads[i]
		if !c.chance("runs", 60) {
			continue
		}
		set := &w.PodSets[0]
		least := set.Count
		if w.MinPods > 0 {
			least = w.MinPods
		}
		var pods []snapshot.Pod
		for n := range set.Count {
			pod := snapshot.Pod{Name: simulate.PodName(w.Name, n), Gated: true}
			for try := range len(c.s.Nodes) {
				node := (try + c.among("shift", 0, 1)) % len(c.s.Nodes)
				if held, ok := room.Take(node, set); ok {
					pod = snapshot.Pod{Name: pod.Name, Node: c.s.Nodes[node].Name, Bound: true, Allocated: true, Devices: held}
					break
				}
			}
			pods = append(pods, pod)
		}
		placed := 0
		for _, pod := range pods {
			if pod.Allocated {
				placed++
			}
		}
		if placed < least {
			for _, pod := range pods {
				if pod.Allocated {
					node, _ := room.Find(pod.Node)
					room.Give(node, pod.Devices, &set.Needs)
				}
			}
			continue
		}
		set.Pods, w.State, w.StartedAt = pods, snapshot.Started, start-int64(c.among("since", 0, 1, 10, 1000))*1e9
	}
	c.keep(room)
}

// keep makes what room has free the snapshot's.
func (c *sample) keep(room *snapshot.Room) {
	c.s.Nodes = slices.Clone(c.s.Nodes)
	for i := range c.s.Nodes {
		c.s.Nodes[i].GPUs = room.GPUs(i)
		if c.s.Nodes[i].Free != nil {
			free := room.Beside(i)
			c.s.Nodes[i].Free = &free
		}
	}
}

func randomPolicy(t *rapid.T) decide.Policy {
	p := decide.Defaults()
	p.FirstCome = rapid.Bool().Draw(t, "first come")
	p.Placement = decide.PlacementMode(rapid.SampledFrom([]int{0, 0, 1}).Draw(t, "spread"))
	p.Moves = rapid.SampledFrom([]int{16, 16, 0, -1, 1}).Draw(t, "moves")
	return p
}

func scenario(s snapshot.Snapshot, p decide.Policy) simulate.Scenario {
	out := simulate.Scenario{Name: "random", MaxCycles: 60, Now: start, Period: int64(10 * time.Second), Policy: p, Snapshot: s}
	for _, w := range s.Workloads {
		out.WorkloadOrder = append(out.WorkloadOrder, w.Name)
	}
	for _, q := range s.Queues {
		out.QueueOrder = append(out.QueueOrder, q.Name)
	}
	return out
}
