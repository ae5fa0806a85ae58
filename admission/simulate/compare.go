package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes/quantity"
)

// compare adds a line for everything that is not as expected.
func (r *run) compare(unassigned quantity.MilliGPU) {
	e := r.scenario.Expect
	if e == nil {
		return
	}
	r.all(e.Starts, "should have started and run at the end", func(f fate) bool { return !f.began && f.runs })
	r.all(e.KeepsRunning, "should have run on", func(f fate) bool { return f.began && !f.lost && f.runs })
	r.all(e.Evicted, "should have been evicted and not run at the end", func(f fate) bool { return f.lost && !f.runs })
	r.all(e.Moved, "should have been evicted or moved and run at the end", func(f fate) bool { return f.lost && f.runs })
	r.all(e.Waits, "should wait at the end", func(f fate) bool { return !f.runs })
	for _, name := range slices.Sorted(maps.Keys(e.Placement)) {
		r.comparePlacement(name, e.Placement[name])
	}
	r.compareGroups()
	for _, name := range slices.Sorted(maps.Keys(e.FairShare)) {
		at := slices.IndexFunc(r.result.Queues, func(q Queue) bool { return q.Name == name })
		if at < 0 || r.result.Queues[at].FairShare != e.FairShare[name] {
			r.mismatch("queue %s should have a fair share of %s, it has %s", name, e.FairShare[name], r.result.Queues[at].FairShare)
		}
	}
	if e.Unassigned != nil && *e.Unassigned != unassigned {
		r.mismatch("%s GPUs should be nobody's, it is %s", *e.Unassigned, unassigned)
	}
	if !r.result.Stable {
		r.mismatch("it did not come to rest within %d cycles", r.scenario.MaxCycles)
	}
}

func (r *run) mismatch(format string, args ...any) {
	r.result.Mismatches = append(r.result.Mismatches, fmt.Sprintf(format, args...))
}

// fate is what became of a workload or pod.
type fate struct{ began, lost, runs bool }

func (f fate) String() string {
	words := map[fate]string{
		{false, false, false}: "it waited and waits", {false, false, true}: "it started", {false, true, false}: "it started and was evicted",
		{false, true, true}: "it started, was evicted and started again", {true, false, false}: "it ran and does not now",
		{true, false, true}: "it ran on", {true, true, false}: "it was evicted", {true, true, true}: "it was evicted and runs again",
	}
	return words[f]
}

func (r *run) all(names []string, what string, holds func(fate) bool) {
	for _, name := range names {
		if f := r.fateOf(name); !holds(f) {
			text := fmt.Sprintf("%s %s: %s", name, what, f)
			workload, _, _ := strings.Cut(name, "/")
			for _, reason := range r.holds[workload] {
				text += fmt.Sprintf("; %s: %s", reason.Code, reason.Message)
			}
			r.mismatch("%s", text)
		}
	}
}

// fateOf is that of a pod, or of a workload: it ran if any of its pods did, and
// was evicted if one of those that ran was.
func (r *run) fateOf(name string) fate {
	workload, _, isPod := strings.Cut(name, "/")
	w := r.workload(workload)
	runs := map[string]bool{}
	for _, pod := range running(w) {
		runs[pod.Name] = true
	}
	if isPod {
		return fate{r.began[name], r.lost[name], runs[name]}
	}
	f := fate{runs: w.State == snapshot.Started}
	for i := range w.PodSets[0].Count {
		pod := PodName(workload, i)
		f.began = f.began || r.began[pod]
		f.lost = f.lost || r.lost[pod]
	}
	return f
}

func (r *run) workload(name string) *snapshot.Workload {
	return &r.s.Workloads[slices.IndexFunc(r.s.Workloads, func(w snapshot.Workload) bool { return w.Name == name })]
}

// podsOf returns the running pods that a name means.
func (r *run) podsOf(name string) []*snapshot.Pod {
	workload, _, isPod := strings.Cut(name, "/")
	return slices.DeleteFunc(running(r.workload(workload)), func(p *snapshot.Pod) bool { return isPod && p.Name != name })
}

// comparePlacement: one node is that of all running pods, a list has one per pod in any order.
func (r *run) comparePlacement(name string, want []string) {
	var got []string
	for _, pod := range r.podsOf(name) {
		got = append(got, pod.Node)
	}
	if len(want) == 1 && len(got) > 1 {
		want = slices.Repeat(want, len(got))
	}
	a, b := slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(a, b) {
		r.mismatch("%s should run on %s, it runs on %s", name, strings.Join(want, ", "), strings.Join(got, ", "))
	}
}

// spot is a physical GPU.
type spot struct {
	node string
	gpu  int
}

// compareGroups: a label that running work carried means its GPU; of the others
// equal labels mean one GPU and unequal labels different ones.
func (r *run) compareGroups() {
	e := r.scenario.Expect
	known := map[string]spot{}
	for _, name := range slices.Sorted(maps.Keys(e.GPUGroup)) {
		pods, labels := r.podsOf(name), e.GPUGroup[name]
		if len(labels) == 1 && len(pods) > 1 {
			labels = slices.Repeat(labels, len(pods))
		}
		if len(pods) != len(labels) {
			r.mismatch("%s should have %d running pods with GPU groups, it has %d", name, len(labels), len(pods))
			continue
		}
		for i, pod := range pods {
			r.compareGroup(known, name, labels[i], pod)
		}
	}
}

func (r *run) compareGroup(known map[string]spot, name, label string, pod *snapshot.Pod) {
	if len(pod.Devices) == 0 {
		r.mismatch("%s should be on GPU group %s, it has no GPU", name, label)
		return
	}
	at := spot{pod.Node, pod.Devices[0].GPU}
	key := pod.Node + "\x00" + label
	want, fixed := known[key]
	if gpu, carried := r.scenario.Groups[pod.Node][label]; carried {
		want, fixed = spot{pod.Node, gpu}, true
	}
	if fixed {
		if want != at {
			r.mismatch("%s should be on GPU %d of %s (group %s), it is on GPU %d of %s", name, want.gpu, want.node, label, at.gpu, at.node)
		}
		return
	}
	for other, taken := range known {
		if taken == at {
			r.mismatch("%s should be on another GPU than group %s", name, strings.TrimPrefix(other, pod.Node+"\x00"))
		}
	}
	for other, gpu := range r.scenario.Groups[pod.Node] {
		if gpu == at.gpu {
			r.mismatch("%s should be on another GPU than group %s", name, other)
		}
	}
	known[key] = at
}
