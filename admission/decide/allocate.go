package decide

import (
	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
)

// allocate starts what fits into free devices, the least served queue first.
// Preemptible work may go beyond its fair share here.
func (p *planner) allocate() {
	p.freed = false
	line := p.newLine()
	for a, more := line.next(); more; a, more = line.next() {
		if !p.start(a) {
			if p.strict(a) {
				p.blockQueue(a)
				line.skipQueue()
			} else {
				line.pop(true)
			}
			continue
		}
		line.pop(false)
		line.refresh(p.touched)
		p.touched = p.touched[:0]
		if more, grows := p.grows(a); grows {
			line.insert(more)
		}
	}
	line.close()
}

// start gives an ask devices, or remembers why it cannot.
func (p *planner) start(a ask) bool {
	j := &p.jobs[a.job]
	if p.neverFits(j) {
		p.refuse(a, classes.ReasonNeverFits, Numbers{})
		return false
	}
	want := p.want(a)
	if reason, at := p.stop(j, want, p.used, p.solid); reason != "" {
		n := p.numbersOf(at)
		n.Want, n.Queue = want, j.w.Queue
		if reason == classes.ReasonNonPreemptibleOverDeserved {
			n.Used = p.solid[at]
		}
		p.refuse(a, reason, n)
		return false
	}
	places, now, ok := p.seat(a)
	if !ok {
		p.refuse(a, "", Numbers{}) // found by counting when it is told
		return false
	}
	p.take(a, places, now)
	return true
}

// take records that an ask has its devices, now or as soon as they are free.
func (p *planner) take(a ask, places []place, now bool) {
	j := &p.jobs[a.job]
	p.touched = append(p.touched, j.leaf)
	switch {
	case !j.live() && j.promise != nil:
		p.extend(j, places)
	case !j.live() && j.plan >= 0: // it was evicted in this cycle and starts anew elsewhere
		p.plans[j.plan].Promise = p.newPromise(j, places)
	case now && j.live():
		p.give(j, places)
		return
	case now:
		p.started(j, places)
	case j.start < 0:
		pod := -1
		if j.live() {
			pod = p.gatedPod(j, places[0].set)
		}
		d := p.waitForRelease(j, pod)
		d.Promise = p.newPromise(j, places)
		p.log = append(p.log, d)
	}
	p.seated(j, places)
}

// seated charges places to j. What only grew may still be a victim; all others
// are not touched again in this cycle.
func (p *planner) seated(j *job, places []place) {
	if j.live() && j.promise == nil {
		p.forgetChunks(j.leaf)
	} else {
		j.status = fixed
	}
	for _, at := range places {
		j.placed = append(j.placed, at)
		p.charge(j.leaf, j.w.PodSets[at.set].Charge, j.w.NonPreemptible)
	}
}

// newPromise keeps places for j.
func (p *planner) newPromise(j *job, places []place) *snapshot.Promise {
	j.promise = &snapshot.Promise{Nodes: p.nodes(j, places), Since: p.now}
	if len(places) > 0 {
		j.promise.Turn = places[0].turn
	}
	return j.promise
}

// extend adds surplus pods to the promise of j.
func (p *planner) extend(j *job, places []place) {
	for set, names := range p.nodes(j, places) {
		j.promise.Nodes[set] = append(j.promise.Nodes[set], names...)
	}
}

// started writes the Start of j, or adds a surplus pod to it.
func (p *planner) started(j *job, places []place) {
	nodes := p.nodes(j, places)
	if j.start >= 0 {
		d := &p.log[j.start]
		for set := range nodes {
			d.Placement[set] = append(d.Placement[set], nodes[set]...)
			d.Turns[set] = append(d.Turns[set], turns(j, places)[set]...)
		}
		return
	}
	d := j.decision(Start)
	d.Placement, d.Turns, d.Numbers = nodes, turns(j, places), p.queueNumbers(j)
	d.Numbers.Want = j.minimum
	j.start = len(p.log)
	p.log = append(p.log, d)
}

// grows returns the next surplus pod of an elastic workload that just got
// devices, if it has one.
func (p *planner) grows(a ask) (ask, bool) {
	j := &p.jobs[a.job]
	more := ask{job: a.job, surplus: true}
	switch {
	case !elastic(j.w) || len(j.placed) < j.w.MinPods || len(j.placed) >= j.w.PodSets[0].Count:
		return more, false
	case j.w.State == snapshot.Started:
		return more, len(j.gated) > 0 && len(j.gated[0]) > 0
	default:
		return more, j.start >= 0 || j.promise != nil
	}
}

// blockQueue tells the rest of a StrictFIFO queue whom it waits for.
func (p *planner) blockQueue(head ask) {
	name := p.jobs[head.job].w.Key()
	for _, a := range p.waiting[p.jobs[head.job].leaf] {
		if a.job != head.job && !a.surplus && p.jobs[a.job].status == idle {
			n := p.queueNumbers(&p.jobs[a.job])
			n.Ahead = name
			p.refuse(a, classes.ReasonBehindHead, n)
		}
	}
}
