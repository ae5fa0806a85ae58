package decide

import (
	"cmp"
	"math/bits"
	"strings"

	"github.com/fairshard/fairshard/classes/quantity"
)

// standing is how well a queue is served: what it uses, and what it would use
// with its first ask, or without its first victim.
type standing struct {
	queue int
	used  quantity.MilliGPU
	then  quantity.MilliGPU
}

// compare orders siblings, the least served first. The first difference
// decides: above its fair share goes last; staying within deserved goes first;
// higher priority; without any share goes last; the smaller part of its share
// used then; the same used now; the smaller share; older; name.
//
// Example: two queues that deserve 1 GPU each and nothing more, with three
// 1-GPU jobs each on 4 GPUs, start two each: after one each the older goes on,
// is then above its share, and leaves the last to the other.
func (p *planner) compare(a, b standing) int {
	x, y := &p.tree.Queues[a.queue], &p.tree.Queues[b.queue]
	shareX, shareY := p.enough(a.queue), p.enough(b.queue)
	// This is called most of all, so nothing is computed that is not looked at.
	if order := cmp.Or(
		falseFirst(a.used > shareX, b.used > shareY),
		falseFirst(a.then > p.shares.Deserved[a.queue], b.then > p.shares.Deserved[b.queue]),
		cmp.Compare(y.Spec.Priority, x.Spec.Priority),
		falseFirst(shareX == 0, shareY == 0),
	); order != 0 {
		return order
	}
	if order := compareParts(a.then, shareX, b.then, shareY); order != 0 {
		return order
	}
	if order := compareParts(a.used, shareX, b.used, shareY); order != 0 {
		return order
	}
	return cmp.Or(
		cmp.Compare(shareX, shareY),
		cmp.Compare(x.Spec.Created, y.Spec.Created),
		strings.Compare(x.Spec.Name, y.Spec.Name),
		cmp.Compare(a.queue, b.queue),
	)
}

// enough is the share of a queue that its use is measured against: never below
// deserved, never above its limit; without bound it is what the pool has.
func (p *planner) enough(queue int) quantity.MilliGPU { return p.plenty[queue] }

// measureShares fills in what enough returns.
func (p *planner) measureShares() {
	p.plenty = make([]quantity.MilliGPU, len(p.tree.Queues))
	for i := range p.plenty {
		p.plenty[i] = p.shares.Allocatable[i]
		if pool := p.pools[p.tree.Queues[i].Pool]; p.plenty[i] == quantity.Unlimited && pool != nil {
			p.plenty[i] = pool.capacity
		}
	}
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// compareParts compares used/share, exactly. Without a share every thousandth
// of a GPU counts as much as a whole share.
func compareParts(usedA, shareA, usedB, shareB quantity.MilliGPU) int {
	hiA, loA := bits.Mul64(uint64(usedA), uint64(max(shareB, 1)))
	hiB, loB := bits.Mul64(uint64(usedB), uint64(max(shareA, 1)))
	return cmp.Or(cmp.Compare(hiA, hiB), cmp.Compare(loA, loB))
}
