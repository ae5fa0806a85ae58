package decide

import (
	"slices"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
)

// hold turns d into a Hold because set did not fit: with the reason, found by
// counting, and the numbers that explain it.
func (c *cycle) hold(d Decision, w snapshot.Workload, set snapshot.PodSet) Decision {
	queue := c.queues[w.Queue]
	d.Kind = Hold
	d.Numbers = c.numbers(queue, set)
	d.Numbers.Pods = pods(w)
	switch {
	case d.Numbers.TotalGPUs == 0:
		d.Reason = classes.ReasonPoolEmpty
	case c.neverFits(queue.Pool, w):
		d.Reason = classes.ReasonNeverFits
	default:
		d.Reason = classes.ReasonWaitingForCapacity
	}
	return d
}

// numbers counts what the pool has for one pod of set. Of several requests the
// first that no free node could serve alone is the one to talk about.
func (c *cycle) numbers(queue snapshot.Queue, set snapshot.PodSet) Numbers {
	n := Numbers{Pool: queue.Pool, Queue: queue.Name}
	if len(set.Requests) == 0 {
		return n
	}
	at := slices.IndexFunc(set.Requests, func(r snapshot.Request) bool { return c.mostFree(queue.Pool, r) < r.Count })
	r := set.Requests[max(at, 0)]
	n.WantGPUs, n.Whole, n.WantBytes = r.Count, r.Kind == snapshot.Whole, r.Bytes
	for _, i := range c.pools[queue.Pool] {
		node := c.snapshot.Nodes[i]
		most := 0
		for at, g := range c.free.GPUs(i) {
			n.LargestBytes = max(n.LargestBytes, node.GPUs[at].Usable)
			if whole(node.GPUs[at]).Fits(r) {
				most++
			}
			if !node.Schedulable || !g.Healthy {
				continue
			}
			n.TotalGPUs++
			if g.Fits(r) {
				n.FreeGPUs++
			}
		}
		n.MostOnNode = max(n.MostOnNode, most)
	}
	return n
}

// mostFree is the largest number of GPUs of one schedulable node that could take r now.
func (c *cycle) mostFree(pool string, r snapshot.Request) int {
	most := 0
	for _, i := range c.pools[pool] {
		if !c.snapshot.Nodes[i].Schedulable {
			continue
		}
		n := 0
		for _, g := range c.free.GPUs(i) {
			if g.Fits(r) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// neverFits reports that w is proven not to fit into the pool's hardware even
// if nobody held anything, every GPU were healthy and every node schedulable:
// one of its podSets alone does not fit, or together they ask for more than
// there is. A gang of several podSets that is only not found to fit, because
// the search is a heuristic, is told to wait.
func (c *cycle) neverFits(pool string, w snapshot.Workload) bool {
	if c.empty == nil {
		c.empty = snapshot.NewFree(c.hardware())
	}
	for _, set := range w.PodSets {
		if len(set.Requests) > 0 && len(c.place(c.empty.Fork(), pool, set.Requests, set.Count)) < set.Count {
			return true
		}
	}
	return c.moreThanThereIs(pool, w)
}

// moreThanThereIs counts: whole GPUs against GPUs, and bytes against what the
// largest of the other GPUs offer.
func (c *cycle) moreThanThereIs(pool string, w snapshot.Workload) bool {
	wholes, bytes := 0, quantity.Bytes(0)
	for _, set := range w.PodSets {
		for _, r := range set.Requests {
			if r.Kind == snapshot.Whole || r.Bytes == 0 {
				wholes += r.Count * set.Count
				continue
			}
			for range r.Count * set.Count { // few: the podSet fits when it is alone
				bytes = bytes.Add(r.Bytes)
			}
		}
	}
	var offers []quantity.Bytes
	for _, i := range c.pools[pool] {
		for _, g := range c.snapshot.Nodes[i].GPUs {
			offers = append(offers, g.Usable)
		}
	}
	if wholes > len(offers) {
		return true
	}
	slices.Sort(offers)
	var total quantity.Bytes
	for _, offer := range offers[wholes:] {
		total = total.Add(offer)
	}
	return bytes > total
}

// hardware is the snapshot with every node schedulable and every GPU healthy.
func (c *cycle) hardware() snapshot.Snapshot {
	s := snapshot.Snapshot{Nodes: slices.Clone(c.snapshot.Nodes)}
	for i := range s.Nodes {
		s.Nodes[i].Schedulable = true
		s.Nodes[i].GPUs = slices.Clone(s.Nodes[i].GPUs)
		for g := range s.Nodes[i].GPUs {
			s.Nodes[i].GPUs[g] = whole(s.Nodes[i].GPUs[g])
		}
	}
	return s
}

// whole is g as the hardware is: healthy, with nothing held.
func whole(g snapshot.GPU) snapshot.GPU {
	g = g.Empty()
	g.Healthy = true
	return g
}

// pods counts the pods of w that need devices.
func pods(w snapshot.Workload) int {
	n := 0
	for _, set := range w.PodSets {
		if len(set.Requests) > 0 {
			n += set.Count
		}
	}
	return n
}
