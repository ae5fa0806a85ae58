package decide

import "github.com/fairshard/fairshard/classes/quantity"

// rule says whether a queue must give back a chunk, judged before it is taken:
// both sides are compared where their paths from the root part. The victim's
// side is above its fair share; or the requester's side stays within what it
// deserves and the victim's side is above that. A borrower takes nothing of a
// queue that is inside what it deserves itself.
func (t *trial) rule(c chunk) (victim, bool) {
	p, leaf := t.p, t.p.jobs[c.job].leaf
	by, at := p.tree.Split(t.j.leaf, leaf)
	v := victim{chunk: c, at: at, against: by, usedAt: t.used[at], usedBy: t.used[by]}
	if least, gained := p.gained[leaf]; gained && least < p.jobs[c.job].w.Priority {
		return v, false // it would take over what less important work of its queue just gained
	}
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

// unfair is the guard against loops: it names a victim that the plan must not
// have. At every level of the requester's path its side must not end above its
// share and fuller than a sibling that gave back; and no victim may have the
// right to come back at once.
func (t *trial) unfair() (victim, bool) {
	for _, v := range t.out {
		if v.rule != RulePreempt && t.p.fuller(v.against, t.used[v.against].Add(t.want), v.at, t.used[v.at]) || t.comesBack(v) {
			return v, true
		}
	}
	return victim{}, false
}

// comesBack reports whether a victim could reclaim what its side deserves from
// the requester's side, which would then be above what it deserves: where several
// give back, the last may leave room for the first below what they deserve.
func (t *trial) comesBack(v victim) bool {
	deserved := t.p.shares.Deserved
	return v.rule == RuleReclaimFairShare && t.used[v.at].Add(v.amount) <= deserved[v.at] && t.used[v.against].Add(t.want) > deserved[v.against]
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
