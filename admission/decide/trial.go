package decide

import (
	"slices"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes/quantity"
)

// trial is one search for room: a copy of what will be free and of what queues
// use, with victims taken out. It is kept by commit and else forgotten.
type trial struct {
	p     *planner
	room  *snapshot.Room
	next  *snapshot.Room // scratch of moves
	used  []quantity.MilliGPU
	solid []quantity.MilliGPU

	a      ask
	j      *job
	counts []int
	want   quantity.MilliGPU
	set    int   // the only podSet that needs devices, -1 = there are several
	caps   []int // per node: pods of set that it could take, when set >= 0
	fits   int   // their sum
	own    bool  // victims are of the requester's own queue
	tries  int   // placements of several podSets that may still be tried
	others *others

	seats     []place // of the requester, if room holds it already
	out       []victim
	moved     []move
	protected int64 // when the first protected victim could be taken, 0 = none was met
}

// victim is a chunk that was taken, and why it may be.
type victim struct {
	chunk
	rule    Rule
	at      int // its queue, or the queue above it that is compared
	against int // the requester's side of that comparison
	usedAt  quantity.MilliGPU
	usedBy  quantity.MilliGPU // of against
}

// move is a workload with its places in the new plan.
type move struct {
	job    int
	places []place
}

// maxTries bounds the placements that are tried for a gang of several podSets
// in one search; equal pods are counted instead.
const maxTries = 200

// begin starts a search for a. There is one at a time.
func (p *planner) begin(a ask) *trial {
	if p.trial == nil {
		p.trial = &trial{p: p, room: p.hard.Fork(), next: p.hard.Fork(), caps: make([]int, p.hard.Len())}
	}
	t := p.trial
	t.a, t.j, t.counts, t.want = a, &p.jobs[a.job], p.counts(a), p.want(a)
	t.set = -1
	if set, only := single(t.j, t.counts); only {
		t.set = set
	}
	t.protected, t.own = 0, false
	t.reset()
	return t
}

// reset forgets what was taken.
func (t *trial) reset() {
	p := t.p
	t.room.CopyFrom(p.softRoom())
	t.used = append(t.used[:0], p.used...)
	t.solid = append(t.solid[:0], p.solid...)
	t.out, t.moved, t.seats, t.tries = t.out[:0], nil, nil, maxTries
	if t.set < 0 {
		return
	}
	t.fits = 0
	q := p.search(t.j, t.set)
	for i := range t.caps {
		t.caps[i] = 0
		if t.j.pool.nodes.Has(i) && (q.Allowed == nil || q.Allowed.Has(i)) {
			t.caps[i] = t.room.Capacity(i, q.Set, t.counts[t.set])
			t.fits += t.caps[i]
		}
	}
}

// recount looks again at the nodes of some places.
func (t *trial) recount(places []place) {
	if t.set < 0 {
		return
	}
	q := t.p.search(t.j, t.set)
	for _, at := range places {
		if t.j.pool.nodes.Has(at.node) && (q.Allowed == nil || q.Allowed.Has(at.node)) {
			n := t.room.Capacity(at.node, q.Set, t.counts[t.set])
			t.fits += n - t.caps[at.node]
			t.caps[at.node] = n
		}
	}
}

// fit reports whether the requester could start now.
func (t *trial) fit() bool {
	if reason, _ := t.p.stop(t.j, t.want, t.used, t.solid); reason != "" {
		return false
	}
	if t.own && t.grows() {
		return false
	}
	if t.set >= 0 {
		return t.fits >= t.counts[t.set]
	}
	if t.tries == 0 {
		return false
	}
	t.tries--
	t.p.scratch().CopyFrom(t.room)
	_, ok := t.p.put(t.p.scratch(), t.j, t.counts)
	return ok
}

// grows reports whether a queue of the requester's path would use more than
// before and more than its share. Beyond its share a queue grows into free
// devices only: what it gained by an eviction inside it would be taken back, and
// the circle would begin anew.
func (t *trial) grows() bool {
	p := t.p
	for q := t.j.leaf; q >= 0; q = p.tree.Queues[q].Parent {
		if t.used[q].Add(t.want) > max(p.enough(q), p.used[q]) {
			return true
		}
	}
	return false
}

// takeOut frees a victim's devices.
func (t *trial) takeOut(v victim) {
	j := &t.p.jobs[v.job]
	places := j.placed[v.from:v.to]
	for _, at := range places {
		t.room.Give(at.node, at.held, needsOf(j, at))
	}
	for q := j.leaf; q >= 0; q = t.p.tree.Queues[q].Parent {
		t.used[q] = t.used[q].Sub(v.amount)
	}
	t.recount(places)
	t.out = append(t.out, v)
}

// putBack is the reverse for the victim at a position of out.
func (t *trial) putBack(at int) {
	v := t.out[at]
	j := &t.p.jobs[v.job]
	places := j.placed[v.from:v.to]
	for _, at := range places {
		t.room.Hold(at.node, at.held, needsOf(j, at))
	}
	for q := j.leaf; q >= 0; q = t.p.tree.Queues[q].Parent {
		t.used[q] = t.used[q].Add(v.amount)
	}
	t.recount(places)
	t.out = slices.Delete(t.out, at, at+1)
}

// prune puts back every victim that is not needed, the last taken first: so
// those who are served best stay victims. The very last is needed: without it
// the requester did not fit.
func (t *trial) prune() {
	for at := len(t.out) - 2; at >= 0; at-- {
		v := t.out[at]
		if !v.whole && slices.ContainsFunc(t.out, func(o victim) bool { return o.job == v.job && o.whole }) {
			continue // a gang does not go while its surplus stays
		}
		t.putBack(at)
		if !t.fit() {
			t.takeOut(v)
			last := len(t.out) - 1
			copy(t.out[at+1:], t.out[at:last])
			t.out[at] = v
		}
	}
}

// harm is what a plan costs: workloads, then work that is lost. What must not be
// done at all is worse than anything.
type harm struct {
	unfair    bool
	workloads int
	lost      int64
}

func (h harm) less(o harm) bool {
	if h.unfair != o.unfair {
		return o.unfair
	}
	return h.workloads < o.workloads || h.workloads == o.workloads && h.lost < o.lost
}

// harm is the cost of the plan as it stands.
func (t *trial) harm() harm {
	var h harm
	_, h.unfair = t.unfair()
	seen := map[int]bool{}
	for _, v := range t.out {
		if !seen[v.job] {
			seen[v.job] = true
			h.workloads++
		}
		h.lost += v.lost
	}
	return h
}

// undo puts back everybody who was taken out: the same as reset, as long as the
// requester was not seated.
func (t *trial) undo() {
	for len(t.out) > 0 {
		t.putBack(len(t.out) - 1)
	}
}

// again makes the trial one with exactly these victims taken out.
func (t *trial) again(out []victim) {
	t.undo()
	for _, v := range out {
		t.takeOut(v)
	}
}
