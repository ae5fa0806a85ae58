package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
)

// Cycle decides what to do with every workload of s, which must be sorted.
//
// First the devices of started work are set aside: pods that are pinned but
// hold nothing yet, pods behind our gate, and pods that do not exist yet. Then
// waiting work is tried by priority, then age; a gang that fits keeps its
// devices for the rest of the cycle, one that does not takes none.
//
// now is unused by this version's rule; it is part of the signature because
// later rules (minimum run time, grace) need it.
func Cycle(s snapshot.Snapshot, p Policy, _ time.Time) []Decision {
	c := cycle{
		snapshot: s, policy: p, free: snapshot.NewFree(s), queues: map[string]snapshot.Queue{},
		pools: map[string][]int{}, blocked: map[string]string{}, failed: map[string]Decision{},
	}
	for _, q := range s.Queues {
		c.queues[q.Name] = q
	}
	for i, n := range s.Nodes {
		c.pools[n.Pool] = append(c.pools[n.Pool], i)
	}
	order := slices.Clone(s.Workloads)
	slices.SortStableFunc(order, before)
	c.keepPinned(order)
	c.releaseAll(order)
	for _, w := range order {
		if w.State == snapshot.Waiting {
			c.decisions = append(c.decisions, c.try(w))
		}
	}
	return c.decisions
}

// before orders workloads: higher priority, then older, then by name.
func before(a, b snapshot.Workload) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Created, b.Created), strings.Compare(a.Key(), b.Key()), strings.Compare(a.UID, b.UID))
}

// cycle is the state of one Cycle.
type cycle struct {
	snapshot  snapshot.Snapshot
	policy    Policy
	free      *snapshot.Free
	empty     *snapshot.Free // the same hardware with nothing held; made when first asked for
	queues    map[string]snapshot.Queue
	pools     map[string][]int // pool -> indexes of its nodes, by name
	blocked   map[string]string
	failed    map[string]Decision // shape -> why it did not fit; what is free only shrinks within a cycle
	decisions []Decision
}

// keepPinned sets aside what pods will take that are pinned to a node already.
func (c *cycle) keepPinned(order []snapshot.Workload) {
	index := map[string]int{}
	for i, n := range c.snapshot.Nodes {
		index[n.Name] = i
	}
	for _, w := range order {
		for _, set := range w.PodSets {
			for _, pod := range set.Pods {
				if i, known := index[pod.Node]; known && !pod.Gated && !pod.Allocated {
					c.free.Take(i, set.Requests)
				}
			}
		}
	}
}

// claimant is a podSet of started work whose pods have no devices yet.
type claimant struct {
	workload snapshot.Workload
	set      snapshot.PodSet
}

// releaseAll gives every gated pod of started work a node, and sets devices
// aside for its pods that do not exist yet, by priority, then age.
//
// All of it was promised, so more important work that started later must not be
// packed in the way of the rest: if something does not fit in that order, the
// largest first is tried, and the order that leaves fewer pods without a node wins.
func (c *cycle) releaseAll(order []snapshot.Workload) {
	var claimants []claimant
	for _, w := range order {
		if w.State == snapshot.Started {
			sets := slices.SortedStableFunc(slices.Values(w.PodSets), func(a, b snapshot.PodSet) int { return larger(a.Requests, b.Requests) })
			for _, set := range sets {
				claimants = append(claimants, claimant{w, set})
			}
		}
	}
	best := c.release(claimants)
	if best.homeless > 0 {
		slices.SortStableFunc(claimants, func(a, b claimant) int { return larger(a.set.Requests, b.set.Requests) })
		if other := c.release(claimants); other.homeless < best.homeless {
			best = other
		}
	}
	c.free, c.decisions = best.free, best.decisions
}

// released is the outcome of one order.
type released struct {
	free      *snapshot.Free
	decisions []Decision
	homeless  int // pods without a node
}

// release tries one order on a fork.
func (c *cycle) release(claimants []claimant) released {
	before := c.free
	defer func() { c.free = before }()
	c.free = before.Fork()
	out := released{free: c.free}
	for _, claimant := range claimants {
		decisions, homeless := c.releaseSet(claimant.workload, claimant.set)
		out.decisions = append(out.decisions, decisions...)
		out.homeless += homeless
	}
	return out
}

// releaseSet places the pods of one podSet: those that exist first.
func (c *cycle) releaseSet(w snapshot.Workload, set snapshot.PodSet) (decisions []Decision, homeless int) {
	var gated []string
	for _, pod := range set.Pods {
		if pod.Gated {
			gated = append(gated, pod.Name)
		}
	}
	wanted := len(gated) + max(set.Count-len(set.Pods), 0)
	nodes := c.place(c.free, c.queues[w.Queue].Pool, set.Requests, wanted)
	for i, pod := range gated {
		d := Decision{Namespace: w.Namespace, Workload: w.Name, UID: w.UID, Pod: pod}
		switch {
		case w.Uncharged:
			d = uncharged(d, w)
		case i < len(nodes):
			node := c.snapshot.Nodes[nodes[i]]
			d.Kind, d.Node, d.Hostname = Release, node.Name, node.Hostname
		case len(set.Requests) == 0:
			d.Kind = Release // its claims are all for other drivers: it goes where the scheduler likes
		default:
			d = c.hold(d, w, set)
		}
		decisions = append(decisions, d)
	}
	if len(set.Requests) == 0 {
		return decisions, 0
	}
	return decisions, wanted - len(nodes)
}

func uncharged(d Decision, w snapshot.Workload) Decision {
	d.Kind, d.Reason, d.Numbers = Hold, classes.ReasonUncharged, Numbers{Queue: w.Queue}
	return d
}

// try places a whole gang or says why it waits.
func (c *cycle) try(w snapshot.Workload) Decision {
	d := Decision{Namespace: w.Namespace, Workload: w.Name, UID: w.UID}
	queue, known := c.queues[w.Queue]
	if !known {
		d.Kind, d.Reason, d.Numbers = Hold, classes.ReasonQueueNotFound, Numbers{Queue: w.Queue}
		return d
	}
	if w.Uncharged {
		return uncharged(d, w)
	}
	if head, isBlocked := c.blocked[queue.Name]; isBlocked {
		d.Kind, d.Reason, d.Numbers = Hold, classes.ReasonBehindHead, Numbers{Queue: queue.Name, Pool: queue.Pool, Ahead: head}
		return d
	}
	d = c.tryGang(d, w, queue)
	if d.Kind == Hold && queue.Strict {
		c.blocked[queue.Name] = w.Key()
	}
	return d
}

func (c *cycle) tryGang(d Decision, w snapshot.Workload, queue snapshot.Queue) Decision {
	key := shape(w, queue)
	if known, failed := c.failed[key]; failed {
		d.Kind, d.Reason, d.Numbers = Hold, known.Reason, known.Numbers
		return d
	}
	trial := c.free.Fork()
	placement, short := c.placeGang(trial, queue.Pool, w)
	if short < 0 {
		c.free = trial
		d.Kind, d.Placement = Start, placement
		return d
	}
	d = c.hold(d, w, w.PodSets[short])
	for _, nodes := range placement {
		d.Numbers.PlacedPods += len(nodes)
	}
	c.failed[key] = d
	return d
}

// placeGang places every pod of w on free. It returns the nodes' names per
// podSet and the index of the podSet that did not fit, -1 if all did.
//
// Equal pods are placed exactly: how many a node takes does not depend on the
// others. Different podSets are placed largest first, which is a heuristic: a
// gang of several kinds of pods may be told to wait where an exhaustive search
// would have found room.
func (c *cycle) placeGang(free *snapshot.Free, pool string, w snapshot.Workload) (placement [][]string, short int) {
	order := make([]int, len(w.PodSets))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return larger(w.PodSets[a].Requests, w.PodSets[b].Requests) })
	placement, short = make([][]string, len(w.PodSets)), -1
	for _, i := range order {
		set := w.PodSets[i]
		nodes := c.place(free, pool, set.Requests, set.Count)
		for _, n := range nodes {
			placement[i] = append(placement[i], c.snapshot.Nodes[n].Name)
		}
		if len(set.Requests) > 0 && len(nodes) < set.Count {
			return placement, i
		}
	}
	return placement, short
}

// place puts up to count equal pods on free and returns the node of each that
// fits. Pods that ask for no device of ours are placed nowhere.
func (c *cycle) place(free *snapshot.Free, pool string, requests []snapshot.Request, count int) []int {
	if len(requests) == 0 {
		return nil
	}
	candidates := slices.Clone(c.pools[pool])
	candidates = slices.DeleteFunc(candidates, func(i int) bool { return !free.Node(i).Schedulable })
	var nodes []int
	for len(nodes) < count && len(candidates) > 0 {
		at := c.best(free, candidates)
		if free.Take(candidates[at], requests) {
			nodes = append(nodes, candidates[at])
		} else {
			candidates = slices.Delete(candidates, at, at+1) // it will not fit later either
		}
	}
	return nodes
}

// best returns the position of the node to try next: the fullest (BinPack) or
// the emptiest (Spread); the first by name among equals.
func (c *cycle) best(free *snapshot.Free, candidates []int) int {
	best := 0
	for at := range candidates {
		a, b := free.Taken(candidates[at]), free.Taken(candidates[best])
		if c.policy.Placement == BinPack && a > b || c.policy.Placement == Spread && a < b {
			best = at
		}
	}
	return best
}

// larger orders requests by what they take: whole GPUs, then bytes, then GPUs.
func larger(a, b []snapshot.Request) int {
	wholeA, bytesA, countA := size(a)
	wholeB, bytesB, countB := size(b)
	return cmp.Or(cmp.Compare(wholeB, wholeA), cmp.Compare(bytesB, bytesA), cmp.Compare(countB, countA))
}

func size(requests []snapshot.Request) (whole int, bytes int64, count int) {
	for _, r := range requests {
		if r.Kind == snapshot.Whole || r.Bytes == 0 {
			whole += r.Count
		}
		bytes = max(bytes, int64(r.Bytes))
		count += r.Count
	}
	return whole, bytes, count
}

// shape is equal for workloads that a cycle cannot tell apart when it places them.
func shape(w snapshot.Workload, queue snapshot.Queue) string {
	var b strings.Builder
	b.WriteString(queue.Pool + "\x00" + queue.Name)
	for _, set := range w.PodSets {
		fmt.Fprintf(&b, "\x00%d %v", set.Count, set.Requests)
	}
	return b.String()
}
