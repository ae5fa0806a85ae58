package decide

import (
	"slices"

	"github.com/fairshard/fairshard/classes/quantity"
)

// reclaim makes other queues give back what a needs. The requester's queue must
// stay within its fair share with it. Nobody is evicted for surplus pods while
// more important work of their queue waits, which would take them over.
func (p *planner) reclaim(a ask) bool {
	j := &p.jobs[a.job]
	if !p.mayMakeRoom(a) || a.surplus && p.line.moreImportant(a) {
		return false
	}
	want := p.want(a)
	if p.used[j.leaf].Add(want) > p.shares.Share[j.leaf] {
		j.overShare = true
		return false
	}
	key := futileKey{leaf: j.leaf, fit: p.fitKey(a)}
	if p.isFutile(key, 0) {
		return false
	}
	hot := p.overservedLeaves(j.leaf, want)
	if len(hot) > 0 && p.reclaimFrom(a, hot) {
		return true
	}
	p.noteFutile(key, 0)
	return false
}

// reclaimFrom looks for a plan among the leaves hot. If a queue cannot give what
// the plan takes from it, it looks again without that queue.
func (p *planner) reclaimFrom(a ask, hot []int) bool {
	t := p.begin(a)
	for t.find(hot) {
		v, unfair := t.unfair()
		if !unfair {
			return p.commit(t)
		}
		hot = slices.DeleteFunc(slices.Clone(hot), func(leaf int) bool {
			_, at := p.tree.Split(t.j.leaf, leaf)
			return at == v.at
		})
		t.reset()
	}
	p.noteProtected(a, t.protected)
	return false
}

// find looks for a plan that evicts, and if there is none for one that also moves.
func (t *trial) find(hot []int) bool {
	if t.gather(t.fromOthers(hot, false), nil) {
		t.leastHarm(hot)
		return true
	}
	t.reset()
	return t.gatherAndMove(hot)
}

// source is where victims come from, in order.
type source struct {
	next func() (victim, bool)
}

// gather takes victims until the requester fits. step is called after each and
// may end the search with success; nil = none.
func (t *trial) gather(from source, step func() bool) bool {
	if t.fit() {
		return true
	}
	for v, more := from.next(); more; v, more = from.next() {
		t.takeOut(v)
		if t.fit() {
			t.prune()
			return true
		}
		if step != nil && step() {
			return true
		}
	}
	return false
}

// fromOthers yields victims of other queues: of the most over-served queue at
// each level of the tree, as long as the rules let it give back.
func (t *trial) fromOthers(hot []int, biggest bool) source {
	o := t.others
	if o == nil {
		o = &others{t: t, cursor: make([]int, len(t.p.tree.Queues))}
		o.most = t.p.newHeaps(o.compare)
		t.others = o
	}
	clear(o.cursor)
	o.biggest, o.taken, o.later, o.leaves = biggest, -1, o.later[:0], o.leaves[:0]
	for _, leaf := range hot {
		if len(t.p.chunks(victimsKey{leaf, biggest})) == 0 {
			continue
		}
		switch may, now := o.may(leaf); {
		case now:
			o.leaves = append(o.leaves, leaf)
		case may:
			o.later = append(o.later, leaf)
		}
	}
	o.most.reset(o.leaves)
	return source{next: o.next}
}

// others is the state of fromOthers. A trial has one; the last source is the one
// that counts.
type others struct {
	t       *trial
	biggest bool
	leaves  []int // that may give back at once
	cursor  []int // per queue: its first chunk that was not yielded
	most    heaps // the most over-served first
	later   []int // queues that may give back once the requester's side gave something itself
	taken   int   // queue of the chunk that was yielded last, -1 = none
}

func (o *others) first(leaf int) *chunk {
	return &o.t.p.chunks(victimsKey{leaf, o.biggest})[o.cursor[leaf]]
}

// compare puts the queue first that compare puts last.
func (o *others) compare(a, b, x, y int) int {
	used := o.t.used
	return o.t.p.compare(standing{b, used[b], used[b].Sub(o.first(y).amount)}, standing{a, used[a], used[a].Sub(o.first(x).amount)})
}

// may says whether a queue may have to give back its first chunk at all, and now.
func (o *others) may(leaf int) (ever, now bool) {
	v, may := o.t.rule(*o.first(leaf))
	return may, may && !o.t.tooFull(v)
}

func (o *others) advance(leaf int) {
	o.cursor[leaf]++
	if o.cursor[leaf] == len(o.t.p.chunks(victimsKey{leaf, o.biggest})) {
		o.most.remove(leaf)
		return
	}
	o.most.fix(leaf)
}

func (o *others) next() (victim, bool) {
	o.afterTaking()
	for leaf := o.most.best(); leaf >= 0; leaf = o.most.best() {
		v, may := o.t.rule(*o.first(leaf))
		switch {
		case !may:
			o.most.remove(leaf)
		case o.t.tooFull(v):
			o.most.remove(leaf)
			o.later = append(o.later, leaf)
		case !o.t.takeable(v.chunk, false):
			o.advance(leaf)
		default:
			o.taken = leaf
			return v, true
		}
	}
	return victim{}, false
}

// afterTaking goes on behind the chunk that was taken, and lets those back in
// that may give back now.
func (o *others) afterTaking() {
	if o.taken < 0 {
		return
	}
	o.advance(o.taken)
	o.taken = -1
	o.later = slices.DeleteFunc(o.later, func(leaf int) bool {
		_, now := o.may(leaf)
		if now {
			o.most.add(leaf)
		}
		return now
	})
}

// takeable reports whether a chunk is still there and not protected.
func (t *trial) takeable(c chunk, own bool) bool {
	if j := &t.p.jobs[c.job]; j.status != running || c.to > len(j.placed) {
		return false
	}
	until := t.p.protectedUntil(c, own)
	if until > 0 && (t.protected == 0 || until < t.protected) {
		t.protected = until
	}
	return until == 0
}

// overserved is the children of one queue that use more than their share, or
// than they deserve.
type overserved struct {
	generation int
	children   []int
}

// overservedLeaves lists the leaves that may have to give back to leaf: those
// below a sibling of its path that uses more than its share or than it deserves.
func (p *planner) overservedLeaves(leaf int, want quantity.MilliGPU) []int {
	var leaves []int
	for q := leaf; q >= 0; q = p.tree.Queues[q].Parent {
		within := p.used[q].Add(want) <= p.shares.Deserved[q]
		alone := len(leaves) == 0 // nothing below q gives back, so q will use exactly want more
		for _, sibling := range p.overservedChildren(p.tree.Queues[q].Parent) {
			if sibling == q || p.tree.Queues[sibling].Pool != p.tree.Queues[leaf].Pool {
				continue
			}
			if alone && p.fuller(q, p.used[q].Add(want), sibling, p.used[sibling]) {
				continue // see fair: it would refuse every plan
			}
			if p.used[sibling] > p.enough(sibling) || within {
				leaves = p.addLeaves(leaves, sibling)
			}
		}
	}
	return leaves
}

// overservedChildren lists the children of parent (-1: the roots) that use more
// than they deserve or than their share.
func (p *planner) overservedChildren(parent int) []int {
	known, found := p.over[parent]
	if found && known.generation == p.generation {
		return known.children
	}
	children := p.tree.Roots
	if parent >= 0 {
		children = p.tree.Queues[parent].Children
	}
	now := overserved{generation: p.generation, children: known.children[:0]}
	for _, q := range children {
		if p.used[q] > min(p.shares.Deserved[q], p.enough(q)) {
			now.children = append(now.children, q)
		}
	}
	p.over[parent] = now
	return now.children
}

func (p *planner) addLeaves(leaves []int, q int) []int {
	if !p.tree.Queues[q].Spec.Cohort {
		if p.used[q] > 0 {
			leaves = append(leaves, q)
		}
		return leaves
	}
	for _, child := range p.tree.Queues[q].Children {
		leaves = p.addLeaves(leaves, child)
	}
	return leaves
}
