package scenario

import (
	"fmt"
	"slices"

	"github.com/fairshard/fairshard/admission/snapshot"
)

// addConstraints works out the nodes that selectors and taints leave over.
func (b *builder) addConstraints() error {
	s := &b.scenario.Snapshot
	for i := range b.file.Spec.Workloads {
		nodes, all := b.allowed(&b.file.Spec.Workloads[i])
		if all {
			continue
		}
		at := slices.IndexFunc(s.Constraints, func(c snapshot.Constraint) bool { return slices.Equal(c.Nodes, nodes) })
		if at < 0 {
			at = len(s.Constraints)
			s.Constraints = append(s.Constraints, snapshot.Constraint{Nodes: nodes})
		}
		s.Workloads[i].PodSets[0].Constraint = at + 1
	}
	return nil
}

func (b *builder) allowed(w *workload) (nodes []string, all bool) {
	nodes = []string{}
	for i := range b.file.Spec.Nodes {
		n := &b.file.Spec.Nodes[i]
		if n.matches(w.NodeSelector) && n.tolerated(w.Tolerations) {
			nodes = append(nodes, n.Name)
		}
	}
	slices.Sort(nodes)
	return nodes, len(nodes) == len(b.file.Spec.Nodes)
}

func (n *node) matches(selector map[string]string) bool {
	for key, value := range selector {
		if n.Labels[key] != value {
			return false
		}
	}
	return true
}

// tolerated reports whether every taint that keeps pods away is tolerated; an
// empty key, value or effect of a toleration matches all.
func (n *node) tolerated(by []taint) bool {
	return !slices.ContainsFunc(n.Taints, func(t taint) bool {
		return t.Effect != "PreferNoSchedule" && !slices.ContainsFunc(by, func(tol taint) bool {
			return (tol.Key == "" || tol.Key == t.Key) && (tol.Value == "" || tol.Value == t.Value) && (tol.Effect == "" || tol.Effect == t.Effect)
		})
	})
}

// checkExpect makes sure that expectations name what exists.
func (b *builder) checkExpect() error {
	e := b.scenario.Expect
	if e == nil {
		return nil
	}
	names := slices.Concat(e.Starts, e.KeepsRunning, e.Evicted, e.Moved, e.Waits)
	for name := range e.Placement {
		names = append(names, name)
	}
	for name := range e.GPUGroup {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := b.scenario.CheckName(name); err != nil {
			return fmt.Errorf("expect: %w", err)
		}
	}
	for name := range e.FairShare {
		if _, known := b.pools[name]; !known {
			return fmt.Errorf("expect.fairShare: queue %s does not exist", name)
		}
	}
	return nil
}
