package decide_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/admission/simulate"
	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes/quantity"
)

// A queue inside what it deserves loses nothing to a queue that borrows.
func TestAQueueInsideItsDeservedIsNoVictimOfABorrower(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, p := randomCluster(t), randomPolicy(t)
		deserved, used := map[string]quantity.MilliGPU{}, map[string]quantity.MilliGPU{}
		for _, a := range decide.Accounting(s, p, time.Unix(0, start)).Queues {
			if !a.Cohort {
				deserved[a.Name], used[a.Name] = a.Effective, a.Used
			}
		}
		decisions := decide.Cycle(s, p, time.Unix(0, start))
		if slices.ContainsFunc(decisions, func(d decide.Decision) bool { return d.Kind == decide.Start || d.Kind == decide.Release }) {
			return // use changes in ways that this oracle does not follow
		}
		plans := map[string]bool{}
		for _, d := range decisions {
			if d.Kind == decide.Evict {
				plans[d.For.Name] = true
			}
			if d.Kind == decide.Hold && d.Promise != nil { // it counts as used from now on
				plans[d.Workload] = true
			}
			if d.Kind == decide.Evict && d.Queue == d.For.Queue { // what it gives up itself is room of its own
				used[d.Queue] = used[d.Queue].Sub(d.Numbers.Freed)
			}
		}
		if len(plans) > 1 {
			return
		}
		for _, d := range decisions {
			if d.Kind != decide.Evict || d.Rule != decide.RuleReclaimFairShare && d.Rule != decide.RuleReclaimDeserved {
				continue
			}
			borrows := used[d.For.Queue].Add(d.Numbers.Want) > deserved[d.For.Queue]
			if borrows && used[d.Queue] <= deserved[d.Queue] {
				t.Fatalf("queue %s uses %s of %s deserved and loses %s to %s, which uses %s of %s", d.Queue, used[d.Queue], deserved[d.Queue],
					d.Workload, d.For.Name, used[d.For.Queue], deserved[d.For.Queue])
			}
			used[d.Queue] = used[d.Queue].Sub(d.Numbers.Freed)
		}
	})
}

// Work arrives and ends at random; whenever nothing happens for a while, the
// cluster is at rest within three cycles, and nobody is evicted for ever.
func TestNoEvictionLoopsWhileWorkComesAndGoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, p := randomCluster(t), randomPolicy(t)
		steps := rapid.SampledFrom([]int{10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 200}).Draw(t, "steps")
		c := &sample{T: t, s: s}
		for step := range steps {
			c.happen(100 + step)
			run := scenario(c.s, p)
			run.Now += int64(step) * run.Period
			if step%10 < 9 {
				run.MaxCycles = 1
				c.s = simulate.Run(run, decide.Cycle).Final
				continue
			}
			r := simulate.Run(run, decide.Cycle)
			if !r.Stable || r.Cycles > 3 || len(r.Mismatches) > 0 {
				for _, d := range r.Decisions {
					t.Logf("%+v", d)
				}
				t.Fatalf("step %d: stable %t after %d cycles, %v", step, r.Stable, r.Cycles, r.Mismatches)
			}
			c.s = r.Final
		}
	})
}

// happen lets a workload arrive, or end, or nothing at all.
func (c *sample) happen(n int) {
	switch what := c.among("what", 0, 1, 1, 2, 2); {
	case what == 1 && len(c.s.Workloads) < 14:
		c.workload(n)
	case what == 2 && len(c.s.Workloads) > 0:
		c.end(rapid.IntRange(0, len(c.s.Workloads)-1).Draw(c.T, "which"))
	}
	c.s.Sort()
}

func (c *sample) end(at int) {
	room := snapshot.NewRoom(&c.s)
	set := &c.s.Workloads[at].PodSets[0]
	for _, pod := range set.Pods {
		if node, known := room.Find(pod.Node); known && pod.Allocated {
			room.Give(node, pod.Devices, &set.Needs)
		}
	}
	c.s.Workloads = slices.Delete(slices.Clone(c.s.Workloads), at, at+1)
	c.keep(room)
}

// Where evicted pods take time to leave, and where budgets, delays and minimum
// run times slow things down, it ends all the same: within as many cycles as
// every workload needs to be evicted, to leave and to start once.
func TestItEndsWithBudgetsAndDelaysToo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, p := randomCluster(t), randomPolicy(t)
		p.Evictions = rapid.SampledFrom([]int{-1, 1, 2}).Draw(t, "evictions")
		p.PreemptionDelay = time.Duration(rapid.SampledFrom([]int{0, 0, 20}).Draw(t, "delay")) * time.Second
		p.MinRuntimeReclaim = time.Duration(rapid.SampledFrom([]int{0, 0, 5, 60}).Draw(t, "minimum")) * time.Second
		p.MinRuntimePreempt = time.Duration(rapid.SampledFrom([]int{0, 0, 5, 60}).Draw(t, "own minimum")) * time.Second
		run := scenario(s, p)
		run.ReleaseCycles = rapid.IntRange(0, 3).Draw(t, "release")
		run.MaxCycles = (run.ReleaseCycles + 2) * (len(s.Workloads) + 3)
		r := simulate.Run(run, decide.Cycle)
		if !r.Stable || len(r.Mismatches) > 0 {
			for _, d := range r.Decisions {
				t.Logf("%+v", d)
			}
			t.Fatalf("stable %t after %d cycles, %v", r.Stable, r.Cycles, r.Mismatches)
		}
	})
}

// Bad numbers give a defined result, never a panic.
func TestAbsurdQueuesAndWorkloads(t *testing.T) {
	f := newFleet(2, 2)
	f.waits(0, 1_000_000, 1)
	f.waits(1, 1, 1_000_000)
	s := f.done()
	for i := range s.Queues {
		s.Queues[i].Weight = 0
		s.Queues[i].Deserved = -5
	}
	s.Queues = append(s.Queues,
		snapshot.Queue{Name: "a", Cohort: true, Parent: "b"}, snapshot.Queue{Name: "b", Cohort: true, Parent: "a"},
		snapshot.Queue{Name: "in-a-circle", Parent: "a", Pool: "p"}, snapshot.Queue{Name: "lost", Parent: "nowhere", Pool: "p"})
	for _, queue := range []string{"in-a-circle", "lost", "none"} {
		w := f.job(0, 1, 1)
		w.Queue = queue
		s.Workloads = append(s.Workloads, w)
	}
	s.Sort()
	held := 0
	for _, d := range decide.Cycle(s, decide.Defaults(), time.Unix(0, start)) {
		if d.Kind == decide.Hold && d.Reason != "" {
			held++
		}
	}
	if held != len(s.Workloads) {
		t.Errorf("%d of %d workloads are told why they wait", held, len(s.Workloads))
	}
}

func TestTenThousandEmptyQueues(t *testing.T) {
	f := newFleet(2, 10_000)
	f.waits(0, 1, 1)
	decisions := decide.Cycle(f.done(), decide.Defaults(), time.Unix(0, start))
	if len(decisions) != 1 || decisions[0].Kind != decide.Start {
		t.Errorf("got %s", fmt.Sprint(decisions))
	}
}
