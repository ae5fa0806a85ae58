package snapshot

import (
	"cmp"
	"slices"
	"strings"
)

// Sort brings s into its one order: nodes and queues by name (Cohorts before
// ClusterQueues of the same name), workloads by namespace and name, pods by
// length of the name and name, so that pod 2 comes before pod 10. GPUs keep their published order, constraints the numbers that podSets
// name them by.
func (s *Snapshot) Sort() {
	slices.SortFunc(s.Nodes, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Queues, func(a, b Queue) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), kind(a)-kind(b))
	})
	slices.SortFunc(s.Workloads, func(a, b Workload) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.UID, b.UID))
	})
	for _, w := range s.Workloads {
		for _, p := range w.PodSets {
			slices.SortStableFunc(p.Pods, func(a, b Pod) int {
				return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), strings.Compare(a.Name, b.Name))
			})
		}
	}
	slices.SortFunc(s.Usage, func(a, b Sample) int {
		return cmp.Or(strings.Compare(a.Queue, b.Queue), cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Used, b.Used))
	})
}

func kind(q Queue) int {
	if q.Cohort {
		return 0
	}
	return 1
}
