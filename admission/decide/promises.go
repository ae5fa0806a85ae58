package decide

import (
	"cmp"
	"slices"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes/quantity"
)

// keepPromises lets work that others made room for, or that was moved, take its
// place before everything else that waits. A promise that can no longer be kept
// is void: the work waits like any other.
func (p *planner) keepPromises() {
	var promised []ask
	for i := range p.jobs {
		w := p.jobs[i].w
		if w.Promise == nil || p.now-w.Promise.Since > int64(p.policy.PromiseTimeout) || p.jobs[i].leaf < 0 || w.Uncharged {
			continue
		}
		a := ask{job: i, surplus: w.State == snapshot.Started}
		if w.State != snapshot.Ended && (!a.surplus || slices.Contains(p.waiting[p.jobs[i].leaf], a)) {
			promised = append(promised, a)
		}
	}
	slices.SortFunc(promised, func(a, b ask) int {
		x, y := p.jobs[a.job].w.Promise, p.jobs[b.job].w.Promise
		return cmp.Or(cmp.Compare(x.Since, y.Since), cmp.Compare(x.Turn, y.Turn), p.earlier(a, b))
	})
	for _, a := range promised {
		p.keepPromise(a)
	}
}

func (p *planner) keepPromise(a ask) {
	j := &p.jobs[a.job]
	places, now, ok := []place(nil), false, false
	if p.mayTake(j, p.promised(j)) {
		places, now, ok = p.seatAt(a, j.w.Promise.Nodes)
	}
	if !ok {
		if !p.mayTake(j, p.want(a)) {
			return
		}
		if places, now, ok = p.seat(a); !ok {
			return
		}
	}
	if j.w.State == snapshot.Returning {
		p.seated(j, places) // they are kept until it is queued again
		return
	}
	leaf := j.leaf
	p.take(a, places, now)
	p.noteGained(j)
	if !now {
		p.log[len(p.log)-1].Promise = j.w.Promise
	}
	p.waiting[leaf] = slices.DeleteFunc(p.waiting[leaf], func(b ask) bool { return a == b })
}

// seatAt is seat on given nodes.
func (p *planner) seatAt(a ask, nodes [][]string) (places []place, now, ok bool) {
	j := &p.jobs[a.job]
	p.scratch().CopyFrom(p.hard)
	if places, ok = p.putAt(p.scratch(), a, nodes); ok && p.sameChoice(j, places) {
		p.hard.CopyFrom(p.scratch())
		p.holdAll(p.soft, j, places)
		return places, true, true
	}
	if p.soft == nil {
		return nil, false, false
	}
	p.scratch().CopyFrom(p.soft)
	if places, ok = p.putAt(p.scratch(), a, nodes); ok {
		p.soft.CopyFrom(p.scratch())
		p.block(j, places)
	}
	return places, false, ok
}

// putAt places the pods of a on nodes, and as many surplus pods as were promised;
// false if nodes are not there, not enough, not allowed, or do not fit.
func (p *planner) putAt(room *snapshot.Room, a ask, nodes [][]string) ([]place, bool) {
	j, counts := &p.jobs[a.job], p.counts(a)
	var places []place
	for set := range counts {
		if !devices(&j.w.PodSets[set]) {
			continue
		}
		if set >= len(nodes) || len(nodes[set]) < counts[set] || len(nodes[set]) > max(counts[set], j.w.PodSets[set].Count-len(j.placed)) {
			return nil, false
		}
		q := p.search(j, set)
		for _, name := range nodes[set] {
			node, known := room.Find(name)
			if !known || p.in.Nodes[node].Pool != q.Pool || q.Allowed != nil && !q.Allowed.Has(node) {
				return nil, false
			}
			held, fits := room.Take(node, q.Set)
			if !fits {
				return nil, false
			}
			places = append(places, p.newPlace(set, node, held))
		}
	}
	return places, len(places) > 0
}

// mayTake reports whether no limit keeps j from taking amount.
func (p *planner) mayTake(j *job, amount quantity.MilliGPU) bool {
	reason, _ := p.stop(j, amount, p.used, p.solid)
	return reason == ""
}

// promised is the charge of all pods of j's promise.
func (p *planner) promised(j *job) quantity.MilliGPU {
	var sum quantity.MilliGPU
	for set := range j.w.PodSets {
		if set < len(j.w.Promise.Nodes) {
			sum = sum.Add(j.w.PodSets[set].Charge.Mul(int64(len(j.w.Promise.Nodes[set]))))
		}
	}
	return sum
}
