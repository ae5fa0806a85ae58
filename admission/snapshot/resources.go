package snapshot

import (
	"slices"

	"github.com/fairshard/fairshard/classes/quantity"
)

// FitsBeside reports whether node i has what a pod needs beside GPUs.
func (r *Room) FitsBeside(i int, needs *Resources) bool { return r.timesBeside(i, needs, 1) == 1 }

// timesBeside is how many times node i has needs, at most most.
func (r *Room) timesBeside(i int, needs *Resources, most int) int {
	if r.facts.nodes[i].Free == nil {
		return most
	}
	free := &r.free[i]
	most = times(free.MilliCPU, needs.MilliCPU, most)
	most = times(int64(free.Memory), int64(needs.Memory), most)
	most = times(free.Pods, needs.Pods, most)
	for _, want := range needs.Extended {
		most = times(amount(free.Extended, want.Name), want.Value, most)
	}
	return most
}

func times(free, want int64, most int) int {
	if want <= 0 {
		return most
	}
	return int(min(int64(most), max(free, 0)/want))
}

func amount(list []Amount, name string) int64 {
	for _, a := range list {
		if a.Name == name {
			return a.Value
		}
	}
	return 0
}

// addFree adds sign times needs to what node i has free.
func (r *Room) addFree(i int, needs *Resources, sign int64) {
	if needs == nil || r.facts.nodes[i].Free == nil {
		return
	}
	free := &r.free[i]
	free.MilliCPU += sign * needs.MilliCPU
	free.Memory += quantity.Bytes(sign) * needs.Memory
	free.Pods += sign * needs.Pods
	if len(needs.Extended) == 0 {
		return
	}
	free.Extended = slices.Clone(free.Extended) // copies share it
	for _, want := range needs.Extended {
		at := slices.IndexFunc(free.Extended, func(a Amount) bool { return a.Name == want.Name })
		if at < 0 {
			at = len(free.Extended)
			free.Extended = append(free.Extended, Amount{Name: want.Name})
		}
		free.Extended[at].Value += sign * want.Value
	}
}

// Beside is what node i has free beside GPUs.
func (r *Room) Beside(i int) Resources { return r.free[i] }
