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

func (p *planner) reclaimFrom(a ask, hot []int) bool {
	t := p.begin(a)
	found := t.gather(t.fromOthers(hot, false), nil)
	if found {
		t.leastHarm(hot)
	} else {
		t.reset()
		found = t.gatherAndMove(hot)
	}
	if !found || !t.fair() {
		p.noteProtected(a, t.protected)
		return false
	}
	return p.commit(t)
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

// rule says whether a queue must give back a chunk, judged before it is taken:
// both sides are compared where their paths from the root part. The victim's
// side is above its fair share; or the requester's side stays within what it
// deserves and the victim's side is above that. A borrower takes nothing of a
// queue that is inside what it deserves itself.
func (t *trial) rule(c chunk) (victim, bool) {
	p, leaf := t.p, t.p.jobs[c.job].leaf
	by, at := p.tree.Split(t.j.leaf, leaf)
	v := victim{chunk: c, at: at, against: by, usedAt: t.used[at], usedBy: t.used[by]}
	borrows := t.used[by].Add(t.want) > p.shares.Deserved[by] || t.used[t.j.leaf].Add(t.want) > p.shares.Deserved[t.j.leaf]
	if borrows && t.used[leaf] <= p.shares.Deserved[leaf] {
		return v, false
	}
	switch {
	case t.used[at] > p.enough(at):
		v.rule = RuleReclaimFairShare
	case t.used[by].Add(t.want) <= p.shares.Deserved[by] && t.used[at] > p.shares.Deserved[at]:
		v.rule = RuleReclaimDeserved
	default:
		return v, false
	}
	return v, true
}

// fair is the guard against loops, at every level of the requester's path: its
// side must not end above its share and fuller than a sibling that gave back.
func (t *trial) fair() bool {
	for _, v := range t.out {
		if v.rule != RulePreempt && t.p.fuller(v.against, t.used[v.against].Add(t.want), v.at, t.used[v.at]) {
			return false
		}
	}
	return true
}

// tooFull reports whether taking v now would break that guard.
func (t *trial) tooFull(v victim) bool {
	return t.p.fuller(v.against, t.used[v.against].Add(t.want), v.at, t.used[v.at].Sub(v.amount))
}

// fuller reports whether queue a with use usedA is above its share and at least
// as full as its sibling b with usedB.
func (p *planner) fuller(a int, usedA quantity.MilliGPU, b int, usedB quantity.MilliGPU) bool {
	shareA, shareB := p.shares.Share[a], p.shares.Share[b]
	return usedA > shareA && shareB > 0 && compareRatio(usedA, shareA, usedB, shareB) >= 0
}

// compareRatio compares a/b with c/d; without a share the first is infinite.
func compareRatio(a, b, c, d quantity.MilliGPU) int {
	if b == 0 {
		return 1
	}
	return compareParts(a, b, c, d)
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
