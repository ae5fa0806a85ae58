package kueue

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corehelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/fairshard/fairshard/admission/snapshot"
)

// constraint returns the number of the constraint that a pod template puts on
// nodes: its selector, its required affinity and the taints that it does not
// tolerate. Equal templates are looked at once. 0 = every node.
func (t *translation) constraint(spec *corev1.PodSpec) int {
	signature := t.signature(spec)
	if known, found := t.constraints[signature]; found {
		return known
	}
	nodes := []string{}
	affinity := nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *spec})
	for i := range t.s.Nodes {
		node := t.byName[t.s.Nodes[i].Name]
		fits, err := affinity.Match(node)
		if err == nil && fits && tolerated(node, spec.Tolerations) {
			nodes = append(nodes, node.Name)
		}
	}
	at := 0
	if len(nodes) < len(t.s.Nodes) {
		slices.Sort(nodes)
		t.s.Constraints = append(t.s.Constraints, snapshot.Constraint{Nodes: nodes})
		at = len(t.s.Constraints)
	}
	t.constraints[signature] = at
	return at
}

// signature is equal for templates with equal constraints.
func (t *translation) signature(spec *corev1.PodSpec) string {
	var required *corev1.NodeSelector
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		required = spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if len(spec.NodeSelector) == 0 && required == nil && len(spec.Tolerations) == 0 {
		return ""
	}
	text, err := json.Marshal([]any{spec.NodeSelector, required, spec.Tolerations})
	if err != nil {
		return err.Error() // does not happen with API types
	}
	return string(text)
}

// tolerated reports whether no taint keeps such a pod away. That a node is not
// ready or cordoned is known otherwise.
func tolerated(node *corev1.Node, tolerations []corev1.Toleration) bool {
	_, kept := corehelpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, tolerations, func(taint *corev1.Taint) bool {
		return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
	}, false)
	return !kept
}
