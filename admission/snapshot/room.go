package snapshot

import (
	"slices"

	"github.com/fairshard/fairshard/classes/quantity"
)

// Room is what the nodes of a snapshot have free. A trial works on a copy that
// is kept by using it on and dropped by forgetting it; nothing is undone by hand.
//
// It keeps, beside the GPUs themselves, a set of nodes for every number of
// wholly free GPUs, so that the fullest node that fits is found without a look
// at the others.
type Room struct {
	facts *facts
	gpus  [][]GPU // per node; replaced, never written, so copies share them
	free  []Resources
	whole []int            // per node: GPUs that a whole-GPU request could take
	part  []quantity.Bytes // per node: the largest share that fits beside others on a GPU
	cut   []bool           // per node: a GPU has MIG devices and memory slices left
	milli []quantity.MilliGPU
	// Sets of schedulable nodes, a Nodes of facts.words words each: one for every
	// number in whole, then those with something in part or cut.
	sets []uint64
}

// facts are the same for all copies.
type facts struct {
	nodes []Node
	index map[string]int
	pools map[string]Nodes
	words int // of a Nodes
	most  int // GPUs of the largest node
}

// NewRoom returns what s, which must be sorted, has free now.
func NewRoom(s *Snapshot) *Room {
	n := len(s.Nodes)
	f := &facts{nodes: s.Nodes, index: make(map[string]int, n), pools: map[string]Nodes{}, words: len(NewNodes(n))}
	for i := range s.Nodes {
		f.index[s.Nodes[i].Name] = i
		if f.pools[s.Nodes[i].Pool] == nil {
			f.pools[s.Nodes[i].Pool] = NewNodes(n)
		}
		f.pools[s.Nodes[i].Pool].Add(i)
		f.most = max(f.most, len(s.Nodes[i].GPUs))
	}
	r := &Room{
		facts: f, gpus: make([][]GPU, n), free: make([]Resources, n), whole: make([]int, n), part: make([]quantity.Bytes, n),
		cut: make([]bool, n), milli: make([]quantity.MilliGPU, n), sets: make([]uint64, f.words*(f.most+2)),
	}
	for i := range s.Nodes {
		if s.Nodes[i].Free != nil {
			r.free[i] = *s.Nodes[i].Free
		}
		r.change(i, s.Nodes[i].GPUs)
	}
	return r
}

// Fork returns a copy.
func (r *Room) Fork() *Room {
	c := &Room{}
	c.CopyFrom(r)
	return c
}

// CopyFrom makes r equal to o, in r's own memory.
func (r *Room) CopyFrom(o *Room) {
	r.facts = o.facts
	r.gpus = append(r.gpus[:0], o.gpus...)
	r.free = append(r.free[:0], o.free...)
	r.whole = append(r.whole[:0], o.whole...)
	r.part = append(r.part[:0], o.part...)
	r.cut = append(r.cut[:0], o.cut...)
	r.milli = append(r.milli[:0], o.milli...)
	r.sets = append(r.sets[:0], o.sets...)
}

// Len is the number of nodes.
func (r *Room) Len() int { return len(r.gpus) }

// Node returns node i; its GPUs are those of the snapshot, not what is free.
func (r *Room) Node(i int) *Node { return &r.facts.nodes[i] }

// GPUs returns the GPUs of node i as they are now. They must not be changed.
func (r *Room) GPUs(i int) []GPU { return r.gpus[i] }

// Find returns the position of a node.
func (r *Room) Find(name string) (int, bool) {
	i, known := r.facts.index[name]
	return i, known
}

// Nodes returns the nodes of a pool.
func (r *Room) Nodes(pool string) Nodes {
	if set := r.facts.pools[pool]; set != nil {
		return set
	}
	return NewNodes(r.Len())
}

// Whole is the number of GPUs of node i that a whole-GPU request could take.
func (r *Room) Whole(i int) int { return r.whole[i] }

// FreeMilli is what is free on node i, in thousandths of its GPUs; nothing on a
// node that takes no work.
func (r *Room) FreeMilli(i int) quantity.MilliGPU {
	if !r.facts.nodes[i].Schedulable {
		return 0
	}
	return r.milli[i]
}

// set is the schedulable nodes with exactly n wholly free GPUs.
func (r *Room) set(n int) Nodes {
	return Nodes(r.sets[n*r.facts.words : (n+1)*r.facts.words])
}

// besides is the schedulable nodes where something fits beside others on a GPU.
func (r *Room) besides() Nodes { return r.set(r.facts.most + 1) }

// change replaces the GPUs of node i.
func (r *Room) change(i int, gpus []GPU) {
	whole, part, cut, milli := 0, quantity.Bytes(0), false, quantity.MilliGPU(0)
	for g := range gpus {
		gpu := &gpus[g]
		milli = milli.Add(gpu.freeMilli())
		switch {
		case gpu.FitsWhole():
			whole++
		case gpu.ShareUsed > 0 || gpu.Shares > 0:
			part = max(part, gpu.shareFree())
		case gpu.MIGUsed != 0 && gpu.MIGUsed != 0xff && gpu.Healthy && gpu.MIG:
			cut = true
		}
	}
	if r.facts.nodes[i].Schedulable {
		r.set(r.whole[i]).Remove(i)
		r.set(whole).Add(i)
		if part > 0 || cut {
			r.besides().Add(i)
		} else {
			r.besides().Remove(i)
		}
	}
	r.gpus[i], r.whole[i], r.part[i], r.cut[i], r.milli[i] = gpus, whole, part, cut, milli
}

// Take puts one pod on node i, the way kube-scheduler would: its requests in
// order, each on the first devices that fit in the published order. Nothing is
// taken unless everything fits and the node takes work.
func (r *Room) Take(i int, set *PodSet) ([]Held, bool) {
	gpus, held, fits := r.look(i, set)
	if fits {
		r.took(i, gpus, &set.Needs)
	}
	return held, fits
}

// look is Take without taking.
func (r *Room) look(i int, set *PodSet) ([]GPU, []Held, bool) {
	if !r.facts.nodes[i].Schedulable || !r.FitsBeside(i, &set.Needs) {
		return nil, nil, false
	}
	return choose(r.gpus[i], set.Requests)
}

func (r *Room) took(i int, gpus []GPU, needs *Resources) {
	r.change(i, gpus)
	r.addFree(i, needs, -1)
}

// Reserve is Take for a pod that is pinned to node i already: neither the node
// nor the GPUs need take new work, though GPUs that do go first, and what it
// needs beside GPUs may go below zero.
func (r *Room) Reserve(i int, set *PodSet) ([]Held, bool) {
	gpus, held, fits := choose(r.gpus[i], set.Requests)
	if !fits {
		sick := slices.Clone(r.gpus[i])
		for g := range sick {
			sick[g].Healthy = true
		}
		if gpus, held, fits = choose(sick, set.Requests); !fits {
			return nil, false
		}
		for g := range gpus {
			gpus[g].Healthy = r.gpus[i][g].Healthy
		}
	}
	r.took(i, gpus, &set.Needs)
	return held, true
}

// Hold takes exactly these devices of node i, and needs; nil = none.
func (r *Room) Hold(i int, held []Held, needs *Resources) {
	r.alter(i, held, (*GPU).hold)
	r.addFree(i, needs, -1)
}

// Give is the reverse of Hold.
func (r *Room) Give(i int, held []Held, needs *Resources) {
	r.alter(i, held, (*GPU).give)
	r.addFree(i, needs, 1)
}

func (r *Room) alter(i int, held []Held, do func(*GPU, Held)) {
	if len(held) == 0 {
		return
	}
	gpus := slices.Clone(r.gpus[i])
	for _, d := range held {
		if d.GPU >= 0 && d.GPU < len(gpus) {
			do(&gpus[d.GPU], d)
		}
	}
	r.change(i, gpus)
}

// Free reports whether Hold would take only what nobody has; one GPU may be
// named several times. Health is not asked.
func (r *Room) Free(i int, held []Held) bool {
	gpus := r.gpus[i]
	if len(held) > 1 {
		gpus = slices.Clone(gpus)
	}
	for at, d := range held {
		if d.GPU < 0 || d.GPU >= len(gpus) || !gpus[d.GPU].isFree(d) {
			return false
		}
		if at+1 < len(held) {
			gpus[d.GPU].hold(d)
		}
	}
	return true
}
