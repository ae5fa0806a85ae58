package decide

import (
	"math/bits"
	"time"

	"github.com/fairshard/fairshard/admission/fairshare"
	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes/quantity"
)

// measure finds what each pool has to divide: its healthy GPUs on schedulable
// nodes less what others than our workloads hold, and, so that no queue looks
// over its share because a node was cordoned, what our workloads hold elsewhere.
func (p *planner) measure() {
	ours, first := p.ourDevices()
	for i := range p.in.Nodes {
		node := &p.in.Nodes[i]
		pool := p.pools[node.Pool]
		if pool == nil {
			continue
		}
		for g := range node.GPUs {
			gpu, own := &node.GPUs[g], ours[first[i]+g]
			if !gpu.Healthy || !node.Schedulable {
				pool.capacity = pool.capacity.Add(held(gpu, own))
				continue
			}
			pool.gpus++
			pool.capacity = pool.capacity.Add(quantity.PerGPU.Sub(held(gpu, foreign(gpu, own))))
		}
	}
}

// use is what some pods hold of one GPU.
type use struct {
	whole bool
	bytes quantity.Bytes
	mask  uint8
}

// ourDevices sums what pods of the snapshot's workloads hold, per GPU; first is
// where each node's GPUs begin.
func (p *planner) ourDevices() (ours []use, first []int) {
	first = make([]int, len(p.in.Nodes)+1)
	for i := range p.in.Nodes {
		first[i+1] = first[i] + len(p.in.Nodes[i].GPUs)
	}
	ours = make([]use, first[len(p.in.Nodes)])
	for w := range p.in.Workloads {
		for s := range p.in.Workloads[w].PodSets {
			pods := p.in.Workloads[w].PodSets[s].Pods
			for at := range pods {
				if node, known := p.hard.Find(pods[at].Node); known {
					addUse(ours[first[node]:first[node+1]], pods[at].Devices)
				}
			}
		}
	}
	return ours, first
}

// addUse adds the devices of a pod to those of its node.
func addUse(node []use, devices []snapshot.Held) {
	for _, d := range devices {
		if d.GPU < 0 || d.GPU >= len(node) {
			continue
		}
		u := &node[d.GPU]
		u.whole = u.whole || d.Kind == snapshot.Whole
		u.bytes = u.bytes.Add(d.Bytes)
		u.mask |= d.Mask
	}
}

// foreign is what is held of g beyond ours.
func foreign(g *snapshot.GPU, ours use) use {
	return use{whole: g.WholeUsed && !ours.whole, bytes: g.ShareUsed.Sub(ours.bytes), mask: g.MIGUsed &^ ours.mask}
}

// held is a use of g in thousandths of a GPU.
func held(g *snapshot.GPU, u use) quantity.MilliGPU {
	switch {
	case u.whole:
		return quantity.PerGPU
	case u.mask != 0:
		return quantity.MilliGPU(bits.OnesCount8(u.mask)) * quantity.PerGPU / 8
	case u.bytes > 0:
		return quantity.OfShare(u.bytes, g.Usable)
	default:
		return 0
	}
}

// divide computes the fair shares. They depend on what queues ask for, never
// on what they hold: so evictions do not change them.
func (p *planner) divide() fairshare.Shares {
	in := fairshare.Input{
		Tree: p.tree, Capacity: map[string]quantity.MilliGPU{}, FirstCome: p.policy.FirstCome,
		Demand: make([]quantity.MilliGPU, len(p.tree.Queues)), K: p.policy.HistoryK,
	}
	for name, pool := range p.pools {
		in.Capacity[name] = pool.capacity
	}
	for i := range p.jobs {
		if j := &p.jobs[i]; p.asks(j) {
			in.Demand[j.leaf] = in.Demand[j.leaf].Add(j.total)
		}
	}
	if p.policy.HistoryK > 0 && len(p.in.Usage) > 0 {
		in.Used = p.pastUse()
	}
	return fairshare.Divide(in)
}

// asks reports whether a workload counts as demand. One that the hardware can
// never hold must not take from the share of others.
func (p *planner) asks(j *job) bool {
	switch {
	case j.leaf < 0 || j.w.Uncharged || j.w.State == snapshot.Ended:
		return false
	case j.w.State == snapshot.Waiting:
		return !p.neverFits(j)
	default:
		return true
	}
}

func (p *planner) pastUse() []quantity.MilliGPU {
	average := fairshare.Average(p.in.Usage, fairshare.History{Now: p.now, HalfLife: p.policy.HistoryHalfLife, Window: p.policy.HistoryWindow})
	used := make([]quantity.MilliGPU, len(p.tree.Queues))
	for name, amount := range average {
		if leaf, usable := p.tree.Leaf(name); usable {
			used[leaf] = amount
		}
	}
	return used
}

// Accounts are the numbers of every queue, as one cycle sees them at its start.
type Accounts struct {
	Queues     []Account // by kind, then name, as in the tree
	Unassigned map[string]quantity.MilliGPU
}

// Account is what one queue has.
type Account struct {
	Name           string
	Cohort         bool
	Pool           string
	Deserved       quantity.MilliGPU // as promised
	Effective      quantity.MilliGPU // what counts as deserved now, where more was promised than there is
	Share          quantity.MilliGPU
	Limit          quantity.MilliGPU
	Used           quantity.MilliGPU
	NonPreemptible quantity.MilliGPU
	Demand         quantity.MilliGPU
}

// Accounting returns the fair shares and uses of all queues.
func Accounting(s snapshot.Snapshot, policy Policy, now time.Time) Accounts {
	p := newPlanner(&s, policy, now.UnixNano())
	p.settle()
	out := Accounts{Unassigned: p.shares.Unassigned}
	for i := range p.tree.Queues {
		q := &p.tree.Queues[i]
		out.Queues = append(out.Queues, Account{
			Name: q.Spec.Name, Cohort: q.Spec.Cohort, Pool: q.Pool, Deserved: q.Deserved, Effective: p.shares.Deserved[i], Limit: q.Spec.Limit,
			Share: p.shares.Share[i], Used: p.used[i], NonPreemptible: p.solid[i], Demand: p.shares.Demand[i],
		})
	}
	return out
}
