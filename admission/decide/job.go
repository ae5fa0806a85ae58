package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
)

// status is where a workload stands within one cycle.
type status int

const (
	idle    status = iota // waits
	running               // has devices, and may be a victim
	fixed                 // was settled in this cycle and is not touched again
	evicted               // gave way in this cycle; waits again
	outside               // takes no part: not queued, or its queue is unusable
)

// place is one pod with a node and devices: real, or set aside for it.
type place struct {
	set, pod, node int // pod is a position in PodSet.Pods; -1: it does not exist yet
	turn           int // the order in which this cycle found devices
	held           []snapshot.Held
}

// job is what the cycle knows of one workload.
type job struct {
	w       *snapshot.Workload
	leaf    int // queue of the tree; -1 = none that is usable
	pool    *pool
	shape   int // equal for workloads that cannot be told apart when they are placed
	gang    []int
	total   quantity.MilliGPU // charge of all pods
	minimum quantity.MilliGPU // charge of the gang
	status  status
	fits    bool // the hardware is known to be able to hold the gang
	placed  []place
	gated   [][]int           // per podSet: pods behind the gate without a node, by position
	start   int               // position of its Start in planner.log, -1 = none
	plan    int               // position of its Evict in planner.plans, -1 = none
	told    int               // position in planner.plans of the Hold that its victims are for, -1 = none
	promise *snapshot.Promise // given in this cycle; surplus pods are added to it
	reason  classes.Reason    // why it waits, as known so far
	numbers *Numbers          // of reason

	overShare, overBudget        bool  // why others did not give way for it
	delayedUntil, protectedUntil int64 // the same; 0 = not the reason
}

// ask is something that waits for devices.
type ask struct {
	job     int
	surplus bool // one more pod of an elastic workload; else the gang, or what it lacks
}

// elastic reports whether w has a minimum below its number of pods.
func elastic(w *snapshot.Workload) bool {
	return len(w.PodSets) == 1 && w.MinPods > 0 && w.MinPods < w.PodSets[0].Count
}

// surplus reports whether j holds more than its minimum.
func (j *job) surplus() bool { return elastic(j.w) && len(j.placed) > j.w.MinPods }

// makeJobs reads the workloads.
func (p *planner) makeJobs() {
	p.jobs = make([]job, len(p.in.Workloads))
	p.shapes = shapes{ids: map[string]int{}, quick: map[quickShape]int{}}
	gangs := make([]int, 0, len(p.in.Workloads))
	for i := range p.in.Workloads {
		w := &p.in.Workloads[i]
		j := &p.jobs[i]
		*j = job{w: w, leaf: -1, start: -1, plan: -1, told: -1}
		if leaf, usable := p.tree.Leaf(w.Queue); usable {
			j.leaf, j.pool = leaf, p.pools[p.tree.Queues[leaf].Pool]
		}
		from := len(gangs)
		for s := range w.PodSets {
			set := &w.PodSets[s]
			n := max(set.Count, 0)
			j.total = j.total.Add(set.Charge.Mul(int64(n)))
			if elastic(w) {
				n = w.MinPods
			}
			j.minimum = j.minimum.Add(set.Charge.Mul(int64(n)))
			gangs = append(gangs, n)
		}
		j.gang = gangs[from:len(gangs):len(gangs)]
		j.shape = p.shapes.of(w, p.poolName(j))
		j.status = statusOf(j)
	}
}

func (p *planner) poolName(j *job) string {
	if j.pool == nil {
		return ""
	}
	return j.pool.name
}

func statusOf(j *job) status {
	switch {
	case j.w.State == snapshot.Returning, j.w.State == snapshot.Ended:
		return outside
	case j.w.State == snapshot.Started:
		return running
	case j.leaf < 0 || j.w.Uncharged:
		return outside
	default:
		return idle
	}
}

// live reports whether the pods of j exist or will, whatever this cycle decided so far.
func (j *job) live() bool { return j.w.State == snapshot.Started && j.plan < 0 }

// ref names the workload of j.
func (j *job) ref() Ref {
	return Ref{Namespace: j.w.Namespace, Name: j.w.Name, UID: j.w.UID, Queue: j.w.Queue}
}

// decision returns one about j, to be filled in.
func (j *job) decision(kind Kind) Decision {
	return Decision{Kind: kind, Namespace: j.w.Namespace, Workload: j.w.Name, UID: j.w.UID, Queue: j.w.Queue}
}

// counts is the number of pods of each podSet that an ask is for.
func (p *planner) counts(a ask) []int {
	j := &p.jobs[a.job]
	if a.surplus {
		return []int{1}
	}
	if len(j.placed) == 0 {
		return j.gang
	}
	missing := slices.Clone(j.gang)
	for _, at := range j.placed {
		missing[at.set]--
	}
	for i := range missing {
		missing[i] = max(missing[i], 0)
	}
	return missing
}

// want is what an ask charges.
func (p *planner) want(a ask) quantity.MilliGPU {
	j := &p.jobs[a.job]
	if !a.surplus && len(j.placed) == 0 {
		return j.minimum
	}
	var sum quantity.MilliGPU
	for set, n := range p.counts(a) {
		sum = sum.Add(j.w.PodSets[set].Charge.Mul(int64(n)))
	}
	return sum
}

// devices reports whether the pods of a podSet need devices of ours.
func devices(set *snapshot.PodSet) bool { return len(set.Requests) > 0 }

// class orders elastic work: below its minimum, at it, above it.
func (p *planner) class(a ask) int {
	j := &p.jobs[a.job]
	switch {
	case !a.surplus:
		return 0
	case len(j.placed) <= j.w.MinPods:
		return 1
	default:
		return 2
	}
}

// earlier orders what waits in one queue: higher priority, then below, at and
// above the minimum, then older, then by name.
func (p *planner) earlier(a, b ask) int {
	x, y := p.jobs[a.job].w, p.jobs[b.job].w
	if order := cmp.Or(cmp.Compare(y.Priority, x.Priority), cmp.Compare(p.class(a), p.class(b)), cmp.Compare(x.Created, y.Created)); order != 0 {
		return order
	}
	return cmp.Or(strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name), cmp.Compare(a.job, b.job))
}

// refuse remembers why an ask waits.
func (p *planner) refuse(a ask, reason classes.Reason, n Numbers) {
	j := &p.jobs[a.job]
	if a.surplus && len(j.placed) >= j.w.MinPods {
		return // surplus pods that find no room are nothing to tell
	}
	if j.numbers == nil {
		j.numbers = new(Numbers)
	}
	j.reason, *j.numbers = reason, n
}

// shapes numbers the distinct forms of workloads.
type shapes struct {
	ids   map[string]int
	quick map[quickShape]int
	next  int
}

// quickShape is a form with one podSet and one request, which most have.
type quickShape struct {
	pool              string
	request           snapshot.Request
	count, constraint int
	cpu, memory, pods int64
}

func (s *shapes) of(w *snapshot.Workload, pool string) int {
	if len(w.PodSets) == 1 && len(w.PodSets[0].Requests) == 1 && len(w.PodSets[0].Needs.Extended) == 0 {
		set := &w.PodSets[0]
		key := quickShape{pool, set.Requests[0], set.Count, set.Constraint, set.Needs.MilliCPU, int64(set.Needs.Memory), set.Needs.Pods}
		return number(s, s.quick, key)
	}
	var b strings.Builder
	b.WriteString(pool)
	for i := range w.PodSets {
		set := &w.PodSets[i]
		fmt.Fprintf(&b, "\x00%d %d %v %v", set.Count, set.Constraint, set.Requests, set.Needs)
	}
	return number(s, s.ids, b.String())
}

func number[K comparable](s *shapes, known map[K]int, key K) int {
	id, found := known[key]
	if !found {
		id = s.next
		known[key] = id
		s.next++
	}
	return id
}
