package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/admission/explain"
	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes/quantity"
)

// Run runs s to its end. cycle is the planner.
func Run(s Scenario, cycle decide.CycleFunc) Result {
	r := run{scenario: s, s: clone(s.Snapshot), now: s.Now, began: map[string]bool{}, lost: map[string]bool{}, evictions: map[string]int{}}
	r.remember()
	if s.FairShareOnly {
		r.result.Stable = true
	} else {
		r.converge(cycle)
	}
	r.finish()
	return r.result
}

// run is the state of one simulation.
type run struct {
	scenario  Scenario
	s         snapshot.Snapshot
	now       int64
	result    Result
	holds     map[string][]Reason // of the last cycle
	began     map[string]bool     // pods that ran at the start
	lost      map[string]bool     // pods that were evicted
	evictions map[string]int      // per workload
	leaving   []leaving

	placements []placement // of the cycle
}

// leaving is a pod that holds its devices until a cycle.
type leaving struct {
	until    int
	workload int
	pod      snapshot.Pod
}

// clone copies everything that a simulation changes.
func clone(s snapshot.Snapshot) snapshot.Snapshot {
	s.Nodes = slices.Clone(s.Nodes)
	s.Workloads = slices.Clone(s.Workloads)
	for i := range s.Workloads {
		w := &s.Workloads[i]
		w.PodSets = slices.Clone(w.PodSets)
		for set := range w.PodSets {
			w.PodSets[set].Pods = slices.Clone(w.PodSets[set].Pods)
		}
	}
	return s
}

func (r *run) remember() {
	for i := range r.s.Workloads {
		for _, pod := range r.s.Workloads[i].PodSets[0].Pods {
			r.began[pod.Name] = pod.Allocated && r.s.Workloads[i].State == snapshot.Started
		}
	}
}

// converge runs cycles until one changes nothing.
func (r *run) converge(cycle decide.CycleFunc) {
	for n := 1; n <= r.scenario.MaxCycles; n++ {
		r.noteShort()
		decisions := cycle(r.s, r.scenario.Policy, time.Unix(0, r.now))
		if !r.apply(n, decisions) && len(r.leaving) == 0 {
			r.result.Stable = true
			return
		}
		r.result.Cycles = n
		r.now += r.scenario.Period
	}
}

// noteShort keeps since when gangs run short of their minimum.
func (r *run) noteShort() {
	for i := range r.s.Workloads {
		w := &r.s.Workloads[i]
		least := w.PodSets[0].Count
		if w.MinPods > 0 {
			least = w.MinPods
		}
		switch runs := len(running(w)); {
		case w.State != snapshot.Started || runs >= least || runs == 0:
			w.ShortSince = 0
		case w.ShortSince == 0:
			w.ShortSince = r.now
		}
	}
}

// apply carries out the decisions of a cycle: starts on what was free, then
// evictions. It reports whether anything changed.
func (r *run) apply(n int, decisions []decide.Decision) bool {
	room := snapshot.NewRoom(&r.s)
	r.holds = map[string][]Reason{}
	r.placements = nil
	changed := false
	for _, d := range decisions {
		at := slices.IndexFunc(r.s.Workloads, func(w snapshot.Workload) bool { return w.UID == d.UID })
		switch d.Kind {
		case decide.Start:
			r.start(at, d)
		case decide.Release:
			r.release(at, d)
		case decide.Hold:
			r.hold(at, d)
			continue
		case decide.Evict:
			continue
		}
		changed = true
		r.record(n, d)
	}
	r.putAll(room)
	changed = r.leave(room, n) || changed
	for _, d := range decisions {
		if d.Kind == decide.Evict {
			at := slices.IndexFunc(r.s.Workloads, func(w snapshot.Workload) bool { return w.UID == d.UID })
			r.evict(room, n, at, d)
			changed = true
			r.record(n, d)
		}
	}
	r.keepPromises(room, n, decisions)
	for i := range r.s.Nodes {
		r.s.Nodes[i].GPUs = room.GPUs(i)
		if r.s.Nodes[i].Free != nil {
			free := room.Beside(i)
			r.s.Nodes[i].Free = &free
		}
	}
	return changed
}

// placement is a pod that a cycle found devices for.
type placement struct {
	turn, workload int
	pod, node      string
}

func (r *run) start(at int, d decide.Decision) {
	w := &r.s.Workloads[at]
	w.State, w.StartedAt, w.Promise, w.ShortSince = snapshot.Started, r.now, nil, 0
	set := &w.PodSets[0]
	set.Pods = slices.DeleteFunc(set.Pods, func(p snapshot.Pod) bool { return !p.Leaving })
	for i := range set.Count {
		set.Pods = append(set.Pods, snapshot.Pod{Name: PodName(w.Name, i), Gated: len(set.Requests) > 0})
		if i < len(d.Placement[0]) {
			r.placements = append(r.placements, placement{d.Turns[0][i], at, PodName(w.Name, i), d.Placement[0][i]})
		}
	}
}

func (r *run) release(at int, d decide.Decision) {
	r.s.Workloads[at].Promise = nil
	if len(d.Turns) > 0 {
		r.placements = append(r.placements, placement{d.Turns[0][0], at, d.Pod, d.Node})
	}
}

// putAll lets pods run in the order in which the planner found their devices. A
// placement that does not fit is a fault of the planner, which the result tells.
func (r *run) putAll(room *snapshot.Room) {
	slices.SortFunc(r.placements, func(a, b placement) int { return a.turn - b.turn })
	for _, at := range r.placements {
		set := &r.s.Workloads[at.workload].PodSets[0]
		i := slices.IndexFunc(set.Pods, func(p snapshot.Pod) bool { return p.Name == at.pod && p.Gated })
		node, known := room.Find(at.node)
		if held, fits := []snapshot.Held(nil), false; known && i >= 0 {
			if held, fits = room.Take(node, set); fits {
				set.Pods[i] = snapshot.Pod{Name: at.pod, Node: at.node, Bound: true, Allocated: true, Devices: held}
				continue
			}
		}
		r.result.Mismatches = append(r.result.Mismatches, fmt.Sprintf("fault of the planner: pod %s does not fit on node %s", at.pod, at.node))
	}
	r.placements = nil
}

func (r *run) hold(at int, d decide.Decision) {
	r.s.Workloads[at].Promise = d.Promise
	reason := Reason{string(d.Reason), explain.Text(d)}
	name := r.s.Workloads[at].Name
	if !slices.Contains(r.holds[name], reason) {
		r.holds[name] = append(r.holds[name], reason)
	}
}

// keepPromises keeps the promises of a cycle in their order.
func (r *run) keepPromises(room *snapshot.Room, n int, decisions []decide.Decision) {
	if r.scenario.ReleaseCycles > 0 {
		return
	}
	var promised []decide.Decision
	for _, d := range decisions {
		if d.Promise != nil {
			promised = append(promised, d)
		}
	}
	slices.SortStableFunc(promised, func(a, b decide.Decision) int { return a.Promise.Turn - b.Promise.Turn })
	for _, d := range promised {
		r.keepPromise(room, n, d)
	}
}

// keepPromise starts at once what was promised devices that are free by now:
// where an eviction takes no time, the next cycle would do just that.
func (r *run) keepPromise(room *snapshot.Room, n int, d decide.Decision) {
	at := slices.IndexFunc(r.s.Workloads, func(w snapshot.Workload) bool { return w.UID == d.UID })
	w := &r.s.Workloads[at]
	trial := room.Fork()
	for _, name := range d.Promise.Nodes[0] {
		node, known := trial.Find(name)
		if !known {
			return
		}
		if _, fits := trial.Take(node, &w.PodSets[0]); !fits {
			return
		}
	}
	d.Kind, d.Placement, d.For, d.Rule = decide.Start, d.Promise.Nodes, decide.Ref{}, ""
	d.Turns = [][]int{make([]int, len(d.Promise.Nodes[0]))}
	for i := range d.Turns[0] {
		d.Turns[0][i] = i
	}
	delete(r.holds, w.Name)
	if w.State == snapshot.Waiting {
		r.start(at, d)
		r.record(n, d)
		r.putAll(room)
		return
	}
	set := &w.PodSets[0]
	for _, name := range d.Promise.Nodes[0] {
		if i := slices.IndexFunc(set.Pods, func(p snapshot.Pod) bool { return p.Gated }); i >= 0 {
			d.Kind, d.Pod, d.Node, d.Turns = decide.Release, set.Pods[i].Name, name, [][]int{{0}}
			r.release(at, d)
			r.record(n, d)
			r.putAll(room)
		}
	}
}

func (r *run) evict(room *snapshot.Room, n, at int, d decide.Decision) {
	w := &r.s.Workloads[at]
	set := &w.PodSets[0]
	for i := range set.Pods {
		pod := &set.Pods[i]
		if len(d.Pods) > 0 && !slices.Contains(d.Pods, pod.Name) || !pod.Allocated || pod.Leaving {
			continue
		}
		r.lost[pod.Name] = true
		gone := *pod
		gone.Leaving = true
		r.leaving = append(r.leaving, leaving{n + r.scenario.ReleaseCycles, at, gone})
		*pod = snapshot.Pod{Name: pod.Name, Gated: true}
	}
	r.evictions[w.Name]++
	if len(d.Pods) == 0 {
		set.Pods = slices.DeleteFunc(set.Pods, func(p snapshot.Pod) bool { return !p.Leaving })
		w.State, w.EvictedAt, w.StartedAt, w.Promise = snapshot.Waiting, r.now, 0, d.Promise
	}
	for _, l := range r.leaving {
		if l.workload == at && l.until == n+r.scenario.ReleaseCycles && r.scenario.ReleaseCycles > 0 && !slices.ContainsFunc(set.Pods, func(p snapshot.Pod) bool { return p.Leaving && p.Name == l.pod.Name }) {
			set.Pods = append(set.Pods, l.pod)
		}
	}
	if r.scenario.ReleaseCycles == 0 {
		r.leave(room, n)
	}
}

// leave ends the pods whose time has come, and reports whether there were any.
func (r *run) leave(room *snapshot.Room, n int) bool {
	before := len(r.leaving)
	r.leaving = slices.DeleteFunc(r.leaving, func(l leaving) bool {
		if l.until > n {
			return false
		}
		set := &r.s.Workloads[l.workload].PodSets[0]
		if node, known := room.Find(l.pod.Node); known {
			room.Give(node, l.pod.Devices, &set.Needs)
		}
		set.Pods = slices.DeleteFunc(set.Pods, func(p snapshot.Pod) bool { return p.Leaving && p.Name == l.pod.Name })
		return true
	})
	return len(r.leaving) < before
}

func (r *run) record(n int, d decide.Decision) {
	kinds := map[decide.Kind]string{decide.Start: "Start", decide.Release: "Release", decide.Evict: "Evict"}
	rec := Recorded{Cycle: n, Kind: kinds[d.Kind], Workload: d.Workload, Pods: d.Pods, For: d.For.Name, Rule: string(d.Rule), Message: explain.Text(d)}
	if d.Pod != "" {
		rec.Pods = []string{d.Pod}
	}
	r.result.Decisions = append(r.result.Decisions, rec)
}

// running returns the pods of w that run.
func running(w *snapshot.Workload) []*snapshot.Pod {
	var out []*snapshot.Pod
	if w.State != snapshot.Started {
		return nil
	}
	for i := range w.PodSets[0].Pods {
		pod := &w.PodSets[0].Pods[i]
		if !pod.Leaving && !pod.Gated {
			out = append(out, pod)
		}
	}
	return out
}

// finish fills in the numbers at the end and compares.
func (r *run) finish() {
	r.result.Name, r.result.Final = r.scenario.Name, r.s
	accounts := decide.Accounting(r.s, r.scenario.Policy, time.Unix(0, r.now))
	for _, name := range r.scenario.QueueOrder {
		at := slices.IndexFunc(accounts.Queues, func(a decide.Account) bool { return a.Name == name })
		if at >= 0 {
			a := accounts.Queues[at]
			r.result.Queues = append(r.result.Queues, Queue{a.Name, a.Deserved, a.Share, a.Used, a.NonPreemptible, a.Limit})
		}
	}
	for _, name := range r.scenario.WorkloadOrder {
		at := slices.IndexFunc(r.s.Workloads, func(w snapshot.Workload) bool { return w.Name == name })
		w := &r.s.Workloads[at]
		out := Workload{Name: name, Running: w.State == snapshot.Started, Evictions: r.evictions[name], Reasons: r.holds[name]}
		for _, pod := range running(w) {
			var gpus []int
			for _, d := range pod.Devices {
				gpus = append(gpus, d.GPU)
			}
			out.Nodes, out.GPUs = append(out.Nodes, pod.Node), append(out.GPUs, gpus)
		}
		r.result.Workloads = append(r.result.Workloads, out)
	}
	var left quantity.MilliGPU
	for _, amount := range accounts.Unassigned {
		left = left.Add(amount)
	}
	r.compare(left)
}
