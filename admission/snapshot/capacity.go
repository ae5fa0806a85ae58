package snapshot

import "github.com/fairshard/fairshard/classes/quantity"

// want is what a node must have at the very least for one pod, in numbers that
// a Room keeps: it rules most nodes out without a look at their GPUs.
type want struct {
	wholes int            // whole GPUs
	share  bool           // asks for shares
	bytes  quantity.Bytes // the largest share takes at least this
	mig    bool           // asks for MIG devices
}

// absurd is more GPUs than a node has, and so few that a sum of it is a number.
const absurd = 1 << 20

func wantOf(set *PodSet) want {
	var w want
	for i := range set.Requests {
		switch r := &set.Requests[i]; r.Kind {
		case Whole:
			w.wholes += min(max(r.Count, 1), absurd)
		case Share:
			w.share = true
			if r.PPM == 0 {
				w.bytes = max(w.bytes, r.Bytes)
			}
		case MIG:
			w.mig = true
		}
	}
	return w
}

// mayFit is false only if node i cannot take a pod that wants w; beside: not
// without a GPU that nobody uses.
func (r *Room) mayFit(i int, w *want, beside bool) bool {
	if r.whole[i] < w.wholes {
		return false
	}
	if r.whole[i] > w.wholes && !beside {
		return true
	}
	return (!w.share || r.part[i] > 0 && r.part[i] >= w.bytes) && (!w.mig || r.cut[i])
}

// Capacity is how many such pods node i could take now, at most most.
func (r *Room) Capacity(i int, set *PodSet, most int) int {
	w := wantOf(set)
	return r.capacity(i, set, &w, most)
}

func (r *Room) capacity(i int, set *PodSet, w *want, most int) int {
	if !r.facts.nodes[i].Schedulable || !r.mayFit(i, w, false) {
		return 0
	}
	most = r.timesBeside(i, &set.Needs, most)
	if most <= 0 || len(set.Requests) == 0 {
		return max(most, 0)
	}
	if len(set.Requests) == 1 {
		switch request := &set.Requests[0]; {
		case request.Kind == Whole:
			return min(most, r.whole[i]/w.wholes)
		case request.Kind == Share && request.Count <= 1:
			return countShares(r.gpus[i], *request, most)
		}
	}
	c, possible := newChooser(r.gpus[i], set.Requests)
	n := 0
	for possible && n < most && c.next() {
		n++
	}
	return n
}

// countShares is how many single shares fit on gpus, at most most: they do not
// get in each other's way, so every GPU counts for itself.
func countShares(gpus []GPU, request Request, most int) int {
	n := 0
	for g := range gpus {
		free := gpus[g].shareFree()
		if free <= 0 {
			continue
		}
		each := gpus[g].Bytes(request)
		if each <= 0 {
			return most
		}
		n += int(min(int64(free/each), int64(most-n)))
		if n >= most {
			break
		}
	}
	return n
}

// CountFit is how many pods of q fit at once, at most most.
func (r *Room) CountFit(q Search, most int) int {
	n, w := 0, wantOf(q.Set)
	r.Nodes(q.Pool).each(q.Allowed, nil, nil, func(i int) bool {
		n += r.capacity(i, q.Set, &w, most-n)
		return n >= most
	})
	return n
}
