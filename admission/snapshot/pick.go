package snapshot

import "slices"

// Search is what Pick looks for: a node of Pool and, unless nil, of Allowed, for
// one pod of Set.
type Search struct {
	Pool    string
	Set     *PodSet
	Spread  bool // the emptiest node first; else the fullest
	Allowed Nodes
}

// Pick takes devices for one pod on the best node that fits. The fullest is
// that with the fewest wholly free GPUs; a share or MIG device first goes where
// it breaks no wholly free GPU. Among equals the first by name, which is all
// that counts for a pod that asks for no device.
func (r *Room) Pick(q Search) (node int, held []Held, ok bool) {
	w := wantOf(q.Set)
	least := w.wholes
	if len(q.Set.Requests) > 0 && w.wholes == 0 && !q.Spread {
		if node, held, ok = r.scan(q, &w, 0, true); ok {
			return node, held, ok
		}
		least = 1 // a node without a free GPU can do no better now
	}
	return r.scan(q, &w, least, false)
}

// scan tries nodes with at least so many wholly free GPUs in order; beside asks
// for GPUs that others use already.
func (r *Room) scan(q Search, w *want, least int, beside bool) (node int, held []Held, ok bool) {
	try := func(i int) bool {
		if !r.mayFit(i, w, beside) {
			return false
		}
		gpus, found, fits := r.look(i, q.Set)
		if !fits || beside && r.breaks(i, found) {
			return false
		}
		node, held, ok = i, found, true
		r.took(i, gpus, &q.Set.Needs)
		return true
	}
	pool := r.Nodes(q.Pool)
	if len(q.Set.Requests) == 0 {
		pool.each(q.Allowed, nil, nil, try)
		return node, held, ok
	}
	for n := least; n <= r.facts.most; n++ {
		number := n
		if q.Spread {
			number = r.facts.most - (n - least)
		}
		var also Nodes // nil = any
		if parts := w.share || w.mig; parts && (beside || number == w.wholes) {
			also = r.besides()
		}
		if r.set(number).each(pool, q.Allowed, also, try) {
			break
		}
	}
	return node, held, ok
}

// breaks reports whether devices are on GPUs that nobody uses.
func (r *Room) breaks(i int, held []Held) bool {
	return slices.ContainsFunc(held, func(d Held) bool { return r.gpus[i][d.GPU].Unused() })
}
