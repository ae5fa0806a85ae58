package decide

import "slices"

// leastHarm replaces a plan that was found by one that evicts fewer workloads,
// or as many with less work lost, of the same queues and no higher priorities.
// What is tried: the largest victims first, and every single victim.
func (t *trial) leastHarm(hot []int) {
	t.improve(func(allowed map[int]int32) bool {
		leaves := slices.DeleteFunc(slices.Clone(hot), func(leaf int) bool { _, ok := allowed[leaf]; return !ok })
		return t.gather(t.fromOthers(leaves, true), nil)
	}, func(c chunk) (victim, bool) {
		v, may := t.rule(c)
		return v, may && !t.tooFull(v) && t.takeable(c, false)
	})
}

// improve compares the plan of t with what bulk finds and with single victims.
func (t *trial) improve(bulk func(allowed map[int]int32) bool, judge func(chunk) (victim, bool)) {
	if len(t.out) == 0 {
		return
	}
	best, least := slices.Clone(t.out), t.harm()
	allowed := t.tiers(best)
	if len(best) > 1 && t.set >= 0 {
		t.undo()
		if bulk(allowed) && t.within(allowed) && t.harm().less(least) {
			best, least = slices.Clone(t.out), t.harm()
		}
	}
	if one, found := t.bestSingle(allowed, judge); found && (harm{workloads: 1, lost: one.lost}).less(least) {
		best = []victim{one}
	}
	t.again(best)
}

// tiers is the highest priority that a plan takes from each queue.
func (t *trial) tiers(out []victim) map[int]int32 {
	tiers := map[int]int32{}
	for _, v := range out {
		j := &t.p.jobs[v.job]
		if highest, known := tiers[j.leaf]; !known || j.w.Priority > highest {
			tiers[j.leaf] = j.w.Priority
		}
	}
	return tiers
}

// within reports whether the plan takes nothing beyond tiers.
func (t *trial) within(tiers map[int]int32) bool {
	for _, v := range t.out {
		if highest, known := tiers[t.p.jobs[v.job].leaf]; !known || t.p.jobs[v.job].w.Priority > highest {
			return false
		}
	}
	return true
}

// bestSingle finds the one victim whose eviction is enough and costs least; of
// equals the one that comes first in the order of victims.
func (t *trial) bestSingle(tiers map[int]int32, judge func(chunk) (victim, bool)) (best victim, found bool) {
	t.undo()
	leaves := make([]int, 0, len(tiers))
	for leaf := range tiers {
		leaves = append(leaves, leaf)
	}
	slices.Sort(leaves)
	for _, leaf := range leaves {
		for _, c := range t.p.chunks(victimsKey{leaf: leaf}) {
			if t.p.jobs[c.job].w.Priority > tiers[leaf] || c.whole && elastic(t.p.jobs[c.job].w) {
				continue
			}
			v, may := judge(c)
			if !may || found && v.lost >= best.lost {
				continue
			}
			t.takeOut(v)
			if _, unfair := t.unfair(); !unfair && t.fit() {
				best, found = v, true
			}
			t.putBack(len(t.out) - 1)
		}
	}
	return best, found
}
