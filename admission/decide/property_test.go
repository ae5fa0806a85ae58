package decide

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes/quantity"
)

// randomCluster is small enough for the oracle to search it exhaustively.
func randomCluster(t *rapid.T) snapshot.Snapshot {
	var nodes []snapshot.Node
	for i := range rapid.IntRange(0, 3).Draw(t, "nodes") {
		n := node(fmt.Sprintf("n%d", i), rapid.IntRange(0, 3).Draw(t, "gpus"))
		n.Schedulable = rapid.IntRange(0, 5).Draw(t, "schedulable") > 0
		for g := range n.GPUs {
			switch rapid.IntRange(0, 5).Draw(t, "state") {
			case 0:
				n.GPUs[g].WholeUsed = true
			case 1:
				n.GPUs[g].ShareUsed, n.GPUs[g].Shares = quantity.Bytes(rapid.IntRange(1, 80).Draw(t, "used"))*gib, 1
			case 2:
				n.GPUs[g].Healthy = false
			}
		}
		nodes = append(nodes, n)
	}
	var workloads []snapshot.Workload
	for i := range rapid.IntRange(0, 6).Draw(t, "workloads") {
		w := waiting(fmt.Sprintf("w%d", i), int64(rapid.IntRange(0, 2).Draw(t, "created")), rapid.IntRange(1, 3).Draw(t, "pods"), randomRequests(t))
		w.Priority = int32(rapid.IntRange(0, 1).Draw(t, "priority"))
		if rapid.IntRange(0, 3).Draw(t, "started") == 0 {
			w = started(w, snapshot.Pod{Name: "p", Gated: true})
		}
		workloads = append(workloads, w)
	}
	return cluster(nodes, workloads...)
}

func randomRequests(t *rapid.T) []snapshot.Request {
	r := snapshot.Request{Kind: snapshot.Whole, Count: rapid.IntRange(1, 2).Draw(t, "count")}
	if rapid.Bool().Draw(t, "share") {
		r.Kind, r.Bytes = snapshot.Share, quantity.Bytes(rapid.IntRange(0, 90).Draw(t, "bytes"))*gib
	}
	return []snapshot.Request{r}
}

// replay carries out the placements of decisions on s with the plainest
// bookkeeping there is and fails on the first that does not fit.
func replay(t *rapid.T, s snapshot.Snapshot, decisions []Decision) *snapshot.Free {
	free := snapshot.NewFree(s)
	at := map[string]int{}
	for i, n := range s.Nodes {
		at[n.Name] = i
	}
	sets := map[string][]snapshot.PodSet{}
	for _, w := range s.Workloads {
		sets[w.Name] = w.PodSets
	}
	put := func(name, node string, set int) {
		i := at[node]
		if !s.Nodes[i].Schedulable || !free.Take(i, sets[name][set].Requests) {
			t.Fatalf("%s does not fit on %s", name, node)
		}
	}
	for _, d := range decisions {
		if d.Kind == Release {
			put(d.Workload, d.Node, 0)
		}
	}
	for _, d := range decisions {
		for set, nodes := range d.Placement {
			for _, n := range nodes {
				put(d.Workload, n, set)
			}
		}
	}
	return free
}

func TestNothingIsPlacedTwiceAndGangsAreWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := randomCluster(t)
		decisions := Cycle(s, Policy{Placement: PlacementMode(rapid.IntRange(0, 1).Draw(t, "mode"))}, time.Time{})
		replay(t, s, decisions)
		for _, d := range decisions {
			if d.Kind == Start && len(d.Placement[0]) != podCount(s, d.Workload) {
				t.Fatalf("%s starts with %d pods", d.Workload, len(d.Placement[0]))
			}
		}
	})
}

func podCount(s snapshot.Snapshot, name string) int {
	for _, w := range s.Workloads {
		if w.Name == name {
			return w.PodSets[0].Count
		}
	}
	return 0
}

func TestEveryWaitingWorkloadGetsOneDecisionWithAReason(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := randomCluster(t)
		count := map[string]int{}
		for _, d := range Cycle(s, Policy{}, time.Time{}) {
			if d.Kind == Hold && (d.Reason == "" || d.Numbers.Queue == "") {
				t.Fatalf("%s waits without a reason: %+v", d.Workload, d)
			}
			if d.Pod == "" {
				count[d.Workload]++
			}
		}
		for _, w := range s.Workloads {
			if w.State == snapshot.Waiting && count[w.Name] != 1 {
				t.Fatalf("%s got %d decisions", w.Name, count[w.Name])
			}
		}
	})
}

func TestInputOrderIsIrrelevant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := randomCluster(t)
		want := Cycle(s, Policy{}, time.Time{})
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		r.Shuffle(len(s.Workloads), func(i, j int) { s.Workloads[i], s.Workloads[j] = s.Workloads[j], s.Workloads[i] })
		r.Shuffle(len(s.Nodes), func(i, j int) { s.Nodes[i], s.Nodes[j] = s.Nodes[j], s.Nodes[i] })
		s.Sort()
		if got := Cycle(s, Policy{}, time.Time{}); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %v\nwant %v", got, want)
		}
	})
}

// No workload waits while an exhaustive search finds room for it in what the
// cycle leaves free and has not set aside for started work.
func TestNoWorkloadWaitsWhileItFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := randomCluster(t)
		for i := range s.Workloads {
			s.Workloads[i].State, s.Workloads[i].PodSets[0].Pods = snapshot.Waiting, nil
		}
		decisions := Cycle(s, Policy{}, time.Time{})
		left := replay(t, s, decisions)
		for _, d := range decisions {
			if d.Kind != Hold {
				continue
			}
			for _, w := range s.Workloads {
				if w.Name == d.Workload && exhaustive(s, left, w.PodSets[0].Requests, w.PodSets[0].Count) {
					t.Fatalf("%s waits (%s) but fits", w.Name, d.Reason)
				}
			}
		}
	})
}

// exhaustive is the slow oracle: it tries every node for every pod.
func exhaustive(s snapshot.Snapshot, free *snapshot.Free, requests []snapshot.Request, pods int) bool {
	if pods == 0 {
		return true
	}
	for i := range s.Nodes {
		trial := free.Fork()
		if s.Nodes[i].Schedulable && trial.Take(i, requests) && exhaustive(s, trial, requests, pods-1) {
			return true
		}
	}
	return false
}

// 1,000 nodes of 8 GPUs, nearly full, 2,000 workloads waiting.
func BenchmarkCycle(b *testing.B) {
	var nodes []snapshot.Node
	for i := range 1000 {
		n := node(fmt.Sprintf("n%04d", i), 8)
		for g := range n.GPUs {
			n.GPUs[g].WholeUsed = g < 7 || i%10 != 0
		}
		nodes = append(nodes, n)
	}
	var workloads []snapshot.Workload
	for i := range 2000 {
		workloads = append(workloads, waiting(fmt.Sprintf("w%04d", i), int64(i), 1+i%8, [][]snapshot.Request{oneGPU, half, shard, eightGPU}[i%4]))
	}
	s := cluster(nodes, workloads...)
	for b.Loop() {
		Cycle(s, Policy{}, time.Time{})
	}
}
