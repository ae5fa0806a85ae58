package decide

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
)

func gated(n int) []snapshot.Pod {
	var pods []snapshot.Pod
	for i := range n {
		pods = append(pods, snapshot.Pod{Name: fmt.Sprintf("p%d", i), Gated: true})
	}
	return pods
}

func wholeGPUs(n int) []snapshot.Request { return []snapshot.Request{{Kind: snapshot.Whole, Count: n}} }

func share(bytes quantity.Bytes) []snapshot.Request {
	return []snapshot.Request{{Kind: snapshot.Share, Count: 1, Bytes: bytes}}
}

// A started workload was promised devices. Work that started later and is more
// important must not be packed so that the promise breaks.
func TestLaterMoreImportantWorkDoesNotBreakAPromise(t *testing.T) {
	n0 := node("n0", 8)
	n0.GPUs[0].WholeUsed, n0.GPUs[1].WholeUsed = true, true
	six := started(waiting("six", 1, 1, wholeGPUs(6)), gated(1)...)
	fours := started(waiting("fours", 2, 2, wholeGPUs(4)), gated(2)...)
	fours.Priority = 10
	got := lines(Cycle(cluster([]snapshot.Node{n0, node("n1", 8)}, six, fours), Policy{}, time.Time{}))
	if want := "release six/p0 n0\nrelease fours/p0 n1\nrelease fours/p1 n1"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTheLargestPodSetOfAStartedGangIsPlacedFirst(t *testing.T) {
	gang := started(waiting("a", 1, 1, share(40*gib)), snapshot.Pod{Name: "small", Gated: true})
	gang.PodSets = append(gang.PodSets, snapshot.PodSet{Name: "big", Count: 1, Requests: wholeGPUs(7), Pods: []snapshot.Pod{{Name: "big", Gated: true}}})
	got := lines(Cycle(cluster([]snapshot.Node{node("n0", 7), node("n1", 1)}, gang), Policy{}, time.Time{}))
	if want := "release a/big n0\nrelease a/small n1"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// {40,30,30,20,20,20}Gi fill two GPUs of 80Gi exactly, largest first does not find it.
func TestNeverIsSaidOnlyWhenItIsProven(t *testing.T) {
	mixed := func(sizes ...quantity.Bytes) snapshot.Workload {
		w := waiting("a", 1, 1, share(sizes[0]*gib))
		for i, size := range sizes[1:] {
			w.PodSets = append(w.PodSets, snapshot.PodSet{Name: fmt.Sprintf("set%d", i), Count: 1, Requests: share(size * gib)})
		}
		return w
	}
	for name, tc := range map[string]struct {
		w    snapshot.Workload
		want classes.Reason
	}{
		"not found, not disproven": {mixed(40, 30, 30, 20, 20, 20), classes.ReasonWaitingForCapacity},
		"more bytes than the pool": {mixed(40, 30, 30, 20, 20, 21), classes.ReasonNeverFits},
		"one podSet too large":     {mixed(40, 81), classes.ReasonNeverFits},
	} {
		if d := Cycle(cluster([]snapshot.Node{node("n0", 2)}, tc.w), Policy{}, time.Time{})[0]; d.Kind != Hold || d.Reason != tc.want {
			t.Errorf("%s: got %+v, want %s", name, d, tc.want)
		}
	}
	sharesAndWhole := waiting("a", 1, 1, wholeGPUs(1))
	sharesAndWhole.PodSets = append(sharesAndWhole.PodSets, snapshot.PodSet{Name: "s", Count: 2, Requests: share(50 * gib)})
	if d := Cycle(cluster([]snapshot.Node{node("n0", 2)}, sharesAndWhole), Policy{}, time.Time{})[0]; d.Reason != classes.ReasonNeverFits {
		t.Errorf("whole GPUs and more bytes than the rest has: got %s", d.Reason)
	}
}

// What a cycle starts, the next cycle releases completely: with nothing else
// changed, every pod of every started workload gets a node.
func TestWhatACycleStartsTheNextOneReleases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := randomCluster(t)
		for i := range s.Workloads {
			s.Workloads[i].State, s.Workloads[i].PodSets[0].Pods = snapshot.Waiting, nil
		}
		policy := Policy{Placement: PlacementMode(rapid.IntRange(0, 1).Draw(t, "mode"))}
		begun := map[string]bool{}
		for _, d := range Cycle(s, policy, time.Time{}) {
			begun[d.Workload] = d.Kind == Start
		}
		for i := range s.Workloads {
			if w := &s.Workloads[i]; begun[w.Name] {
				*w = started(*w, gated(w.PodSets[0].Count)...)
			}
		}
		for _, d := range Cycle(s, policy, time.Time{}) {
			if begun[d.Workload] && d.Kind != Release {
				t.Fatalf("%s was started, and now %+v", d.Workload, d)
			}
		}
	})
}

// mixedCluster has waiting gangs of up to two podSets with up to two requests.
func mixedCluster(t *rapid.T) snapshot.Snapshot {
	s := randomCluster(t)
	s.Workloads = nil
	for i := range rapid.IntRange(1, 3).Draw(t, "gangs") {
		w := waiting(fmt.Sprintf("w%d", i), int64(i), rapid.IntRange(1, 2).Draw(t, "pods"), mixedRequests(t))
		if rapid.Bool().Draw(t, "second") {
			w.PodSets = append(w.PodSets, snapshot.PodSet{Name: "second", Count: rapid.IntRange(1, 2).Draw(t, "pods"), Requests: mixedRequests(t)})
		}
		s.Workloads = append(s.Workloads, w)
	}
	return s
}

func mixedRequests(t *rapid.T) []snapshot.Request {
	requests := randomRequests(t)
	if rapid.Bool().Draw(t, "another") {
		requests = append(requests, randomRequests(t)...)
	}
	if rapid.Bool().Draw(t, "apart") {
		for i := range requests {
			requests[i].Apart = 1
		}
	}
	return requests
}

func TestMixedGangsStayWithinCapacity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := mixedCluster(t)
		decisions := Cycle(s, Policy{}, time.Time{})
		replayLargestFirst(t, s, decisions)
		for _, d := range decisions {
			for i, nodes := range d.Placement {
				if want := podSetOf(s, d.Workload, i).Count; len(nodes) != want {
					t.Fatalf("%s: %d pods of podSet %d of %d", d.Workload, len(nodes), i, want)
				}
			}
		}
	})
}

func podSetOf(s snapshot.Snapshot, name string, i int) snapshot.PodSet {
	for _, w := range s.Workloads {
		if w.Name == name {
			return w.PodSets[i]
		}
	}
	return snapshot.PodSet{}
}

// replayLargestFirst carries placements out in the order the planner used.
func replayLargestFirst(t *rapid.T, s snapshot.Snapshot, decisions []Decision) {
	free := snapshot.NewFree(s)
	for _, d := range decisions {
		order := []int{0, 1}[:len(d.Placement)]
		if len(order) == 2 && larger(podSetOf(s, d.Workload, 0).Requests, podSetOf(s, d.Workload, 1).Requests) > 0 {
			order = []int{1, 0}
		}
		for _, set := range order {
			for _, name := range d.Placement[set] {
				for i := range s.Nodes {
					if s.Nodes[i].Name == name && (!s.Nodes[i].Schedulable || !free.Take(i, podSetOf(s, d.Workload, set).Requests)) {
						t.Fatalf("%s does not fit on %s", d.Workload, name)
					}
				}
			}
		}
	}
	for i := range free.Len() {
		for _, g := range free.GPUs(i) {
			if g.ShareUsed > g.Usable || g.WholeUsed && g.Shares > 0 && g.Healthy {
				t.Fatalf("over capacity: %+v", g)
			}
		}
	}
}

// NeverFits is a proof: an exhaustive search of the empty pool finds no room either.
func TestNeverFitsIsTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := mixedCluster(t)
		empty := s
		empty.Nodes = nil
		for _, n := range s.Nodes {
			n.Schedulable = true
			n.GPUs = append([]snapshot.GPU(nil), n.GPUs...)
			for g := range n.GPUs {
				n.GPUs[g] = whole(n.GPUs[g])
			}
			empty.Nodes = append(empty.Nodes, n)
		}
		for _, d := range Cycle(s, Policy{}, time.Time{}) {
			if d.Reason != classes.ReasonNeverFits {
				continue
			}
			var pods [][]snapshot.Request
			for _, w := range s.Workloads {
				for _, set := range w.PodSets {
					for range set.Count {
						if w.Name == d.Workload {
							pods = append(pods, set.Requests)
						}
					}
				}
			}
			if anyWay(empty, snapshot.NewFree(empty), pods) {
				t.Fatalf("%s fits an empty pool", d.Workload)
			}
		}
	})
}

// anyWay tries every node for every pod, in the order given.
func anyWay(s snapshot.Snapshot, free *snapshot.Free, pods [][]snapshot.Request) bool {
	if len(pods) == 0 {
		return true
	}
	for i := range s.Nodes {
		if trial := free.Fork(); trial.Take(i, pods[0]) && anyWay(s, trial, pods[1:]) {
			return true
		}
	}
	return false
}
