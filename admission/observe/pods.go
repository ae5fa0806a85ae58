package observe

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/fairshard/fairshard/classes"
)

// slim keeps of a pod what a snapshot and the placer read: there are many pods.
func slim(object any) (any, error) {
	pod, isPod := object.(*corev1.Pod)
	if !isPod {
		return object, nil
	}
	kept := &corev1.Pod{TypeMeta: pod.TypeMeta, ObjectMeta: pod.ObjectMeta}
	kept.ManagedFields = nil
	kept.Spec = corev1.PodSpec{
		NodeName: pod.Spec.NodeName, NodeSelector: pod.Spec.NodeSelector, SchedulingGates: pod.Spec.SchedulingGates,
		Containers: resourcesOnly(pod.Spec.Containers), InitContainers: resourcesOnly(pod.Spec.InitContainers),
		Overhead: pod.Spec.Overhead, Resources: pod.Spec.Resources, ResourceClaims: pod.Spec.ResourceClaims,
	}
	kept.Status = corev1.PodStatus{Phase: pod.Status.Phase, ResourceClaimStatuses: pod.Status.ResourceClaimStatuses}
	return kept, nil
}

// resourcesOnly keeps what counts for the sum of requests.
func resourcesOnly(containers []corev1.Container) []corev1.Container {
	var kept []corev1.Container
	for i := range containers {
		kept = append(kept, corev1.Container{
			Name: containers[i].Name, Resources: containers[i].Resources, RestartPolicy: containers[i].RestartPolicy,
		})
	}
	return kept
}

// podChanged drops what no cycle looks at: of pods that are not ours only where
// they are and whether they hold anything counts.
func podChanged(before, after *corev1.Pod) bool {
	if before.Labels[classes.LabelPlacement] == "true" || after.Labels[classes.LabelPlacement] == "true" {
		return true
	}
	return before.Spec.NodeName != after.Spec.NodeName || before.Status.Phase != after.Status.Phase ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
}
