package decide

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
)

const gib = quantity.GiB

// node is a node of pool "p" with n free GPUs of 80Gi.
func node(name string, n int) snapshot.Node {
	out := snapshot.Node{Name: name, Pool: "p", Hostname: name + ".host", Schedulable: true}
	for i := range n {
		out.GPUs = append(out.GPUs, snapshot.GPU{UUID: fmt.Sprintf("%s-%d", name, i), Usable: 80 * gib, Step: gib, Min: gib, Healthy: true})
	}
	return out
}

var (
	oneGPU   = []snapshot.Request{{Kind: snapshot.Whole, Count: 1}}
	eightGPU = []snapshot.Request{{Kind: snapshot.Whole, Count: 8}}
	half     = []snapshot.Request{{Kind: snapshot.Share, Count: 1, Bytes: 40 * gib}}
	shard    = []snapshot.Request{{Kind: snapshot.Share, Count: 8, Bytes: 40 * gib}}
)

// waiting is a waiting gang of n equal pods in queue "q"; created orders by age.
func waiting(name string, created int64, n int, requests []snapshot.Request) snapshot.Workload {
	return snapshot.Workload{
		Namespace: "ns", Name: name, UID: name, Queue: "q", Created: created,
		PodSets: []snapshot.PodSet{{Name: "main", Count: n, Requests: requests}},
	}
}

func started(w snapshot.Workload, pods ...snapshot.Pod) snapshot.Workload {
	w.State = snapshot.Started
	w.PodSets[0].Pods = pods
	return w
}

func cluster(nodes []snapshot.Node, workloads ...snapshot.Workload) snapshot.Snapshot {
	s := snapshot.Snapshot{Nodes: nodes, Queues: []snapshot.Queue{{Name: "q", Pool: "p"}}, Workloads: workloads}
	s.Sort()
	return s
}

// line writes decisions the short way: "start a [n0 n0]", "hold b WaitingForCapacity", "release a/pod n0".
func lines(decisions []Decision) string {
	var out []string
	for _, d := range decisions {
		switch d.Kind {
		case Start:
			out = append(out, fmt.Sprintf("start %s %v", d.Workload, d.Placement))
		case Release:
			out = append(out, fmt.Sprintf("release %s/%s %s", d.Workload, d.Pod, d.Node))
		case Hold:
			out = append(out, strings.TrimSpace(fmt.Sprintf("hold %s %s %s", d.Workload, d.Reason, d.Pod)))
		}
	}
	return strings.Join(out, "\n")
}

func TestCycle(t *testing.T) {
	used := node("n0", 2)
	used.GPUs[0].ShareUsed, used.GPUs[0].Shares = 50*gib, 1
	sick := node("n0", 1)
	sick.GPUs[0].Healthy = false
	cordoned := node("n0", 1)
	cordoned.Schedulable = false
	urgent := waiting("b", 2, 1, oneGPU)
	urgent.Priority = 10
	strict := cluster([]snapshot.Node{node("n0", 2)}, waiting("a", 1, 1, eightGPU), waiting("b", 2, 1, oneGPU))
	strict.Queues[0].Strict = true
	elsewhere := waiting("a", 1, 1, oneGPU)
	elsewhere.Queue = "unknown"
	uncharged, foreign := waiting("a", 1, 1, nil), started(waiting("x", 1, 1, nil), snapshot.Pod{Name: "p", Gated: true})
	uncharged.Uncharged = true
	twoKinds := waiting("a", 1, 1, half)
	twoKinds.PodSets = append(twoKinds.PodSets, snapshot.PodSet{Name: "big", Count: 1, Requests: []snapshot.Request{{Kind: snapshot.Whole, Count: 2}}})

	for name, tc := range map[string]struct {
		s    snapshot.Snapshot
		want string
	}{
		"a gang that fits starts, with the node of every pod":           {cluster([]snapshot.Node{node("n0", 1), node("n1", 1)}, waiting("a", 1, 2, oneGPU)), "start a [[n0 n1]]"},
		"a gang that does not fit takes nothing":                        {cluster([]snapshot.Node{node("n0", 2)}, started(waiting("x", 0, 1, oneGPU), snapshot.Pod{Name: "p", Gated: true}), waiting("a", 1, 2, oneGPU), waiting("b", 2, 1, oneGPU)), "release x/p n0\nhold a WaitingForCapacity\nstart b [[n0]]"},
		"the older one goes first":                                      {cluster([]snapshot.Node{node("n0", 1)}, waiting("b", 1, 1, oneGPU), waiting("a", 2, 1, oneGPU)), "start b [[n0]]\nhold a WaitingForCapacity"},
		"priority goes before age":                                      {cluster([]snapshot.Node{node("n0", 1)}, waiting("a", 1, 1, oneGPU), urgent), "start b [[n0]]\nhold a WaitingForCapacity"},
		"a share fits beside a share, a whole GPU does not":             {cluster([]snapshot.Node{used}, waiting("a", 1, 2, oneGPU), waiting("b", 2, 1, []snapshot.Request{{Kind: snapshot.Share, Count: 1, Bytes: 30 * gib}})), "hold a WaitingForCapacity\nstart b [[n0]]"},
		"a shard takes distinct GPUs of one node, twice":                {cluster([]snapshot.Node{node("n0", 4), node("n1", 8)}, waiting("a", 1, 1, shard), waiting("b", 2, 1, shard), waiting("c", 3, 1, shard)), "start a [[n1]]\nstart b [[n1]]\nhold c WaitingForCapacity"},
		"more memory than any GPU has never fits":                       {cluster([]snapshot.Node{node("n0", 1)}, waiting("a", 1, 1, []snapshot.Request{{Kind: snapshot.Share, Count: 1, Bytes: 81 * gib}})), "hold a NeverFits"},
		"more GPUs than any node has never fits":                        {cluster([]snapshot.Node{node("n0", 4), node("n1", 4)}, waiting("a", 1, 1, eightGPU)), "hold a NeverFits"},
		"a gang larger than the pool never fits":                        {cluster([]snapshot.Node{node("n0", 4)}, waiting("a", 1, 5, oneGPU)), "hold a NeverFits"},
		"a sick GPU is not used, and the pool counts as empty":          {cluster([]snapshot.Node{sick}, waiting("a", 1, 1, oneGPU)), "hold a PoolEmpty"},
		"a cordoned node is not used":                                   {cluster([]snapshot.Node{cordoned, node("n1", 1)}, waiting("a", 1, 1, oneGPU)), "start a [[n1]]"},
		"a cordoned node still counts as hardware":                      {cluster([]snapshot.Node{cordoned, node("n1", 1)}, waiting("a", 1, 2, oneGPU)), "hold a WaitingForCapacity"},
		"a strict queue waits for its head":                             {strict, "hold a NeverFits\nhold b BehindHead"},
		"work that was never charged does not start":                    {cluster([]snapshot.Node{node("n0", 1)}, uncharged), "hold a Uncharged"},
		"a gated pod without devices of ours is released without a pin": {cluster(nil, foreign), "release x/p "},
		"an unknown queue is said":                                      {cluster([]snapshot.Node{node("n0", 1)}, elsewhere), "hold a QueueNotFound"},
		"work without devices starts at once":                           {cluster(nil, waiting("a", 1, 3, nil)), "start a [[]]"},
		"podSets of two kinds: the large one first":                     {cluster([]snapshot.Node{node("n0", 3)}, twoKinds), "start a [[n0] [n0]]"},
		"pods that do not exist yet keep their devices":                 {cluster([]snapshot.Node{node("n0", 2)}, started(waiting("x", 1, 2, oneGPU)), waiting("a", 0, 1, oneGPU)), "hold a WaitingForCapacity"},
		"a pinned pod without devices keeps its node":                   {cluster([]snapshot.Node{node("n0", 1), node("n1", 1)}, started(waiting("x", 1, 1, oneGPU), snapshot.Pod{Name: "p", Node: "n1"}), waiting("a", 0, 1, oneGPU), waiting("b", 1, 1, oneGPU)), "start a [[n0]]\nhold b WaitingForCapacity"},
		"a pod that holds devices is not counted twice":                 {cluster([]snapshot.Node{node("n0", 1)}, started(waiting("x", 1, 1, oneGPU), snapshot.Pod{Name: "p", Node: "n0", Allocated: true}), waiting("a", 0, 1, oneGPU)), "start a [[n0]]"},
		"a gated pod that fits nowhere says so":                         {cluster([]snapshot.Node{node("n0", 1)}, started(waiting("x", 1, 2, oneGPU), snapshot.Pod{Name: "p", Gated: true}, snapshot.Pod{Name: "q", Gated: true})), "release x/p n0\nhold x NeverFits q"},
		"gated pods of older work come first, whatever else waits":      {cluster([]snapshot.Node{node("n0", 1)}, started(waiting("x", 5, 1, oneGPU), snapshot.Pod{Name: "p", Gated: true}), waiting("a", 0, 1, oneGPU)), "release x/p n0\nhold a WaitingForCapacity"},
		"default size takes the whole GPU, so no second share fits":     {cluster([]snapshot.Node{node("n0", 1)}, waiting("a", 1, 1, []snapshot.Request{{Kind: snapshot.Share, Count: 1}}), waiting("b", 2, 1, half)), "start a [[n0]]\nhold b WaitingForCapacity"},
		"shares pack from the front so that whole GPUs stay at the end": {cluster([]snapshot.Node{node("n0", 2)}, waiting("a", 1, 2, half), waiting("b", 2, 1, oneGPU)), "start a [[n0 n0]]\nstart b [[n0]]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lines(Cycle(tc.s, Policy{}, time.Time{})); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

func TestBinPackFillsANodeAndSpreadDoesNot(t *testing.T) {
	s := cluster([]snapshot.Node{node("n0", 4), node("n1", 4)}, waiting("a", 1, 1, oneGPU), waiting("b", 2, 1, oneGPU), waiting("c", 3, 1, oneGPU))
	for mode, want := range map[PlacementMode]string{BinPack: "n0 n0 n0", Spread: "n0 n1 n0"} {
		var got []string
		for _, d := range Cycle(s, Policy{Placement: mode}, time.Time{}) {
			got = append(got, d.Placement[0][0])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("mode %d places on %v, want %s", mode, got, want)
		}
	}
}

func TestAHoldCarriesTheNumbers(t *testing.T) {
	n0, n1 := node("n0", 8), node("n1", 8)
	for i := range 8 {
		n0.GPUs[i].WholeUsed = true
	}
	n1.GPUs[0].WholeUsed = true
	d := Cycle(cluster([]snapshot.Node{n0, n1}, waiting("a", 1, 2, eightGPU)), Policy{}, time.Time{})[0]
	want := Numbers{Pool: "p", Queue: "q", Pods: 2, WantGPUs: 8, Whole: true, FreeGPUs: 7, TotalGPUs: 16, LargestBytes: 80 * gib, MostOnNode: 8}
	if d.Reason != classes.ReasonWaitingForCapacity || !reflect.DeepEqual(d.Numbers, want) {
		t.Errorf("got %s %+v\nwant %+v", d.Reason, d.Numbers, want)
	}
}
