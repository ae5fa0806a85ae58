package snapshot

import "slices"

// maxSteps bounds the search for the devices of one pod of several requests. A
// pod that is not placed within it is taken not to fit.
const maxSteps = 10_000

// choose finds devices on gpus for the requests of one pod, as kube-scheduler's
// allocator does: requests in order, each device the first that fits in the
// published order (shares from the front, whole GPUs from the back, MIG from
// the front), going back when the rest does not fit. It returns the GPUs after
// that, or false.
//
// The devices of one request are tried in ascending combinations only: they are
// interchangeable, so the first solution over all permutations is ascending.
// For the same reason a GPU is left out that is equal to one that was tried at
// its place before: with the two exchanged, a solution would have been found.
func choose(gpus []GPU, requests []Request) ([]GPU, []Held, bool) {
	c, possible := newChooser(gpus, requests)
	if !possible || !c.next() {
		return nil, nil, false
	}
	return c.gpus, c.held, true
}

// chooser is the state of one search.
type chooser struct {
	gpus     []GPU // its own; as they were after a search that failed
	requests []Request
	held     []Held
	groups   []int // per device in held: the Apart group
	steps    int
}

// newChooser is false if a request wants more GPUs than there are.
func newChooser(gpus []GPU, requests []Request) (chooser, bool) {
	n := 0
	for i := range requests {
		if requests[i].Count > len(gpus) {
			return chooser{}, false
		}
		n += max(requests[i].Count, 1)
	}
	return chooser{gpus: slices.Clone(gpus), requests: requests, held: make([]Held, 0, n), groups: make([]int, 0, n)}, true
}

// next places one pod.
func (c *chooser) next() bool {
	c.held, c.groups, c.steps = c.held[:0], c.groups[:0], maxSteps
	return c.request(0)
}

// request places request i and all after it.
func (c *chooser) request(i int) bool {
	if i == len(c.requests) {
		return true
	}
	return c.device(i, max(c.requests[i].Count, 1), 0)
}

// device places left devices of request i, from position from of its order on,
// and then the other requests.
func (c *chooser) device(i, left, from int) bool {
	if left == 0 {
		return c.request(i + 1)
	}
	r, failed := c.requests[i], false
	for at := from; at+left <= len(c.gpus); at++ {
		g := c.gpu(r.Kind, at)
		d, fits := c.gpus[g].device(r)
		if !fits || c.apart(r.Apart, g) || failed && c.triedEqual(i, from, at) {
			continue
		}
		if c.steps--; c.steps < 0 {
			return false
		}
		d.GPU = g
		before := c.gpus[g]
		c.gpus[g].hold(d)
		c.held, c.groups = append(c.held, d), append(c.groups, r.Apart)
		if c.device(i, left-1, at+1) {
			return true
		}
		c.gpus[g] = before
		c.held, c.groups = c.held[:len(c.held)-1], c.groups[:len(c.groups)-1]
		if len(c.requests) == 1 {
			return false // equal devices of one request: what the first cannot, the next cannot
		}
		failed = true
	}
	return false
}

// gpu is the GPU at a position of the order in which a kind of device is tried.
func (c *chooser) gpu(kind RequestKind, at int) int {
	if kind == Whole {
		return len(c.gpus) - 1 - at
	}
	return at
}

// triedEqual reports whether a GPU that nothing tells from the one at position
// at was tried for the same device of request i, from position from on.
func (c *chooser) triedEqual(i, from, at int) bool {
	kind := c.requests[i].Kind
	here := c.gpu(kind, at)
	for before := from; before < at; before++ {
		if g := c.gpu(kind, before); c.gpus[g].alike(&c.gpus[here]) && c.sameGroups(g, here) {
			return true
		}
	}
	return false
}

// sameGroups reports whether the same Apart groups have taken both GPUs.
func (c *chooser) sameGroups(a, b int) bool {
	for at, d := range c.held {
		group := c.groups[at]
		if group != 0 && (d.GPU == a && !c.apart(group, b) || d.GPU == b && !c.apart(group, a)) {
			return false
		}
	}
	return true
}

// apart reports whether a GPU is taken by a request of the same group.
func (c *chooser) apart(group, gpu int) bool {
	if group == 0 {
		return false
	}
	for at, d := range c.held {
		if d.GPU == gpu && c.groups[at] == group {
			return true
		}
	}
	return false
}
