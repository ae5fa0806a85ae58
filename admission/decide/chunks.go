package decide

import (
	"cmp"
	"slices"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes/quantity"
)

// chunk is what one eviction takes of a workload: one surplus pod, or its whole gang.
type chunk struct {
	job      int
	from, to int // of job.placed
	amount   quantity.MilliGPU
	lost     int64 // thousandths of a GPU times seconds that are computed again
	whole    bool
}

// victimsKey names a list of chunks of one queue.
type victimsKey struct {
	leaf    int
	biggest bool // the largest first, so that few workloads are evicted; else the least work lost
}

// chunks lists what may be taken of a queue, in the order of victims: lowest
// priority, surplus pods before gangs, then the order of the key, the newest first.
func (p *planner) chunks(key victimsKey) []chunk {
	known := &p.victims[order(key.biggest)]
	if *known == nil {
		*known = make([][]chunk, len(p.tree.Queues))
	}
	if list := (*known)[key.leaf]; list != nil {
		return list
	}
	if p.byLeaf == nil {
		p.byLeaf = make([][]int, len(p.tree.Queues))
		for i := range p.jobs {
			if leaf := p.jobs[i].leaf; leaf >= 0 {
				p.byLeaf[leaf] = append(p.byLeaf[leaf], i)
			}
		}
	}
	var list []chunk
	for _, at := range p.byLeaf[key.leaf] {
		if p.mayGo(at) {
			list = p.addChunks(list, at)
		}
	}
	slices.SortFunc(list, func(a, b chunk) int { return p.sooner(a, b, key.biggest) })
	if list == nil {
		list = []chunk{} // known, and none
	}
	(*known)[key.leaf] = list
	return list
}

// forgetChunks makes chunks look at a queue again.
func (p *planner) forgetChunks(leaf int) {
	for _, known := range p.victims {
		if known != nil {
			known[leaf] = nil
		}
	}
}

func order(biggest bool) int {
	if biggest {
		return 1
	}
	return 0
}

// mayGo reports whether a workload may be a victim at all.
func (p *planner) mayGo(at int) bool {
	j := &p.jobs[at]
	return j.status == running && j.live() && !j.w.NonPreemptible && (!j.w.Bare || p.policy.EvictBare) && len(j.placed) > 0 && j.pool != nil
}

func (p *planner) addChunks(list []chunk, at int) []chunk {
	j := &p.jobs[at]
	from := len(j.placed)
	if elastic(j.w) {
		for from > j.w.MinPods {
			list = append(list, p.chunkOf(at, from-1, from))
			from--
		}
	}
	whole := p.chunkOf(at, 0, from)
	whole.whole = true
	return append(list, whole)
}

func (p *planner) chunkOf(at, from, to int) chunk {
	j := &p.jobs[at]
	c := chunk{job: at, from: from, to: to}
	for _, place := range j.placed[from:to] {
		c.amount = c.amount.Add(j.w.PodSets[place.set].Charge)
	}
	if j.w.StartedAt > 0 && p.now > j.w.StartedAt {
		c.lost = int64(c.amount.Mul((p.now - j.w.StartedAt) / 1e9))
	}
	return c
}

// sooner orders chunks of one queue as victims.
func (p *planner) sooner(a, b chunk, biggest bool) int {
	x, y := p.jobs[a.job].w, p.jobs[b.job].w
	size := 0
	if biggest {
		size = cmp.Compare(b.amount, a.amount)
	}
	return cmp.Or(
		cmp.Compare(x.Priority, y.Priority), falseFirst(a.whole, b.whole), size, cmp.Compare(a.lost, b.lost),
		cmp.Compare(y.Created, x.Created), cmp.Compare(b.job, a.job), cmp.Compare(b.from, a.from),
	)
}

// protectedUntil is when a chunk may be taken: a gang has a minimum run time,
// surplus pods have none. 0 = at once.
func (p *planner) protectedUntil(c chunk, own bool) int64 {
	w := p.jobs[c.job].w
	if !c.whole || w.StartedAt == 0 {
		return 0
	}
	least := int64(p.policy.MinRuntimeReclaim)
	if own {
		least = int64(p.policy.MinRuntimePreempt)
	}
	for q := p.jobs[c.job].leaf; q >= 0; q = p.tree.Queues[q].Parent {
		spec := &p.tree.Queues[q].Spec
		said := spec.MinRuntimeReclaim
		if own {
			said = spec.MinRuntimePreempt
		}
		if said != nil {
			least = *said
			break
		}
	}
	if until := w.StartedAt + least; until > p.now {
		return until
	}
	return 0
}

// residentsOf lists the workloads with devices on a node.
func (p *planner) residentsOf(node int) []int {
	if p.residents == nil {
		p.residents = make([][]int, len(p.in.Nodes))
		for at := range p.jobs {
			for _, place := range p.jobs[at].placed {
				list := p.residents[place.node]
				if len(list) == 0 || list[len(list)-1] != at {
					p.residents[place.node] = append(list, at)
				}
			}
		}
	}
	return p.residents[node]
}

// namesOf returns the names of the pods of a chunk.
func (p *planner) namesOf(c chunk) []string {
	var names []string
	j := &p.jobs[c.job]
	for _, at := range j.placed[c.from:c.to] {
		if at.pod >= 0 {
			names = append(names, j.w.PodSets[at.set].Pods[at.pod].Name)
		}
	}
	return names
}

// needsOf is what a place takes of its node beside GPUs.
func needsOf(j *job, at place) *snapshot.Resources { return &j.w.PodSets[at.set].Needs }
