package decide

import (
	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes/quantity"
)

// futileKey names a search that failed; leaf is -1 for moves, which do not
// depend on the queue.
type futileKey struct {
	leaf int
	fit  fitKey
	own  bool // preemption inside the queue
}

// futility is when a search failed, and at which priority.
type futility struct {
	generation int
	priority   int32
}

// isFutile reports whether the same search failed since the use of queues last
// changed, at no lower priority.
func (p *planner) isFutile(key futileKey, priority int32) bool {
	f, known := p.futile[key]
	return known && f.generation == p.generation && priority <= f.priority
}

func (p *planner) noteFutile(key futileKey, priority int32) {
	p.futile[key] = futility{p.generation, priority}
}

// mayMakeRoom says whether others may give way for an ask at all.
func (p *planner) mayMakeRoom(a ask) bool {
	j := &p.jobs[a.job]
	if p.neverFits(j) {
		return false
	}
	for q := j.leaf; q >= 0 && j.w.NonPreemptible; q = p.tree.Queues[q].Parent {
		if p.solid[q].Add(p.want(a)) > p.tree.Queues[q].Deserved {
			return false // nobody's eviction changes that
		}
	}
	if since := max(j.w.Created, j.w.EvictedAt); p.policy.PreemptionDelay > 0 && p.now < since+int64(p.policy.PreemptionDelay) {
		j.delayedUntil = since + int64(p.policy.PreemptionDelay)
		return false
	}
	if a.surplus && (j.start >= 0 || j.promise != nil && j.told < 0) {
		return false // it was given devices in this cycle; further pods may ask in the next
	}
	return true
}

func (p *planner) noteProtected(a ask, until int64) {
	if until > 0 {
		p.jobs[a.job].protectedUntil = until
	}
}

// commit carries the plan of t out: the requester has its place as soon as
// everybody has left. It refuses a plan that is beyond the budget.
func (p *planner) commit(t *trial) bool {
	gone := grouped(t.out)
	if len(gone) > p.evictionsLeft {
		t.j.overBudget = true
		return false
	}
	if t.seats == nil {
		places, ok := p.puts(t.room, t.j, t.counts)
		if !ok {
			return false
		}
		t.seats = places
	}
	p.evictionsLeft -= len(gone)
	p.movesLeft -= len(t.moved)
	p.freed = true
	p.splitRooms()
	p.soft, t.room = t.room, p.soft
	copy(p.used, t.used)
	copy(p.solid, t.solid)
	p.generation++
	clear(p.tightly)
	p.block(t.j, t.seats)
	p.tellRequester(t, gone)
	for _, g := range gone {
		p.evict(t, g)
	}
	for _, m := range t.moved {
		p.move(t, m)
	}
	p.seated(t.j, t.seats)
	p.noteGained(t.j)
	p.touched = append(p.touched, t.j.leaf)
	return true
}

// noteGained remembers that others gave way for j, in this cycle or in the one
// that made its promise.
func (p *planner) noteGained(j *job) {
	if least, known := p.gained[j.leaf]; !j.w.NonPreemptible && (!known || j.w.Priority < least) {
		p.gained[j.leaf] = j.w.Priority
	}
}

// group is all that a plan takes of one workload.
type group struct {
	victim // the first, with its reasons
	amount quantity.MilliGPU
	whole  bool
}

func grouped(out []victim) []group {
	var groups []group
	at := map[int]int{}
	for _, v := range out {
		i, known := at[v.job]
		if !known {
			i = len(groups)
			at[v.job] = i
			groups = append(groups, group{victim: v})
		}
		g := &groups[i]
		g.amount = g.amount.Add(v.amount)
		g.whole = g.whole || v.whole
		g.from = min(g.from, v.from)
	}
	return groups
}

// tellRequester writes the Hold that stands before the evictions of its plan.
func (p *planner) tellRequester(t *trial, gone []group) {
	if t.j.told >= 0 { // more pods of the same workload
		p.extend(t.j, t.seats)
		p.nameVictims(&p.plans[t.j.told], t, gone)
		return
	}
	d := p.waitForRelease(t.j, -1)
	if t.j.live() {
		if pod := p.gatedPod(t.j, t.seats[0].set); pod >= 0 {
			d.Pod = t.j.w.PodSets[t.seats[0].set].Pods[pod].Name
		}
	}
	d.Promise = p.newPromise(t.j, t.seats)
	p.nameVictims(&d, t, gone)
	if t.j.plan >= 0 && !t.j.live() {
		// It was moved or evicted earlier in this cycle: its Evict carries the promise.
		p.plans[t.j.plan].Promise = d.Promise
		return
	}
	t.j.told = len(p.plans)
	p.plans = append(p.plans, d)
}

// nameVictims tells the requester who leaves for it.
func (p *planner) nameVictims(d *Decision, t *trial, gone []group) {
	d.Numbers.Want = d.Numbers.Want.Add(t.want)
	for _, g := range gone {
		d.Victims = append(d.Victims, p.jobs[g.job].ref())
		d.Numbers.Freed = d.Numbers.Freed.Add(g.amount)
	}
	d.Numbers.Victims += len(gone)
	for _, m := range t.moved {
		d.Victims = append(d.Victims, p.jobs[m.job].ref())
	}
}

// evict writes one eviction. Whole workloads wait again.
func (p *planner) evict(t *trial, g group) {
	j := &p.jobs[g.job]
	d := j.decision(Evict)
	d.Rule, d.For = g.rule, t.j.ref()
	d.Numbers = p.evictNumbers(t, g)
	p.touched = append(p.touched, j.leaf)
	if !g.whole {
		for _, v := range t.out {
			if v.job == g.job {
				d.Pods = append(d.Pods, p.namesOf(v.chunk)...)
			}
		}
		j.placed = j.placed[:g.from]
		p.plans = append(p.plans, d)
		return
	}
	j.plan, j.status, j.placed, j.gated = len(p.plans), evicted, nil, nil
	p.plans = append(p.plans, d)
	p.back = append(p.back, ask{job: g.job})
}

// move writes the eviction of a workload that has its next place.
func (p *planner) move(t *trial, m move) {
	j := &p.jobs[m.job]
	d := j.decision(Evict)
	d.Rule, d.For, d.Promise = RuleConsolidate, t.j.ref(), p.newPromise(j, m.places)
	d.Numbers = p.queueNumbers(j)
	d.Numbers.Want = t.want
	j.plan, j.status, j.placed, j.gated = len(p.plans), fixed, m.places, nil
	p.block(j, m.places)
	p.plans = append(p.plans, d)
}

// endStaleGangs ends gangs that ran short of their minimum for longer than the
// grace and were not completed by this cycle, non-preemptible ones too: they
// hold devices and get nothing done.
func (p *planner) endStaleGangs() {
	grace := int64(p.policy.StaleGangGrace)
	for i := range p.jobs {
		j := &p.jobs[i]
		if grace < 0 || j.w.State != snapshot.Started || j.status != running || j.leaf < 0 || j.w.ShortSince == 0 || p.now-j.w.ShortSince <= grace {
			continue
		}
		if !p.short(i) {
			continue
		}
		d := j.decision(Evict)
		d.Rule = RuleStaleGang
		d.Numbers = p.queueNumbers(j)
		d.Numbers.PlacedPods, d.Numbers.Pods = len(j.placed), podsOf(j)
		d.Numbers.Wait = p.policy.StaleGangGrace
		j.plan, j.status = len(p.plans), evicted
		p.plans = append(p.plans, d)
	}
}

// short reports whether pods of a gang have no place.
func (p *planner) short(at int) bool {
	for set, n := range p.counts(ask{job: at}) {
		if n > 0 && devices(&p.jobs[at].w.PodSets[set]) {
			return true
		}
	}
	return false
}
