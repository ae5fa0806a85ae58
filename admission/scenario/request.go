package scenario

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes/quantity"
)

// podSet reads what each pod of w asks for.
func (b *builder) podSet(w *workload) (snapshot.PodSet, error) {
	set := snapshot.PodSet{Name: "main", Count: 1, Needs: snapshot.Resources{
		MilliCPU: int64(w.CPU), Memory: quantity.Bytes(w.Memory), Pods: 1, Extended: amounts(w.Extended),
	}}
	if w.Pods != nil {
		set.Count = *w.Pods
	}
	if set.Count < 1 || set.Count > maxPods {
		return set, fmt.Errorf("pods %d must be 1 to %d", set.Count, maxPods)
	}
	r, charge, err := b.request(w)
	if err != nil {
		return set, err
	}
	if r.Count > 0 {
		set.Requests = []snapshot.Request{r}
	}
	set.Charge = charge
	return set, nil
}

func (b *builder) request(w *workload) (snapshot.Request, quantity.MilliGPU, error) {
	r := w.Request
	kinds := 0
	for _, given := range []bool{r.GPUs != nil, r.Fraction != nil, r.Memory != nil, r.MIG != ""} {
		if given {
			kinds++
		}
	}
	if kinds != 1 {
		return snapshot.Request{}, 0, fmt.Errorf("request must have one of gpus, fraction, memory and mig")
	}
	count := 1
	if r.Count != nil {
		count = *r.Count
	}
	if r.GPUs != nil {
		if r.Count != nil {
			return snapshot.Request{}, 0, fmt.Errorf("request.count is for shares: write gpus: %d", count)
		}
		count = *r.GPUs
	}
	if count < 0 || count > maxPods || count == 0 && r.GPUs == nil {
		return snapshot.Request{}, 0, fmt.Errorf("request asks for %d devices", count)
	}
	return b.sized(w, count)
}

// sized is a request for count devices, and what it costs in the pool of its queue.
func (b *builder) sized(w *workload, count int) (snapshot.Request, quantity.MilliGPU, error) {
	r, n := w.Request, int64(count)
	gpu := b.smallest(b.pools[w.Queue])
	switch {
	case r.GPUs != nil:
		return snapshot.Request{Kind: snapshot.Whole, Count: count}, quantity.PerGPU.Mul(n), nil
	case r.Fraction != nil:
		return snapshot.Request{Kind: snapshot.Share, Count: count, PPM: r.Fraction.ppm}, r.Fraction.milli.Mul(n), nil
	case r.Memory != nil:
		if *r.Memory == 0 {
			return snapshot.Request{}, 0, fmt.Errorf("request.memory must be above 0")
		}
		bytes := quantity.Bytes(*r.Memory)
		return snapshot.Request{Kind: snapshot.Share, Count: count, Bytes: bytes}, quantity.OfShare(gpu.Charge(bytes), gpu.Usable).Mul(n), nil
	default:
		profile, err := snapshot.ParseMIG(r.MIG, gpu.Usable)
		return snapshot.Request{Kind: snapshot.MIG, Count: count, Profile: profile}, profile.Milli().Mul(n), err
	}
}

// smallest is a GPU of the smallest model of a pool.
func (b *builder) smallest(pool string) snapshot.GPU {
	var found []snapshot.GPU
	for _, n := range b.scenario.Snapshot.Nodes {
		if n.Pool == pool {
			found = append(found, n.GPUs...)
		}
	}
	if len(found) == 0 {
		return snapshot.GPU{Usable: defaultMemory, Step: step, Min: step}
	}
	least := slices.MinFunc(found, func(a, b snapshot.GPU) int { return cmp.Compare(a.Usable, b.Usable) })
	return least.Empty()
}
