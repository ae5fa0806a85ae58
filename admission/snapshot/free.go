package snapshot

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fairshard/fairshard/classes/quantity"
)

// Sort brings s into its one order: nodes and queues by name, workloads by
// namespace and name, pods by name. GPUs keep their published order.
func (s *Snapshot) Sort() {
	slices.SortFunc(s.Nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Queues, func(a, b Queue) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Workloads, func(a, b Workload) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
	})
	for _, w := range s.Workloads {
		for _, p := range w.PodSets {
			slices.SortFunc(p.Pods, func(a, b Pod) int { return strings.Compare(a.Name, b.Name) })
		}
	}
}

// Charge returns the bytes that a share of want bytes takes of a GPU: rounded
// up to Min plus whole steps; 0 takes everything, as the published default says.
func (g GPU) Charge(want quantity.Bytes) quantity.Bytes {
	if want <= 0 {
		return g.Usable
	}
	if want <= g.Min {
		return g.Min
	}
	return (want - g.Min).RoundUp(g.Step).Add(g.Min)
}

// FitsWhole reports whether the whole GPU is free.
func (g GPU) FitsWhole() bool {
	return g.Healthy && !g.WholeUsed && g.Shares == 0 && g.ShareUsed == 0
}

// FitsShare reports whether a share of want bytes is free.
func (g GPU) FitsShare(want quantity.Bytes) bool {
	return g.Healthy && !g.WholeUsed && g.Charge(want) <= g.Usable.Sub(g.ShareUsed)
}

// Fits reports whether one device of r is free on g.
func (g GPU) Fits(r Request) bool {
	if r.Kind == Whole {
		return g.FitsWhole()
	}
	return g.FitsShare(r.Bytes)
}

// Empty returns g with nothing held.
func (g GPU) Empty() GPU {
	g.WholeUsed, g.ShareUsed, g.Shares = false, 0, 0
	return g
}

// Free is what is left on each node during a cycle. A trial works on a Fork,
// which is kept by using it on and dropped by forgetting it.
type Free struct {
	nodes []Node   // sorted by name
	gpus  [][]GPU  // per node; replaced, never written, so forks share them
	taken []uint64 // per node: devices taken, for the order of nodes
}

// NewFree returns what s has free now.
func NewFree(s Snapshot) *Free {
	f := &Free{nodes: s.Nodes, gpus: make([][]GPU, len(s.Nodes)), taken: make([]uint64, len(s.Nodes))}
	for i, n := range s.Nodes {
		f.gpus[i] = n.GPUs
		for _, g := range n.GPUs {
			if !g.FitsWhole() {
				f.taken[i]++
			}
		}
	}
	return f
}

// Fork returns a copy that can be changed without changing f.
func (f *Free) Fork() *Free {
	return &Free{nodes: f.nodes, gpus: slices.Clone(f.gpus), taken: slices.Clone(f.taken)}
}

// Len is the number of nodes.
func (f *Free) Len() int { return len(f.nodes) }

// Node returns node i; its GPUs are those of the snapshot, not what is free.
func (f *Free) Node(i int) *Node { return &f.nodes[i] }

// GPUs returns what is free on node i now. It must not be changed.
func (f *Free) GPUs(i int) []GPU { return f.gpus[i] }

// Taken is the number of devices of node i that somebody holds or was promised.
func (f *Free) Taken(i int) uint64 { return f.taken[i] }

// Take puts one pod's requests on node i, the way kube-scheduler would: for
// every request distinct GPUs, shares from the front of the published order,
// whole GPUs from its back. Nothing is taken unless everything fits.
//
// Where that fails for a pod of several requests, kube-scheduler goes back and
// tries other devices; largest first stands in for its search.
func (f *Free) Take(i int, requests []Request) bool {
	gpus, fits := takeAll(f.gpus[i], requests)
	if !fits && len(requests) > 1 {
		gpus, fits = takeAll(f.gpus[i], largestFirst(requests))
	}
	if !fits {
		return false
	}
	f.gpus[i] = gpus
	f.taken[i] = 0
	for _, g := range gpus {
		if !g.FitsWhole() {
			f.taken[i]++
		}
	}
	return true
}

// takeAll returns a copy of gpus with the requests of one pod on it.
func takeAll(gpus []GPU, requests []Request) ([]GPU, bool) {
	gpus = slices.Clone(gpus)
	var apart map[spot]bool
	for _, r := range requests {
		if r.Apart != 0 && apart == nil {
			apart = map[spot]bool{}
		}
		if !take(gpus, r, apart) {
			return nil, false
		}
	}
	return gpus, true
}

// spot is a GPU that a request of a group already holds.
type spot struct{ group, gpu int }

// take marks r.Count GPUs; on false gpus may be half changed.
func take(gpus []GPU, r Request, apart map[spot]bool) bool {
	left := max(r.Count, 1)
	for at := range gpus {
		if r.Kind == Whole {
			at = len(gpus) - 1 - at
		}
		if left == 0 || !gpus[at].Fits(r) || apart[spot{r.Apart, at}] {
			continue
		}
		hold(&gpus[at], r)
		left--
		if r.Apart != 0 {
			apart[spot{r.Apart, at}] = true
		}
	}
	return left == 0
}

// largestFirst orders requests: whole GPUs, then by bytes, then by count.
func largestFirst(requests []Request) []Request {
	whole := func(r Request) int {
		if r.Kind == Whole || r.Bytes == 0 {
			return 1
		}
		return 0
	}
	return slices.SortedStableFunc(slices.Values(requests), func(a, b Request) int {
		return cmp.Or(cmp.Compare(whole(b), whole(a)), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.Count, a.Count))
	})
}

func hold(g *GPU, r Request) {
	if r.Kind == Whole {
		g.WholeUsed = true
		return
	}
	g.ShareUsed = g.ShareUsed.Add(g.Charge(r.Bytes))
	g.Shares++
}
