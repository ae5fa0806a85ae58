package decide

import (
	"slices"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes/quantity"
)

// hardware returns a room with nothing held, every GPU healthy and every node
// schedulable and without other bounds.
func (p *planner) hardware() *snapshot.Room {
	if p.empty != nil {
		return p.empty
	}
	s := snapshot.Snapshot{Nodes: slices.Clone(p.in.Nodes)}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.Schedulable, n.Free = true, nil
		n.GPUs = slices.Clone(n.GPUs)
		for g := range n.GPUs {
			n.GPUs[g] = whole(n.GPUs[g])
		}
	}
	p.empty = snapshot.NewRoom(&s)
	return p.empty
}

// whole is g as the hardware is.
func whole(g snapshot.GPU) snapshot.GPU {
	g = g.Empty()
	g.Healthy = true
	return g
}

// neverFits reports that j is proven, by counting, not to fit into the pool's
// hardware even if nobody else used it: one of its podSets alone does not fit,
// or together they ask for more than there is. A gang of several podSets that
// is only not found to fit, because the search is a heuristic, may wait.
func (p *planner) neverFits(j *job) bool {
	if j.pool == nil || j.fits {
		return false
	}
	key := fitKey{j.shape, -1}
	if len(j.gang) == 1 {
		key.pods = j.gang[0]
	}
	never, known := p.never[key]
	if !known {
		never = p.tooLarge(j)
		p.never[key] = never
	}
	j.fits = !never
	return never
}

func (p *planner) tooLarge(j *job) bool {
	sets := 0
	for set := range j.w.PodSets {
		if !devices(&j.w.PodSets[set]) {
			continue
		}
		sets++
		if p.hardware().CountFit(p.search(j, set), j.gang[set]) < j.gang[set] {
			return true
		}
	}
	return sets > 1 && p.moreThanThereIs(j)
}

// moreThanThereIs counts a gang of several podSets: whole GPUs against GPUs, and
// bytes against what the largest of the other GPUs offer. Each podSet fits
// alone, so the numbers are small.
func (p *planner) moreThanThereIs(j *job) bool {
	wholes, bytes := int64(0), quantity.Bytes(0)
	for set := range j.w.PodSets {
		for _, r := range j.w.PodSets[set].Requests {
			n := int64(r.Count) * int64(j.gang[set])
			switch {
			case r.Kind == snapshot.Whole || r.Kind == snapshot.Share && r.Bytes == 0 && r.PPM == 0:
				wholes += n
			case r.Kind == snapshot.Share:
				bytes = bytes.Add(r.Bytes * quantity.Bytes(n))
			}
		}
	}
	var offers []quantity.Bytes
	for i := range p.in.Nodes {
		for g := range p.in.Nodes[i].GPUs {
			if p.in.Nodes[i].Pool == j.pool.name {
				offers = append(offers, p.in.Nodes[i].GPUs[g].Usable)
			}
		}
	}
	if wholes > int64(len(offers)) {
		return true
	}
	slices.Sort(offers)
	var total quantity.Bytes
	for _, offer := range offers[wholes:] {
		total = total.Add(offer)
	}
	return bytes > total
}

// fitsWhenFree reports whether one device of r fits on g as the hardware is.
func fitsWhenFree(g snapshot.GPU, r snapshot.Request) bool {
	g = whole(g)
	return g.Fits(r)
}
