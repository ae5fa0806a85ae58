package fairshare

import (
	"math/bits"

	"github.com/fairshard/fairshard/admission/tree"
	"github.com/fairshard/fairshard/classes/quantity"
)

// Input is what is divided, per pool, and who asks for it.
type Input struct {
	Tree      *tree.Tree
	Capacity  map[string]quantity.MilliGPU // per pool
	Demand    []quantity.MilliGPU          // per queue of the tree, leaves only: held and waited for
	Used      []quantity.MilliGPU          // per queue, leaves only: average past use; nil = no history
	K         int64                        // how much past use counts, in thousandths
	FirstCome bool                         // promises beyond what a level has are kept in full; else scaled
}

// Shares is the result, per queue of the tree.
type Shares struct {
	Share       []quantity.MilliGPU
	Deserved    []quantity.MilliGPU // what counts as deserved now: scaled where a level promised more than it has
	Allocatable []quantity.MilliGPU // the larger of Share and Deserved, within the limit
	Demand      []quantity.MilliGPU
	Unassigned  map[string]quantity.MilliGPU // per pool, left at the top
}

// Divide computes the fair shares of all queues. The roots of a pool share what
// it has, children what their parent has.
func Divide(in Input) Shares {
	n := len(in.Tree.Queues)
	d := division{in: in, out: Shares{
		Share: make([]quantity.MilliGPU, n), Deserved: make([]quantity.MilliGPU, n), Allocatable: make([]quantity.MilliGPU, n),
		Demand: make([]quantity.MilliGPU, n), Unassigned: map[string]quantity.MilliGPU{},
	}, used: make([]quantity.MilliGPU, n)}
	roots := map[string][]int{}
	for _, root := range in.Tree.Roots {
		d.sum(root)
		pool := in.Tree.Queues[root].Pool
		roots[pool] = append(roots[pool], root)
	}
	for pool, capacity := range in.Capacity {
		d.out.Unassigned[pool] = capacity
	}
	for pool, queues := range roots {
		d.out.Unassigned[pool] = d.level(queues, in.Capacity[pool])
	}
	return d.out
}

// division is the state of one Divide.
type division struct {
	in   Input
	out  Shares
	used []quantity.MilliGPU
}

// sum adds up demand and past use below a queue.
func (d *division) sum(i int) {
	q := &d.in.Tree.Queues[i]
	if !q.Spec.Cohort && i < len(d.in.Demand) {
		d.out.Demand[i] = d.in.Demand[i]
	}
	if i < len(d.in.Used) {
		d.used[i] = d.in.Used[i]
	}
	for _, child := range q.Children {
		d.sum(child)
		d.out.Demand[i] = d.out.Demand[i].Add(min(d.out.Demand[child], d.in.Tree.Queues[child].Spec.Limit))
		d.used[i] = d.used[i].Add(d.used[child])
	}
	if q.Spec.Demand != nil {
		d.out.Demand[i] = *q.Spec.Demand
	}
}

// level divides total among siblings and what is below them; it returns what
// nobody gets.
func (d *division) level(queues []int, total quantity.MilliGPU) quantity.MilliGPU {
	total = min(total, maxTotal)
	claims := make([]*claim, len(queues))
	list := make([]claim, len(queues))
	rest := d.promise(queues, list, total)
	for i, at := range queues {
		spec := &d.in.Tree.Queues[at].Spec
		claims[i] = &list[i]
		list[i].weight, list[i].priority, list[i].used = spec.Weight, spec.Priority, d.used[at]
	}
	pot := pot{total: total}
	if d.in.Used != nil {
		pot.k = d.in.K
	}
	if rest > 0 {
		rest = pot.divide(claims, rest)
	}
	for i, at := range queues {
		spec := &d.in.Tree.Queues[at].Spec
		d.out.Share[at] = list[i].share
		d.out.Allocatable[at] = min(spec.Limit, max(d.out.Deserved[at], list[i].share))
		if d.in.Tree.Queues[at].Deserved == quantity.Unlimited {
			d.out.Allocatable[at] = spec.Limit
		}
		if children := d.in.Tree.Queues[at].Children; len(children) > 0 {
			d.level(children, list[i].share)
		}
	}
	return max(rest, 0)
}

// maxTotal bounds what a level has, so that products stay exact: 2^40 is a
// billion GPUs.
const maxTotal quantity.MilliGPU = 1 << 40

// promise gives every queue what it deserves and can use, and returns what is
// left; below zero when promises exceed total and are kept in full.
func (d *division) promise(queues []int, list []claim, total quantity.MilliGPU) quantity.MilliGPU {
	rest, asked := total, quantity.MilliGPU(0)
	for i, at := range queues {
		q := &d.in.Tree.Queues[at]
		deserved := min(q.Deserved, maxTotal)
		if q.Deserved == quantity.Unlimited {
			deserved = total
		}
		d.out.Deserved[at] = deserved
		list[i].want = min(d.out.Demand[at], q.Spec.Limit, maxTotal)
		list[i].share = min(deserved, list[i].want)
		asked = asked.Add(list[i].share)
	}
	rest -= min(asked, maxTotal)
	if asked <= total || d.in.FirstCome {
		return rest
	}
	d.scale(queues, list, total)
	return 0
}

// scale divides total among promises that exceed it, by what is deserved.
func (d *division) scale(queues []int, list []claim, total quantity.MilliGPU) {
	claims := make([]*claim, len(queues))
	promised := make([]claim, len(queues))
	shift := bits.Len(uint(len(queues))) // keeps the sum of weights below 2^40
	if d.largest(queues) < maxTotal>>shift {
		shift = 0
	}
	for i, at := range queues {
		promised[i] = claim{weight: int64(d.out.Deserved[at] >> shift), want: list[i].share}
		claims[i] = &promised[i]
	}
	remainders(claims, pot{total: total}.fill(claims, total))
	for i, at := range queues {
		list[i].share = min(promised[i].share, list[i].share)
		d.out.Deserved[at] = list[i].share
	}
}

// largest is the largest promise of a level.
func (d *division) largest(queues []int) quantity.MilliGPU {
	most := quantity.MilliGPU(0)
	for _, at := range queues {
		most = max(most, d.out.Deserved[at])
	}
	return most
}
