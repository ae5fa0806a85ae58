package decide

import (
	"slices"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
)

// settle sets aside what started work holds and what it was promised: pods that
// are pinned but hold nothing yet, pods behind our gate, and pods that do not
// exist yet. What leaves is free in soft only.
func (p *planner) settle() {
	for i := range p.jobs {
		p.settlePods(i)
	}
	p.release()
	for i := range p.jobs {
		p.queueUp(i)
	}
	for leaf := range p.waiting {
		slices.SortFunc(p.waiting[leaf], p.earlier)
	}
}

// settlePods reads the pods of one workload.
func (p *planner) settlePods(at int) {
	j := &p.jobs[at]
	started := j.w.State == snapshot.Started
	for s := range j.w.PodSets {
		set := &j.w.PodSets[s]
		if len(set.Pods) == 0 {
			continue
		}
		if started && j.placed == nil {
			j.placed = make([]place, 0, len(set.Pods))
		}
		for i := range set.Pods {
			pod := &set.Pods[i]
			node, known := p.hard.Find(pod.Node)
			switch {
			case !started || pod.Leaving:
				p.leave(node, known, set, pod)
			case pod.Gated:
				j.addGated(s, i)
			case known && devices(set):
				p.settlePod(j, place{set: s, pod: i, node: node})
			}
		}
	}
}

// leave frees in soft what a leaving pod holds.
func (p *planner) leave(node int, known bool, set *snapshot.PodSet, pod *snapshot.Pod) {
	if !known || !pod.Allocated && !pod.Bound {
		return
	}
	p.splitRooms()
	needs := &set.Needs
	if !pod.Bound {
		needs = nil
	}
	p.soft.Give(node, pod.Devices, needs)
}

// settlePod counts a pod that has its node.
func (p *planner) settlePod(j *job, at place) {
	set := &j.w.PodSets[at.set]
	pod := &set.Pods[at.pod]
	switch {
	case pod.Allocated && pod.Bound:
		at.held = pod.Devices
	case pod.Allocated:
		at.held = pod.Devices
		p.both(func(r *snapshot.Room) { r.Hold(at.node, nil, &set.Needs) })
	default:
		want := *set
		if pod.Bound {
			want.Needs = snapshot.Resources{}
		}
		at.held, _ = p.hard.Reserve(at.node, &want)
		if p.soft != nil {
			p.soft.Hold(at.node, at.held, &want.Needs)
		}
	}
	j.placed = append(j.placed, at)
	if j.leaf >= 0 {
		p.charge(j.leaf, set.Charge, j.w.NonPreemptible)
	}
}

// both does the same to both rooms.
func (p *planner) both(do func(*snapshot.Room)) {
	do(p.hard)
	if p.soft != nil {
		do(p.soft)
	}
}

func (j *job) addGated(set, pod int) {
	if j.gated == nil {
		j.gated = make([][]int, len(j.w.PodSets))
	}
	j.gated[set] = append(j.gated[set], pod)
}

// claimant is a podSet of started work with pods of its gang that have no devices yet.
type claimant struct{ job, set, pods int }

// release gives every gated pod of a started gang a node, and sets devices
// aside for its pods that do not exist yet, by priority, then age.
//
// All of it was promised, so more important work that started later must not be
// packed in the way of the rest: if something does not fit in that order, the
// largest first is tried, and the order that leaves fewer pods without a node wins.
func (p *planner) release() {
	claimants := p.claimants()
	if len(claimants) == 0 {
		return
	}
	slices.SortStableFunc(claimants, func(a, b claimant) int { return p.earlier(ask{job: a.job}, ask{job: b.job}) })
	best := p.tryRelease(claimants)
	if best.homeless > 0 {
		largest := slices.SortedStableFunc(slices.Values(claimants), func(a, b claimant) int {
			return larger(&p.jobs[a.job].w.PodSets[a.set], &p.jobs[b.job].w.PodSets[b.set])
		})
		if other := p.tryRelease(largest); other.homeless < best.homeless {
			best, claimants = other, largest
		}
	}
	p.hard.CopyFrom(best.room)
	for i, c := range claimants {
		j := &p.jobs[c.job]
		p.holdAll(p.soft, j, best.places[i])
		p.give(j, best.places[i])
		if missing := c.pods - len(best.places[i]); missing > 0 && p.soft != nil {
			p.releaseLater(j, c.set, missing)
		}
	}
}

// claimants lists what gangs of started work lack.
func (p *planner) claimants() []claimant {
	var out []claimant
	for i := range p.jobs {
		j := &p.jobs[i]
		if j.w.State != snapshot.Started || j.leaf < 0 || j.w.Uncharged {
			continue
		}
		for s := range j.w.PodSets {
			set := &j.w.PodSets[s]
			stay, gated := 0, 0
			for at := range set.Pods {
				switch {
				case set.Pods[at].Leaving:
				case set.Pods[at].Gated:
					gated++
				default:
					stay++
				}
			}
			missing := max(set.Count-stay-gated, 0) + gated
			if elastic(j.w) {
				missing = min(missing, max(j.w.MinPods-stay, 0))
			}
			if devices(set) && missing > 0 {
				out = append(out, claimant{i, s, missing})
			}
		}
	}
	return out
}

// released is the outcome of one order.
type released struct {
	room     *snapshot.Room
	places   [][]place // per claimant
	homeless int
}

func (p *planner) tryRelease(claimants []claimant) released {
	out := released{room: p.hard.Fork(), places: make([][]place, len(claimants))}
	for i, c := range claimants {
		counts := make([]int, len(p.jobs[c.job].w.PodSets))
		counts[c.set] = c.pods
		out.places[i], _ = p.put(out.room, &p.jobs[c.job], counts)
		out.homeless += c.pods - len(out.places[i])
	}
	return out
}

// releaseLater seats pods on devices that will be free.
func (p *planner) releaseLater(j *job, set, pods int) {
	counts := make([]int, len(j.w.PodSets))
	counts[set] = pods
	places, _ := p.put(p.soft, j, counts)
	p.block(j, places)
	for _, at := range places {
		p.log = append(p.log, p.waitForRelease(j, p.gatedPod(j, set)))
		j.placed = append(j.placed, at)
		p.charge(j.leaf, j.w.PodSets[set].Charge, j.w.NonPreemptible)
	}
}

// give hands places to the gated pods of j, those that exist first, and charges them.
func (p *planner) give(j *job, places []place) {
	for i := range places {
		at := &places[i]
		if pod := p.gatedPod(j, at.set); pod >= 0 {
			at.pod = pod
			node := &p.in.Nodes[at.node]
			d := j.decision(Release)
			d.Pod, d.Node, d.Hostname, d.Turns = j.w.PodSets[at.set].Pods[pod].Name, node.Name, node.Hostname, [][]int{{at.turn}}
			p.log = append(p.log, d)
		}
	}
	p.seated(j, places)
}

// gatedPod takes the next gated pod of a podSet; -1 when there is none.
func (p *planner) gatedPod(j *job, set int) int {
	if j.gated == nil || len(j.gated[set]) == 0 {
		return -1
	}
	pod := j.gated[set][0]
	j.gated[set] = j.gated[set][1:]
	return pod
}

// queueUp lets a workload wait for what it lacks, or says why it cannot.
func (p *planner) queueUp(at int) {
	j := &p.jobs[at]
	switch {
	case j.status == idle:
		p.waiting[j.leaf] = append(p.waiting[j.leaf], ask{job: at})
	case j.w.State == snapshot.Started:
		p.queueStarted(at)
	}
}

func (p *planner) queueStarted(at int) {
	j := &p.jobs[at]
	for set, pods := range j.gated {
		for len(pods) > 0 && !devices(&j.w.PodSets[set]) {
			d := j.decision(Release) // it asks for no device of ours: it goes where the scheduler likes
			d.Pod = j.w.PodSets[set].Pods[p.gatedPod(j, set)].Name
			p.log = append(p.log, d)
			pods = j.gated[set]
		}
	}
	switch {
	case j.leaf < 0 || j.w.Uncharged:
		return
	case p.lacks(j):
		p.waiting[j.leaf] = append(p.waiting[j.leaf], ask{job: at})
	case elastic(j.w) && len(j.gated) > 0 && len(j.gated[0]) > 0:
		p.waiting[j.leaf] = append(p.waiting[j.leaf], ask{job: at, surplus: true})
	}
}

// lacks reports whether a gang has gated pods without a place.
func (p *planner) lacks(j *job) bool {
	if elastic(j.w) && len(j.placed) >= j.w.MinPods {
		return false
	}
	return slices.ContainsFunc(j.gated, func(pods []int) bool { return len(pods) > 0 })
}

// waitForRelease is the decision that tells that devices are still held by what leaves.
func (p *planner) waitForRelease(j *job, pod int) Decision {
	d := j.decision(Hold)
	d.Reason, d.Numbers = classes.ReasonWaitingForRelease, p.queueNumbers(j)
	if pod >= 0 {
		d.Pod = j.w.PodSets[0].Pods[pod].Name
	}
	return d
}

// larger orders podSets by what one pod takes: whole GPUs, then bytes, then GPUs.
func larger(a, b *snapshot.PodSet) int {
	wholeA, bytesA, countA := size(a.Requests)
	wholeB, bytesB, countB := size(b.Requests)
	return compareDown(wholeA, wholeB, bytesA, bytesB, countA, countB)
}

// compareDown compares pairs of numbers, the larger first.
func compareDown(pairs ...int64) int {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] != pairs[i+1] {
			if pairs[i] > pairs[i+1] {
				return -1
			}
			return 1
		}
	}
	return 0
}

func size(requests []snapshot.Request) (whole, bytes, count int64) {
	for _, r := range requests {
		if r.Kind == snapshot.Whole || r.Kind == snapshot.Share && r.Bytes == 0 && r.PPM == 0 {
			whole += int64(r.Count)
		}
		bytes = max(bytes, int64(r.Bytes), r.PPM)
		count += int64(r.Count)
	}
	return whole, bytes, count
}
