package kueue

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/snapshot"
)

// Cluster is the lists that a snapshot is made of.
type Cluster struct {
	Nodes           []corev1.Node
	Slices          []resourcev1.ResourceSlice
	Claims          []resourcev1.ResourceClaim
	Flavors         []kueuev1.ResourceFlavor
	ClusterQueues   []kueuev1.ClusterQueue
	Cohorts         []kueuev1.Cohort
	LocalQueues     []kueuev1.LocalQueue
	Workloads       []kueuev1.Workload
	PriorityClasses []kueuev1.WorkloadPriorityClass
	Pods            []corev1.Pod // all of the cluster
	Ours            func(kueuev1.AdmissionCheckReference) bool
}

// Snapshot translates the cluster to what a cycle decides on, sorted, and says
// what is wrong with objects of the administrator, one line each, sorted.
func (c Cluster) Snapshot() (snapshot.Snapshot, []string) {
	t := translation{Cluster: c}
	t.addQueues()
	t.addNodes()
	t.readPods()
	t.addWorkloads()
	t.s.Sort()
	return t.s, t.sortedProblems()
}

// translation is the state of one Snapshot.
type translation struct {
	Cluster
	s           snapshot.Snapshot
	problems    map[string]bool
	devices     devices
	byName      map[string]*corev1.Node
	pods        pods
	solid       map[string]bool   // names of WorkloadPriorityClasses of non-preemptible work
	constraints map[string]int    // signature -> position in s.Constraints, from 1; 0 = every node
	queueOf     map[string]string // namespace/LocalQueue -> ClusterQueue
}
