package decide

import (
	"cmp"
	"slices"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes/quantity"
)

// Bounds of the search for moves: the nodes that are looked at for one pod, the
// fullest of free devices first, and the times one reclaim looks for moves.
const (
	maxClearings  = 64
	maxMoveRounds = 8
)

// consolidateWithin is consolidate for work that stays within its fair share.
func (p *planner) consolidateWithin(a ask) bool {
	leaf := p.jobs[a.job].leaf
	return p.used[leaf].Add(p.want(a)) <= p.shares.Share[leaf] && p.consolidate(a)
}

// consolidate moves preemptible work of any queue so that a fits, if all of it
// fits elsewhere. Only the gangs of preemptible work ask for that, surplus pods
// do not, and not where pods are to be spread, and not while more important work
// of the same queue waits that would evict it again.
func (p *planner) consolidate(a ask) bool {
	j := &p.jobs[a.job]
	if a.surplus || p.movesLeft == 0 || j.w.NonPreemptible || j.pool.spread || !p.mayMakeRoom(a) || p.line.moreImportant(a) {
		return false
	}
	key := futileKey{leaf: -1, fit: p.fitKey(a)}
	if p.isFutile(key, 0) {
		return false
	}
	if p.idle(p.softRoom(), j.pool) >= p.want(a) {
		t := p.begin(a)
		if t.makeSpace() {
			return p.commit(t)
		}
		p.noteProtected(a, t.protected)
	}
	p.noteFutile(key, 0)
	return false
}

// idle is what is free in a pool, wherever it is.
func (p *planner) idle(room *snapshot.Room, pool *pool) quantity.MilliGPU {
	var sum quantity.MilliGPU
	for i := range room.Len() {
		if pool.nodes.Has(i) {
			sum = sum.Add(room.FreeMilli(i))
		}
	}
	return sum
}

// gatherAndMove takes victims as reclaim does, and after each, once enough is
// free somewhere, looks whether moves bring it together. Victims that are not
// needed then are put back.
func (t *trial) gatherAndMove(hot []int) bool {
	rounds := 0
	found := t.gather(t.fromOthers(hot, false), func() bool {
		if rounds == maxMoveRounds || t.p.movesLeft == 0 || t.j.pool.spread || t.p.idle(t.room, t.j.pool) < t.want {
			return false
		}
		rounds++
		return t.makeSpace()
	})
	for at := len(t.out) - 1; found && t.moved != nil && at >= 0; at-- {
		v := t.out[at]
		if !t.free(v.chunk) {
			continue
		}
		t.putBack(at)
		if reason, _ := t.p.stop(t.j, t.want, t.used, t.solid); reason != "" {
			t.takeOut(v)
		}
	}
	return found
}

// free reports whether all that a chunk held is free in the plan: its devices
// and what its pods need beside them.
func (t *trial) free(c chunk) bool {
	j := &t.p.jobs[c.job]
	back := j.placed[c.from:c.to]
	for n, at := range back {
		if !t.room.Free(at.node, at.held) || !t.room.FitsBeside(at.node, needsOf(j, at)) {
			back = back[:n]
			break
		}
		t.room.Hold(at.node, at.held, needsOf(j, at))
	}
	for _, at := range back {
		t.room.Give(at.node, at.held, needsOf(j, at))
	}
	return len(back) == c.to-c.from
}

// makeSpace seats the requester by moving others. On success room holds the
// requester and everything that moved.
func (t *trial) makeSpace() bool {
	if t.set < 0 {
		return false
	}
	if reason, _ := t.p.stop(t.j, t.want, t.used, t.solid); reason != "" {
		return false
	}
	t.next.CopyFrom(t.room)
	q, need := t.p.search(t.j, t.set), t.counts[t.set]
	var seats []place
	for len(seats) < need {
		node, held, ok := t.next.Pick(q)
		if !ok {
			break
		}
		seats = append(seats, t.p.newPlace(t.set, node, held))
	}
	var moved []move
	for len(seats) < need {
		seat, more := t.clear(q, moved)
		if more == nil {
			return false
		}
		seats, moved = append(seats, seat), append(moved, more...)
	}
	t.room.CopyFrom(t.next)
	t.seats, t.moved = seats, moved
	return true
}

// clearing is a way to make room for one pod on a node.
type clearing struct {
	node   int
	jobs   []int
	lost   int64
	amount quantity.MilliGPU
	oldest int64 // creation of the oldest workload
}

// compare orders ways: fewer workloads, less work lost, smaller, newer, by node.
func (c clearing) compare(o clearing) int {
	return cmp.Or(cmp.Compare(len(c.jobs), len(o.jobs)), cmp.Compare(c.lost, o.lost), cmp.Compare(c.amount, o.amount),
		cmp.Compare(o.oldest, c.oldest), cmp.Compare(c.node, o.node))
}

// clear makes room for one more pod in next: the node where fewest workloads
// have to move, all of which fit elsewhere. nil if there is none.
func (t *trial) clear(q snapshot.Search, moved []move) (place, []move) {
	var ways []clearing
	for _, node := range t.emptiest(q) {
		if way := t.clearing(node, q, moved); len(way.jobs) > 0 && len(way.jobs)+len(moved) <= t.p.movesLeft {
			ways = append(ways, way)
		}
	}
	slices.SortFunc(ways, clearing.compare)
	for _, way := range ways {
		if seat, more, ok := t.try(way, q); ok {
			return seat, more
		}
	}
	return place{}, nil
}

// emptiest lists the nodes with most free, at most maxClearings.
func (t *trial) emptiest(q snapshot.Search) []int {
	var nodes []int
	for i := range t.next.Len() {
		if t.j.pool.nodes.Has(i) && t.next.Node(i).Schedulable && (q.Allowed == nil || q.Allowed.Has(i)) {
			nodes = append(nodes, i)
		}
	}
	slices.SortStableFunc(nodes, func(a, b int) int { return cmp.Compare(t.next.FreeMilli(b), t.next.FreeMilli(a)) })
	return nodes[:min(len(nodes), maxClearings)]
}

// clearing finds few workloads of a node without which one pod fits there: one
// if that is enough, else the largest until it fits, less what is not needed.
func (t *trial) clearing(node int, q snapshot.Search, moved []move) clearing {
	way := clearing{node: node}
	movable := t.movable(node, moved)
	fits := func(jobs []int) bool {
		t.lift(jobs, node, true)
		defer t.lift(jobs, node, false)
		return t.next.Capacity(node, q.Set, 1) > 0
	}
	for _, c := range movable { // least lost, smallest, newest first
		if fits([]int{c.job}) {
			return clearing{node, []int{c.job}, c.lost, c.amount, t.p.jobs[c.job].w.Created}
		}
	}
	slices.SortStableFunc(movable, func(a, b chunk) int { return cmp.Compare(b.amount, a.amount) })
	var jobs []int
	for _, c := range movable {
		jobs = append(jobs, c.job)
		if !fits(jobs) {
			continue
		}
		for at := len(jobs) - 2; at >= 0; at-- {
			if fewer := slices.Delete(slices.Clone(jobs), at, at+1); fits(fewer) {
				jobs = fewer
			}
		}
		way.jobs = jobs
		for _, at := range jobs {
			c := t.p.chunkOf(at, 0, len(t.p.jobs[at].placed))
			way.lost, way.amount = way.lost+c.lost, way.amount.Add(c.amount)
			if created := t.p.jobs[at].w.Created; way.oldest == 0 || created < way.oldest {
				way.oldest = created
			}
		}
		return way
	}
	return way
}

// movable lists the workloads of a node that may move, as whole chunks. Surplus
// pods do not move for a borrower: if their workload came back without them, it
// would reclaim them at once.
func (t *trial) movable(node int, moved []move) []chunk {
	var out []chunk
	borrows := t.used[t.j.leaf].Add(t.want) > t.p.shares.Share[t.j.leaf]
	for _, at := range t.p.residentsOf(node) {
		if !t.p.mayGo(at) || at == t.a.job || t.p.jobs[at].pool != t.j.pool || borrows && t.p.jobs[at].surplus() ||
			slices.ContainsFunc(moved, func(m move) bool { return m.job == at }) ||
			slices.ContainsFunc(t.out, func(v victim) bool { return v.job == at }) {
			continue
		}
		c := t.p.chunkOf(at, 0, len(t.p.jobs[at].placed))
		c.whole = true
		if t.takeable(c, false) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b chunk) int {
		x, y := t.p.jobs[a.job].w, t.p.jobs[b.job].w
		return cmp.Or(cmp.Compare(a.lost, b.lost), cmp.Compare(a.amount, b.amount), cmp.Compare(y.Created, x.Created), cmp.Compare(b.job, a.job))
	})
	return out
}

// lift takes what workloads hold on a node out of next, or puts it back.
func (t *trial) lift(jobs []int, node int, out bool) {
	for _, at := range jobs {
		j := &t.p.jobs[at]
		for _, place := range j.placed {
			switch {
			case place.node != node:
			case out:
				t.next.Give(node, place.held, needsOf(j, place))
			default:
				t.next.Hold(node, place.held, needsOf(j, place))
			}
		}
	}
}

// try carries a clearing out in next if everything that moves fits elsewhere.
func (t *trial) try(way clearing, q snapshot.Search) (place, []move, bool) {
	room := t.p.scratch()
	room.CopyFrom(t.next)
	for _, at := range way.jobs {
		j := &t.p.jobs[at]
		for _, place := range j.placed {
			room.Give(place.node, place.held, needsOf(j, place))
		}
	}
	held, ok := room.Take(way.node, q.Set)
	if !ok {
		return place{}, nil, false
	}
	seat := t.p.newPlace(t.set, way.node, held)
	slices.SortStableFunc(way.jobs, func(a, b int) int { return cmp.Compare(t.p.jobs[b].minimum, t.p.jobs[a].minimum) })
	moves := make([]move, 0, len(way.jobs))
	for _, at := range way.jobs {
		j := &t.p.jobs[at]
		counts := make([]int, len(j.w.PodSets))
		for _, place := range j.placed {
			counts[place.set]++
		}
		places, fits := t.p.put(room, j, counts)
		if !fits {
			return place{}, nil, false
		}
		moves = append(moves, move{at, places})
	}
	t.next.CopyFrom(room)
	return seat, moves, true
}
