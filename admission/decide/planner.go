package decide

import (
	"slices"

	"github.com/fairshard/fairshard/admission/fairshare"
	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/admission/tree"
	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
)

// planner is the state of one Cycle.
type planner struct {
	in     *snapshot.Snapshot
	policy Policy
	now    int64

	tree    *tree.Tree
	pools   map[string]*pool
	shares  fairshare.Shares
	plenty  []quantity.MilliGPU // per queue: see enough
	allowed []snapshot.Nodes    // by Constraint-1
	shapes  shapes
	jobs    []job
	waiting [][]ask // per queue of the tree: what waits, in its order
	line    *line   // that is being gone through
	back    []ask   // what waits again since a line was made; it joins when that ends
	touched []int   // queues whose use the last plan changed

	hard  *snapshot.Room // what is free now
	soft  *snapshot.Room // what will be free; nil while that is the same
	real  *snapshot.Room // hard without what is kept for others; nil while nothing is
	kept  snapshot.Nodes // nodes with devices that are kept for others
	avoid bool           // search leaves those nodes out
	empty *snapshot.Room // the hardware: nothing held, everything healthy; made when first asked for

	used  []quantity.MilliGPU // per queue of the tree, charged now
	solid []quantity.MilliGPU // of it non-preemptible

	idleNow map[string]quantity.MilliGPU // per pool, once everything is decided
	never   map[fitKey]bool              // forms that the hardware cannot hold
	counted map[fitKey]Numbers           // what the pool has for a form
	tight   map[fitKey]bool              // shapes that found no room since hard last grew; it never grows
	tightly map[fitKey]bool              // the same for soft, which grows with every plan

	movesLeft, evictionsLeft int
	freed                    bool                   // a plan freed devices since allocate was last tried
	turn                     int                    // devices found so far
	generation               int                    // grows with every change of use
	over                     map[int]overserved     // per queue: its children that may have to give back
	futile                   map[futileKey]futility // searches that failed
	gained                   map[int]int32          // per leaf: the least priority that others gave way for; see noteGained
	byLeaf                   [][]int                // per queue: its workloads
	residents                [][]int                // per node: workloads with devices there; made when first asked for
	victims                  [2][][]chunk           // per order and queue; nil = not known yet
	trial                    *trial                 // reused by every search
	spare                    *snapshot.Room         // scratch of puts

	plans []Decision // evictions and what they are for, in the order they were made
	log   []Decision // everything else
}

// pool is the nodes of one GPU model.
type pool struct {
	name     string
	spread   bool
	nodes    snapshot.Nodes
	capacity quantity.MilliGPU // what its queues divide
	gpus     int               // healthy ones on schedulable nodes
}

func newPlanner(s *snapshot.Snapshot, policy Policy, now int64) *planner {
	p := &planner{
		in: s, policy: policy, now: now, pools: map[string]*pool{},
		hard: snapshot.NewRoom(s), never: map[fitKey]bool{}, counted: map[fitKey]Numbers{}, tight: map[fitKey]bool{}, tightly: map[fitKey]bool{},
		movesLeft: bound(policy.Moves), evictionsLeft: bound(policy.Evictions),
		over: map[int]overserved{}, futile: map[futileKey]futility{}, gained: map[int]int32{},
	}
	p.tree, _ = tree.Build(s.Queues)
	p.waiting = make([][]ask, len(p.tree.Queues))
	p.used = make([]quantity.MilliGPU, len(p.tree.Queues))
	p.solid = make([]quantity.MilliGPU, len(p.tree.Queues))
	for i := range s.Constraints {
		p.allowed = append(p.allowed, p.bitset(s.Constraints[i].Nodes))
	}
	p.findPools()
	p.makeJobs()
	p.measure()
	p.shares = p.divide()
	p.measureShares()
	p.log = make([]Decision, 0, p.idleJobs())
	return p
}

// bound turns the policy's -1 into a number that is never used up.
func bound(n int) int {
	if n < 0 {
		return int(^uint(0) >> 1)
	}
	return n
}

func (p *planner) bitset(names []string) snapshot.Nodes {
	set := snapshot.NewNodes(p.hard.Len())
	for _, name := range names {
		if i, known := p.hard.Find(name); known {
			set.Add(i)
		}
	}
	return set
}

// findPools makes a pool for every pool that has nodes or queues.
func (p *planner) findPools() {
	for i := range p.in.Nodes {
		p.addPool(p.in.Nodes[i].Pool)
	}
	for i := range p.tree.Queues {
		p.addPool(p.tree.Queues[i].Pool)
	}
}

func (p *planner) addPool(name string) {
	if p.pools[name] != nil || name == "" {
		return
	}
	mode, said := p.policy.Pools[name]
	if !said {
		mode = p.policy.Placement
	}
	p.pools[name] = &pool{name: name, spread: mode == Spread, nodes: p.hard.Nodes(name)}
}

// softRoom returns the room that plans are made on.
func (p *planner) softRoom() *snapshot.Room {
	if p.soft == nil {
		return p.hard
	}
	return p.soft
}

// splitRooms makes soft a room of its own.
func (p *planner) splitRooms() {
	if p.soft == nil {
		p.soft = p.hard.Fork()
	}
}

// charge adds what a workload takes to its queue and all above it.
func (p *planner) charge(leaf int, amount quantity.MilliGPU, solid bool) {
	p.generation++
	for q := leaf; q >= 0; q = p.tree.Queues[q].Parent {
		p.used[q] = p.used[q].Add(amount)
		if solid {
			p.solid[q] = p.solid[q].Add(amount)
		}
	}
}

// stop says why work may not take amount more in its queue, whatever is free:
// a limit, or the rule for non-preemptible work; "" if it may.
func (p *planner) stop(j *job, amount quantity.MilliGPU, used, solid []quantity.MilliGPU) (classes.Reason, int) {
	for q := j.leaf; q >= 0; q = p.tree.Queues[q].Parent {
		if used[q].Add(amount) > p.tree.Queues[q].Spec.Limit {
			return classes.ReasonOverLimit, q
		}
	}
	for q := j.leaf; q >= 0 && j.w.NonPreemptible; q = p.tree.Queues[q].Parent {
		if solid[q].Add(amount) > p.tree.Queues[q].Deserved {
			return classes.ReasonNonPreemptibleOverDeserved, q
		}
	}
	return "", -1
}

// strict reports whether a failed ask blocks the rest of its queue.
func (p *planner) strict(a ask) bool {
	return p.tree.Queues[p.jobs[a.job].leaf].Spec.Strict
}

// decisions returns what was decided, plans first.
func (p *planner) decisions() []Decision {
	return slices.Concat(p.plans, p.log)
}

// idleJobs is the number of workloads that wait: each gets a decision.
func (p *planner) idleJobs() int {
	n := 0
	for i := range p.jobs {
		if p.jobs[i].status == idle {
			n++
		}
	}
	return n
}
