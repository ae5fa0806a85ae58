package decide

import (
	"cmp"
	"slices"

	"github.com/fairshard/fairshard/admission/snapshot"
)

// fitKey names a form and a number of pods: what found no room once finds none
// until devices are freed. pods is -1 for a gang of several podSets.
type fitKey struct{ shape, pods int }

func (p *planner) fitKey(a ask) fitKey {
	counts := p.counts(a)
	if len(counts) == 1 {
		return fitKey{p.jobs[a.job].shape, counts[0]}
	}
	return fitKey{p.jobs[a.job].shape, -1}
}

// search is where the pods of one podSet may go.
func (p *planner) search(j *job, set int) snapshot.Search {
	s := &j.w.PodSets[set]
	q := snapshot.Search{Pool: j.pool.name, Set: s, Spread: j.pool.spread}
	if s.Constraint > 0 && s.Constraint <= len(p.allowed) {
		q.Allowed = p.allowed[s.Constraint-1]
	}
	if p.avoid {
		q.Allowed = j.pool.nodes.Without(p.kept, q.Allowed)
	}
	return q
}

// put places counts pods of j's podSets in room. Unless all fit, room may hold
// a part of them and is to be thrown away; see puts.
//
// Equal pods are placed exactly: how many a node takes does not depend on the
// others. Different podSets go largest first, which is a heuristic: a gang of
// several kinds of pods may wait where an exhaustive search finds room.
func (p *planner) put(room *snapshot.Room, j *job, counts []int) ([]place, bool) {
	var places []place
	for _, set := range largestFirst(j.w.PodSets) {
		if !devices(&j.w.PodSets[set]) {
			continue
		}
		q := p.search(j, set)
		for range counts[set] {
			node, held, ok := room.Pick(q)
			if !ok {
				return places, false
			}
			places = append(places, p.newPlace(set, node, held))
		}
	}
	return places, true
}

// largestFirst returns the positions of podSets, those that take most first.
func largestFirst(sets []snapshot.PodSet) []int {
	order := make([]int, len(sets))
	for i := range order {
		order[i] = i
	}
	if len(order) > 1 {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sets[b].Charge, sets[a].Charge) })
	}
	return order
}

// puts places all or nothing.
func (p *planner) puts(room *snapshot.Room, j *job, counts []int) ([]place, bool) {
	if one, only := single(j, counts); only {
		if counts[one] > 1 && room.CountFit(p.search(j, one), counts[one]) < counts[one] {
			return nil, false
		}
		return p.put(room, j, counts)
	}
	p.scratch().CopyFrom(room)
	places, ok := p.put(p.scratch(), j, counts)
	if ok {
		room.CopyFrom(p.scratch())
	}
	return places, ok
}

// putNow is puts on what is free now. On nodes where devices are kept for others
// it places a pod only if kube-scheduler, which does not know of that, would
// choose the same devices.
func (p *planner) putNow(j *job, counts []int) ([]place, bool) {
	if p.real == nil {
		return p.puts(p.hard, j, counts)
	}
	p.avoid = true
	places, ok := p.puts(p.hard, j, counts)
	p.avoid = false
	if ok {
		p.holdAll(p.real, j, places)
		return places, true
	}
	before := p.hard.Fork()
	if places, ok = p.puts(p.hard, j, counts); ok && p.sameChoice(j, places) {
		return places, true
	}
	p.hard.CopyFrom(before)
	return nil, false
}

// sameChoice reports whether kube-scheduler would choose the devices of places,
// and takes them if so.
func (p *planner) sameChoice(j *job, places []place) bool {
	if p.real == nil {
		return true
	}
	trial := p.real.Fork()
	for _, at := range places {
		held, fits := trial.Take(at.node, &j.w.PodSets[at.set])
		if !fits || !slices.Equal(held, at.held) {
			return false
		}
	}
	p.real = trial
	return true
}

// single returns the only podSet that devices are placed for.
func single(j *job, counts []int) (int, bool) {
	only, n := 0, 0
	for set := range j.w.PodSets {
		if devices(&j.w.PodSets[set]) && counts[set] > 0 {
			only = set
			n++
		}
	}
	return only, n == 1
}

func (p *planner) scratch() *snapshot.Room {
	if p.spare == nil {
		p.spare = p.hard.Fork()
	}
	return p.spare
}

// seat finds devices for an ask and sets them aside. now is false if some are
// still held by pods that leave.
func (p *planner) seat(a ask) (places []place, now, ok bool) {
	j, counts, key := &p.jobs[a.job], p.counts(a), p.fitKey(a)
	if !p.tight[key] {
		if places, ok = p.putNow(j, counts); ok {
			p.holdAll(p.soft, j, places)
			return places, true, true
		}
		p.tight[key] = true
	}
	if p.soft == nil || p.tightly[key] {
		return nil, false, false
	}
	if places, ok = p.puts(p.soft, j, counts); !ok {
		p.tightly[key] = true
		return nil, false, false
	}
	p.block(j, places)
	return places, false, true
}

// holdAll takes places that were found elsewhere.
func (p *planner) holdAll(room *snapshot.Room, j *job, places []place) {
	if room == nil {
		return
	}
	for _, at := range places {
		room.Hold(at.node, at.held, &j.w.PodSets[at.set].Needs)
	}
}

// block keeps what is free now of places in soft from everybody else, so that
// what is free now stays a part of what will be free.
func (p *planner) block(j *job, places []place) {
	if p.real == nil {
		p.real, p.kept = p.hard.Fork(), snapshot.NewNodes(p.hard.Len())
	}
	for _, at := range places {
		p.kept.Add(at.node)
		p.hard.Hold(at.node, nil, &j.w.PodSets[at.set].Needs)
		for _, d := range at.held {
			if rest, some := remaining(p.hard.GPUs(at.node)[d.GPU], d); some {
				p.hard.Hold(at.node, []snapshot.Held{rest}, nil)
			}
		}
	}
}

// remaining is the part of d that is free on g.
func remaining(g snapshot.GPU, d snapshot.Held) (snapshot.Held, bool) {
	d.Bytes = min(d.Bytes, g.Usable.Sub(g.ShareUsed))
	d.Mask &^= g.MIGUsed
	shared := g.Shares > 0 || g.ShareUsed > 0
	switch {
	case g.WholeUsed:
		return d, false
	case g.MIGUsed != 0 && d.Kind != snapshot.MIG:
		d = snapshot.Held{GPU: d.GPU, Kind: snapshot.MIG, Mask: ^g.MIGUsed}
	case shared && d.Kind != snapshot.Share:
		d = snapshot.Held{GPU: d.GPU, Kind: snapshot.Share, Bytes: g.Usable.Sub(g.ShareUsed)}
	}
	return d, d.Kind == snapshot.Whole || d.Bytes > 0 || d.Mask != 0
}

// newPlace is a place for a pod that is found now.
func (p *planner) newPlace(set, node int, held []snapshot.Held) place {
	p.turn++
	return place{set: set, pod: -1, node: node, turn: p.turn, held: held}
}

// turns are the turns of places per podSet, beside nodes.
func turns(j *job, places []place) [][]int {
	out := make([][]int, len(j.w.PodSets))
	for _, at := range places {
		out[at.set] = append(out[at.set], at.turn)
	}
	return out
}

// nodes names the nodes of places per podSet, as Placement and Promise do.
func (p *planner) nodes(j *job, places []place) [][]string {
	out := make([][]string, len(j.w.PodSets))
	for _, at := range places {
		out[at.set] = append(out[at.set], p.in.Nodes[at.node].Name)
	}
	return out
}
