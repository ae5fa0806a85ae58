package decide

import (
	"github.com/fairshard/fairshard/classes/quantity"
)

// reclaim makes other queues give back what a needs. The requester's queue must
// stay within its fair share with it.
func (p *planner) reclaim(a ask) bool {
	j := &p.jobs[a.job]
	if !p.mayMakeRoom(a) {
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
	p := t.p
	cursor := make([]int, len(p.tree.Queues))
	first := func(leaf int) chunk { return p.chunks(victimsKey{leaf, biggest})[cursor[leaf]] }
	var leaves []int
	for _, leaf := range hot {
		if len(p.chunks(victimsKey{leaf, biggest})) > 0 {
			leaves = append(leaves, leaf)
		}
	}
	most := p.newHeaps(leaves, func(a, b, x, y int) int {
		return p.compare(standing{b, t.used[b], t.used[b].Sub(first(y).amount)}, standing{a, t.used[a], t.used[a].Sub(first(x).amount)})
	})
	taken := -1
	advance := func(leaf int) {
		cursor[leaf]++
		if cursor[leaf] == len(p.chunks(victimsKey{leaf, biggest})) {
			most.remove(leaf)
			return
		}
		most.fix(leaf)
	}
	return source{next: func() (victim, bool) {
		if taken >= 0 {
			advance(taken)
			taken = -1
		}
		for leaf := most.best(); leaf >= 0; leaf = most.best() {
			v, may := t.rule(first(leaf))
			switch {
			case !may:
				most.remove(leaf)
			case !t.takeable(v.chunk, false):
				advance(leaf)
			default:
				taken = leaf
				return v, true
			}
		}
		return victim{}, false
	}}
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
	p := t.p
	for _, v := range t.out {
		by, at := p.tree.Split(t.j.leaf, p.jobs[v.job].leaf)
		share, used := p.shares.Share[by], t.used[by].Add(t.want)
		other := p.shares.Share[at]
		if used > share && other > 0 && compareRatio(used, share, t.used[at], other) >= 0 {
			return false
		}
	}
	return true
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
		for _, sibling := range p.overservedChildren(p.tree.Queues[q].Parent) {
			if sibling == q || p.tree.Queues[sibling].Pool != p.tree.Queues[leaf].Pool {
				continue
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
