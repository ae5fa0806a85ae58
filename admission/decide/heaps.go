package decide

import "github.com/fairshard/fairshard/admission/tree"

// heaps keeps, for every queue of the tree, its children that have something
// below them, the first on top; so the first leaf of all is found by going down.
// One change costs as many steps as the tree is deep, times the logarithm of
// the children.
type heaps struct {
	tree    *tree.Tree
	compare func(a, b, leafA, leafB int) int // of siblings and the first leaf below each
	kids    [][]int                          // per queue: a heap; the last entry is that of the roots
	pos     []int                            // per queue: its place in the parent's heap, -1 = not there
}

func (p *planner) newHeaps(compare func(a, b, leafA, leafB int) int) heaps {
	n := len(p.tree.Queues)
	return heaps{tree: p.tree, compare: compare, kids: make([][]int, n+1), pos: make([]int, n)}
}

// reset makes h hold leaves, in memory that it has.
func (h *heaps) reset(leaves []int) {
	for q := range h.kids {
		h.kids[q] = h.kids[q][:0]
	}
	for q := range h.pos {
		h.pos[q] = -1
	}
	for _, leaf := range leaves {
		h.add(leaf)
	}
}

// above is the heap that q is in.
func (h *heaps) above(q int) int {
	if parent := h.tree.Queues[q].Parent; parent >= 0 {
		return parent
	}
	return len(h.kids) - 1
}

// best returns the first leaf of all; -1 when there is none.
func (h *heaps) best() int {
	roots := h.kids[len(h.kids)-1]
	if len(roots) == 0 {
		return -1
	}
	return h.below(roots[0])
}

// below returns the first leaf below q.
func (h *heaps) below(q int) int {
	for len(h.kids[q]) > 0 {
		q = h.kids[q][0]
	}
	return q
}

// has reports whether q is in the order.
func (h *heaps) has(q int) bool { return h.pos[q] >= 0 }

// add puts a leaf in, and what is above it.
func (h *heaps) add(leaf int) {
	q := leaf
	for q >= 0 && h.pos[q] < 0 {
		up := h.above(q)
		h.pos[q] = len(h.kids[up])
		h.kids[up] = append(h.kids[up], q)
		q = h.tree.Queues[q].Parent
	}
	h.fix(leaf)
}

// remove takes a leaf out, and what is above it and holds nothing else.
func (h *heaps) remove(leaf int) {
	q := leaf
	for q >= 0 && len(h.kids[q]) == 0 {
		up := h.above(q)
		kids, at := h.kids[up], h.pos[q]
		last := len(kids) - 1
		h.swap(kids, at, last)
		h.kids[up], h.pos[q] = kids[:last], -1
		if at < last {
			h.settle(up, at)
		}
		q = h.tree.Queues[q].Parent
	}
	if q >= 0 {
		h.fix(q)
	}
}

// fix restores the order after the key of q or of a leaf below it changed.
func (h *heaps) fix(q int) {
	for ; q >= 0; q = h.tree.Queues[q].Parent {
		if h.pos[q] >= 0 {
			h.settle(h.above(q), h.pos[q])
		}
	}
}

// settle moves the entry at a place of a heap to where it belongs.
func (h *heaps) settle(up, at int) {
	kids := h.kids[up]
	for at > 0 && h.first(kids[at], kids[(at-1)/2]) {
		h.swap(kids, at, (at-1)/2)
		at = (at - 1) / 2
	}
	for {
		child := 2*at + 1
		if child >= len(kids) {
			return
		}
		if child+1 < len(kids) && h.first(kids[child+1], kids[child]) {
			child++
		}
		if !h.first(kids[child], kids[at]) {
			return
		}
		h.swap(kids, at, child)
		at = child
	}
}

func (h *heaps) first(a, b int) bool { return h.compare(a, b, h.below(a), h.below(b)) < 0 }

func (h *heaps) swap(kids []int, a, b int) {
	kids[a], kids[b] = kids[b], kids[a]
	h.pos[kids[a]], h.pos[kids[b]] = a, b
}
