package decide

import (
	"slices"
	"time"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
)

// explainWaiting writes one Hold with a reason for everything that waits.
func (p *planner) explainWaiting() {
	for i := range p.jobs {
		j := &p.jobs[i]
		switch {
		case j.w.State == snapshot.Started && j.plan < 0:
			p.explainPods(i)
		case j.w.State != snapshot.Waiting || j.status == fixed:
		case j.leaf < 0:
			p.log = append(p.log, p.noQueue(j, j.decision(Hold)))
		default:
			d := j.decision(Hold)
			d.Reason, d.Numbers = p.why(i)
			p.log = append(p.log, d)
		}
	}
}

// noQueue says what is wrong with the queue of j.
func (p *planner) noQueue(j *job, d Decision) Decision {
	d.Reason, d.Numbers.Queue = classes.ReasonQueueNotFound, j.w.Queue
	if problem, broken := p.tree.Broken(j.w.Queue); broken {
		d.Reason, d.Numbers.At, d.Numbers.Ahead = classes.ReasonQueueMisconfigured, problem.Queue, problem.What
	}
	return d
}

// explainPods writes a Hold for every gated pod that a started gang lacks.
func (p *planner) explainPods(at int) {
	j := &p.jobs[at]
	if j.w.Uncharged || j.leaf < 0 || p.lacks(j) {
		for set, pods := range j.gated {
			for _, pod := range pods {
				d := j.decision(Hold)
				if j.leaf < 0 {
					d = p.noQueue(j, d)
				} else {
					d.Reason, d.Numbers = p.why(at)
				}
				d.Pod = j.w.PodSets[set].Pods[pod].Name
				p.log = append(p.log, d)
			}
		}
	}
}

// why finds the reason of a workload that was given nothing, with its numbers.
func (p *planner) why(at int) (classes.Reason, Numbers) {
	j := &p.jobs[at]
	if j.w.Uncharged {
		return classes.ReasonUncharged, Numbers{Queue: j.w.Queue}
	}
	if j.reason != "" && j.reason != classes.ReasonNeverFits {
		return j.reason, *j.numbers
	}
	n := p.roomNumbers(ask{job: at})
	wait := func(until int64) Numbers { n.Wait = time.Duration(until - p.now); return n }
	switch {
	case n.TotalGPUs == 0:
		return classes.ReasonPoolEmpty, n
	case j.reason == classes.ReasonNeverFits:
		return classes.ReasonNeverFits, n
	case j.overBudget:
		return classes.ReasonEvictionBudget, n
	case j.delayedUntil > 0:
		return classes.ReasonPreemptionDelay, wait(j.delayedUntil)
	case j.protectedUntil > 0:
		return classes.ReasonProtected, wait(j.protectedUntil)
	case n.FitNodes > 0:
		return classes.ReasonNodesDoNotFit, n
	case p.idleAtEnd(j.pool) >= p.want(ask{job: at}):
		return classes.ReasonFragmented, n
	case j.overShare:
		return classes.ReasonOverFairShare, n
	default:
		return classes.ReasonWaitingForCapacity, n
	}
}

// queueNumbers are the numbers of j's queue now.
func (p *planner) queueNumbers(j *job) Numbers {
	if j.leaf < 0 {
		return Numbers{Queue: j.w.Queue}
	}
	n := p.numbersOf(j.leaf)
	n.Queue = j.w.Queue
	return n
}

// numbersOf are the numbers of a queue of the tree now.
func (p *planner) numbersOf(queue int) Numbers {
	q := &p.tree.Queues[queue]
	return Numbers{
		Pool: q.Pool, At: q.Spec.Name, Deserved: q.Deserved, Share: p.shares.Share[queue],
		Used: p.used[queue], Limit: q.Spec.Limit,
	}
}

// evictNumbers say which rule holds between which queues.
func (p *planner) evictNumbers(t *trial, g group) Numbers {
	n := p.numbersOf(g.at)
	n.Queue, n.Used, n.Want, n.Freed = p.jobs[g.job].w.Queue, g.usedAt, t.want, g.amount
	n.Priority, n.OtherPriority = p.jobs[g.job].w.Priority, t.j.w.Priority
	other := p.numbersOf(g.against)
	n.OtherAt, n.OtherDeserved, n.OtherShare, n.OtherUsed = other.At, other.Deserved, other.Share, g.usedBy
	return n
}

// roomNumbers counts what the pool has for what a waits for. They are the same
// for all of one form, but for those of the queue.
func (p *planner) roomNumbers(a ask) Numbers {
	j, key := &p.jobs[a.job], p.fitKey(a)
	n, known := p.counted[key]
	if !known {
		n = p.countRoom(j, p.counts(a))
		p.counted[key] = n
	}
	own := p.queueNumbers(j)
	n.Queue, n.At, n.Deserved, n.Share, n.Used, n.Limit = own.Queue, own.At, own.Deserved, own.Share, own.Used, own.Limit
	n.Want = p.want(a)
	return n
}

func (p *planner) countRoom(j *job, counts []int) Numbers {
	n := Numbers{Pool: j.pool.name, Pods: podsOf(j), TotalGPUs: j.pool.gpus}
	set := p.scarcest(j, counts)
	if set < 0 {
		return n
	}
	s := &j.w.PodSets[set]
	r := s.Requests[p.scarcestRequest(j, s)]
	n.WantGPUs, n.Whole, n.WantBytes, n.WantPPM, n.Profile = r.Count, r.Kind == snapshot.Whole, r.Bytes, r.PPM, r.Profile.Name
	for i := range p.in.Nodes {
		node := &p.in.Nodes[i]
		if node.Pool != j.pool.name {
			continue
		}
		most := 0
		for g, gpu := range p.hard.GPUs(i) {
			n.LargestBytes = max(n.LargestBytes, gpu.Usable)
			if fitsWhenFree(node.GPUs[g], r) {
				most++
			}
			if node.Schedulable && gpu.Fits(r) {
				n.FreeGPUs++
			}
		}
		n.MostOnNode = max(n.MostOnNode, most)
	}
	q := p.search(j, set)
	n.PlacedPods = p.hard.CountFit(q, counts[set])
	n.GangFits = p.hardware().CountFit(q, counts[set])
	bare := *s
	bare.Needs = snapshot.Resources{}
	q.Set, q.Allowed = &bare, nil
	if devicesOnly := p.hard.CountFit(q, counts[set]); devicesOnly >= counts[set] && n.PlacedPods < counts[set] {
		n.FitNodes = devicesOnly
	}
	return n
}

// scarcest is the podSet to talk about: the first, largest first, that does not
// fit alone; else the largest.
func (p *planner) scarcest(j *job, counts []int) int {
	order := slices.DeleteFunc(largestFirst(j.w.PodSets), func(set int) bool { return !devices(&j.w.PodSets[set]) || counts[set] == 0 })
	if len(order) == 0 {
		return -1
	}
	for _, set := range order {
		if p.hard.CountFit(p.search(j, set), counts[set]) < counts[set] {
			return set
		}
	}
	return order[0]
}

// scarcestRequest is the first request that no node could serve alone now; else the first.
func (p *planner) scarcestRequest(j *job, set *snapshot.PodSet) int {
	for at, r := range set.Requests {
		most := 0
		for i := range p.in.Nodes {
			if !j.pool.nodes.Has(i) || !p.in.Nodes[i].Schedulable {
				continue
			}
			n := 0
			for _, g := range p.hard.GPUs(i) {
				if g.Fits(r) {
					n++
				}
			}
			most = max(most, n)
		}
		if most < r.Count {
			return at
		}
	}
	return 0
}

// podsOf counts the pods of a gang that need devices.
func podsOf(j *job) int {
	n := 0
	for set := range j.w.PodSets {
		if devices(&j.w.PodSets[set]) {
			n += j.gang[set]
		}
	}
	return n
}

// idleAtEnd is what a pool has free after everything was decided.
func (p *planner) idleAtEnd(pool *pool) quantity.MilliGPU {
	idle, known := p.idleNow[pool.name]
	if !known {
		idle = p.idle(p.hard, pool)
		if p.idleNow == nil {
			p.idleNow = map[string]quantity.MilliGPU{}
		}
		p.idleNow[pool.name] = idle
	}
	return idle
}
