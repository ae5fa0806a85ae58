package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fairshard/fairshard/admission/snapshot"
)

// place gives the pods that run their devices: shares by the labels of their
// GPUs, shares without a label first fit, whole GPUs and MIG after them.
func (b *builder) place() error {
	groups := map[string]map[string]int{} // node -> label -> GPU
	for _, phase := range []func(w *workload) bool{
		func(w *workload) bool { return len(w.GPUGroup) > 0 },
		func(w *workload) bool { return len(w.GPUGroup) == 0 && w.Request.GPUs == nil },
		func(w *workload) bool { return w.Request.GPUs != nil },
	} {
		for i := range b.file.Spec.Workloads {
			w := &b.file.Spec.Workloads[i]
			if !phase(w) || w.State != "Running" {
				continue
			}
			if err := b.placeWorkload(w, groups); err != nil {
				return fmt.Errorf("workload %s: %w", w.Name, err)
			}
		}
	}
	b.scenario.Groups = groups
	return nil
}

func (b *builder) placeWorkload(w *workload, groups map[string]map[string]int) error {
	s := &b.scenario.Snapshot
	at := slices.IndexFunc(s.Workloads, func(x snapshot.Workload) bool { return x.Name == w.Name })
	set := &s.Workloads[at].PodSets[0]
	for i := range set.Pods {
		pod := &set.Pods[i]
		if pod.Gated || len(set.Requests) == 0 {
			continue
		}
		n := slices.IndexFunc(s.Nodes, func(x snapshot.Node) bool { return x.Name == pod.Node })
		node := &s.Nodes[n]
		room := snapshot.NewRoom(s)
		want := *set
		want.Needs = snapshot.Resources{}
		var held []snapshot.Held
		ok := false
		if len(w.GPUGroup) > 0 {
			held, ok = b.labelled(node, set.Requests[0], group(groups, pod.Node, w.GPUGroup[i], node))
			ok = ok && room.Free(n, held)
			room.Hold(n, held, nil)
		} else {
			held, ok = room.Reserve(n, &want)
		}
		if !ok {
			return fmt.Errorf("pod %d does not fit on node %s beside what runs there", i, pod.Node)
		}
		node.GPUs, pod.Devices = slices.Clone(room.GPUs(n)), held
		if node.Free != nil {
			room.Hold(n, nil, &set.Needs)
			free := room.Beside(n)
			node.Free = &free
		}
	}
	return nil
}

// labelled are the devices of a request whose first GPU is known; further ones follow it.
func (b *builder) labelled(node *snapshot.Node, r snapshot.Request, gpu int) ([]snapshot.Held, bool) {
	var held []snapshot.Held
	for d := range max(r.Count, 1) {
		at := gpu + d
		if gpu < 0 || at >= len(node.GPUs) || r.Kind != snapshot.Share {
			return nil, false
		}
		held = append(held, snapshot.Held{GPU: at, Kind: snapshot.Share, Bytes: node.GPUs[at].Bytes(r)})
	}
	return held, true
}

// group returns the GPU that a label means on a node: the GPU of that number if
// nothing else has it, else the lowest one without a label; -1 = none is left.
func group(groups map[string]map[string]int, name, label string, node *snapshot.Node) int {
	if groups[name] == nil {
		groups[name] = map[string]int{}
	}
	if gpu, known := groups[name][label]; known {
		return gpu
	}
	taken := func(gpu int) bool {
		for _, other := range groups[name] {
			if other == gpu {
				return true
			}
		}
		return false
	}
	gpu, err := strconv.Atoi(strings.TrimSpace(label))
	if err != nil || gpu < 0 || gpu >= len(node.GPUs) || taken(gpu) {
		gpu = slices.IndexFunc(node.GPUs, func(g snapshot.GPU) bool { return !g.WholeUsed })
		for gpu >= 0 && taken(gpu) {
			if gpu++; gpu == len(node.GPUs) {
				gpu = -1
			}
		}
	}
	if gpu >= 0 {
		groups[name][label] = gpu
	}
	return gpu
}
