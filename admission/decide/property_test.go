package decide_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/admission/simulate"
	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
)

func TestItComesToRestWithinThreeCycles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, p := randomCluster(t), randomPolicy(t)
		r := simulate.Run(scenario(s, p), decide.Cycle)
		if !r.Stable || r.Cycles > 3 || len(r.Mismatches) > 0 {
			for _, d := range r.Decisions {
				t.Logf("%+v", d)
			}
			t.Fatalf("stable %t after %d cycles, %v", r.Stable, r.Cycles, r.Mismatches)
		}
	})
}

func TestInputOrderIsIrrelevant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, p := randomCluster(t), randomPolicy(t)
		want := decide.Cycle(s, p, time.Unix(0, start))
		shuffled := s
		shuffled.Nodes, shuffled.Queues, shuffled.Workloads = slices.Clone(s.Nodes), slices.Clone(s.Queues), slices.Clone(s.Workloads)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		r.Shuffle(len(s.Nodes), reflect.Swapper(shuffled.Nodes))
		r.Shuffle(len(s.Queues), reflect.Swapper(shuffled.Queues))
		r.Shuffle(len(s.Workloads), reflect.Swapper(shuffled.Workloads))
		shuffled.Sort()
		if got := decide.Cycle(shuffled, p, time.Unix(0, start)); !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

func TestEveryWaitingWorkloadHasOneReason(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, p := randomCluster(t), randomPolicy(t)
		count := map[string]int{}
		for _, d := range decide.Cycle(s, p, time.Unix(0, start)) {
			if d.Kind == decide.Hold && (d.Reason == "" || d.Numbers.Queue == "") {
				t.Fatalf("%s waits without a reason: %+v", d.Workload, d)
			}
			if d.Kind == decide.Hold || d.Kind == decide.Start {
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

// Non-preemptible work is never evicted, and nothing of it starts beyond what
// any queue above it deserves.
func TestNonPreemptibleWorkStaysAndStaysInsideDeserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, p := randomCluster(t), randomPolicy(t)
		p.StaleGangGrace = -1
		before := decide.Accounting(s, p, time.Unix(0, start))
		r := simulate.Run(scenario(s, p), decide.Cycle)
		for _, d := range r.Decisions {
			at := slices.IndexFunc(s.Workloads, func(w snapshot.Workload) bool { return w.Name == d.Workload })
			if d.Kind == "Evict" && s.Workloads[at].NonPreemptible {
				t.Fatalf("evicted: %+v", d)
			}
		}
		for i, a := range decide.Accounting(r.Final, p, time.Unix(0, start)).Queues {
			if a.NonPreemptible > a.Deserved && a.NonPreemptible > before.Queues[i].NonPreemptible {
				t.Fatalf("queue %s deserves %s and runs %s non-preemptible, %s before", a.Name, a.Deserved, a.NonPreemptible, before.Queues[i].NonPreemptible)
			}
			if a.Used > a.Limit && a.Used > before.Queues[i].Used {
				for _, d := range r.Decisions {
					t.Logf("%+v", d)
				}
				t.Logf("before %s", before.Queues[i].Used)
				t.Fatalf("queue %s uses %s, its limit is %s", a.Name, a.Used, a.Limit)
			}
		}
	})
}

// No workload waits while an exhaustive search finds room for it in what is
// free at the end, unless a limit, the rule for non-preemptible work or the head
// of its queue keeps it.
func TestNoWorkloadWaitsWhileItFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, p := randomCluster(t), randomPolicy(t)
		r := simulate.Run(scenario(s, p), decide.Cycle)
		room := snapshot.NewRoom(&r.Final)
		for _, w := range r.Workloads {
			at := slices.IndexFunc(r.Final.Workloads, func(x snapshot.Workload) bool { return x.Name == w.Name })
			job := &r.Final.Workloads[at]
			if w.Running || len(w.Reasons) == 0 {
				continue
			}
			if slices.Contains([]classes.Reason{classes.ReasonOverLimit, classes.ReasonNonPreemptibleOverDeserved, classes.ReasonBehindHead}, classes.Reason(w.Reasons[0].Code)) {
				continue
			}
			need := job.PodSets[0].Count
			if job.MinPods > 0 {
				need = job.MinPods
			}
			if exhaustive(room, &job.PodSets[0], need) {
				t.Fatalf("%s waits (%v) and fits", w.Name, w.Reasons)
			}
		}
	})
}

// exhaustive is the slow oracle: it tries every node for every pod.
func exhaustive(room *snapshot.Room, set *snapshot.PodSet, pods int) bool {
	if pods == 0 {
		return true
	}
	for i := range room.Len() {
		trial := room.Fork()
		if _, ok := trial.Take(i, set); ok && exhaustive(trial, set, pods-1) {
			return true
		}
	}
	return false
}
