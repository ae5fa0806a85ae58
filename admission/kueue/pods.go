package kueue

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
)

// podSetLabel is what Kueue puts on the pods of an admitted Workload, with the name of their podSet.
const podSetLabel = "kueue.x-k8s.io/podset"

// pods is what a snapshot needs to know of all pods.
type pods struct {
	byWorkload map[string][]*corev1.Pod      // namespace/Workload -> its unfinished pods
	held       map[types.UID][]snapshot.Held // what a pod's claims hold; empty = allocated, and nothing of ours
	nodes      map[string]string             // hostname label -> node name: a pin names the former
}

func (t *translation) readPods() {
	c := t.Cluster
	p := pods{byWorkload: map[string][]*corev1.Pod{}, held: t.heldByPods(), nodes: map[string]string{}}
	for i := range c.Nodes {
		p.nodes[c.Nodes[i].Labels[corev1.LabelHostname]] = c.Nodes[i].Name
	}
	byOwner := map[types.UID]string{}
	for i := range c.Workloads {
		for _, owner := range c.Workloads[i].OwnerReferences {
			byOwner[owner.UID] = c.Workloads[i].Namespace + "/" + c.Workloads[i].Name
		}
	}
	for i := range c.Pods {
		pod := &c.Pods[i]
		if finished(pod) || pod.Labels[classes.LabelPlacement] != "true" && len(p.held[pod.UID]) == 0 {
			continue
		}
		if key := workloadOf(pod, byOwner); key != "" {
			p.byWorkload[key] = append(p.byWorkload[key], pod)
		}
	}
	t.pods = p
}

// workloadOf returns namespace/name of a pod's Workload: Kueue writes its name
// on the pod; without that, the pod's owner owns the Workload too.
func workloadOf(pod *corev1.Pod, byOwner map[types.UID]string) string {
	if name := pod.Annotations[kueuev1.WorkloadAnnotation]; name != "" {
		return pod.Namespace + "/" + name
	}
	for _, owner := range pod.OwnerReferences {
		if key := byOwner[owner.UID]; key != "" {
			return key
		}
	}
	return ""
}

// any reports whether pods of w exist.
func (a pods) any(w *kueuev1.Workload) bool { return len(a.byWorkload[w.Namespace+"/"+w.Name]) > 0 }

// heldByPods lists what the claims of every pod hold. A claim is its pod's that
// owns it, else that of the first it is reserved for: of several pods that share
// a claim one holds it.
func (t *translation) heldByPods() map[types.UID][]snapshot.Held {
	held := map[types.UID][]snapshot.Held{}
	for i := range t.Claims {
		claim := &t.Claims[i]
		list := t.devices.heldBy(claim)
		if len(list) == 0 {
			continue
		}
		holder := types.UID("")
		for _, owner := range claim.OwnerReferences {
			holder = owner.UID
		}
		if holder == "" && len(claim.Status.ReservedFor) > 0 {
			holder = claim.Status.ReservedFor[0].UID
		}
		for _, h := range list {
			held[holder] = append(held[holder], h.Held)
		}
	}
	return held
}

// of translates the pods of one podSet; a Workload with one podSet needs no label on them.
func (a pods) of(workload string, set *kueuev1.PodSet, sets int) []snapshot.Pod {
	var out []snapshot.Pod
	for _, pod := range a.byWorkload[workload] {
		if sets > 1 && pod.Labels[podSetLabel] != string(set.Name) {
			continue
		}
		p := snapshot.Pod{Name: pod.Name, Node: pod.Spec.NodeName, Bound: pod.Spec.NodeName != "", Leaving: pod.DeletionTimestamp != nil, Devices: a.held[pod.UID]}
		p.Allocated = p.Bound || len(p.Devices) > 0
		p.Gated = slices.ContainsFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == classes.GatePlacement })
		if p.Node == "" && !p.Gated {
			p.Node = a.nodes[pod.Spec.NodeSelector[corev1.LabelHostname]]
		}
		out = append(out, p)
	}
	return out
}
