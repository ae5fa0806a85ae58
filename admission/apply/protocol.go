package apply

import (
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/classes"
)

// ourChecks returns copies of the states of the checks that are ours.
func ourChecks(seen Seen, workload *kueuev1.Workload) []kueuev1.AdmissionCheckState {
	var ours []kueuev1.AdmissionCheckState
	for i := range workload.Status.AdmissionChecks {
		if check := &workload.Status.AdmissionChecks[i]; seen.Ours(check.Name) {
			ours = append(ours, *check.DeepCopy())
		}
	}
	return ours
}

// mayStart: Ready without a reservation, or while an eviction runs, would
// admit later with a stale plan.
func mayStart(workload *kueuev1.Workload, checks []kueuev1.AdmissionCheckState) bool {
	is := func(condition string) bool {
		return apimeta.IsStatusConditionTrue(workload.Status.Conditions, condition)
	}
	return mayTell(workload, checks) && is(kueuev1.WorkloadQuotaReserved) &&
		!is(kueuev1.WorkloadEvicted) && !is(kueuev1.WorkloadAdmitted)
}

// mayTell: a message belongs to a check that waits.
func mayTell(workload *kueuev1.Workload, checks []kueuev1.AdmissionCheckState) bool {
	return workload.DeletionTimestamp.IsZero() && allPending(checks) &&
		!apimeta.IsStatusConditionTrue(workload.Status.Conditions, kueuev1.WorkloadFinished)
}

// allPending reports whether there are checks and all of them wait.
func allPending(checks []kueuev1.AdmissionCheckState) bool {
	for i := range checks {
		if checks[i].State != kueuev1.CheckStatePending {
			return false
		}
	}
	return len(checks) > 0
}

// podSetUpdates is the same list in every admission of a Workload: Kueue lets
// it change neither from Ready to Ready nor in jobs that merge it and never
// take it back.
func podSetUpdates(workload *kueuev1.Workload) []kueuev1.PodSetUpdate {
	updates := make([]kueuev1.PodSetUpdate, 0, len(workload.Spec.PodSets))
	for i := range workload.Spec.PodSets {
		updates = append(updates, kueuev1.PodSetUpdate{
			Name:   workload.Spec.PodSets[i].Name,
			Labels: map[string]string{classes.LabelPlacement: "true"},
		})
	}
	return updates
}

// ownerOf refers to the job that a Workload was made for; nil without one.
func ownerOf(workload *kueuev1.Workload) *corev1.ObjectReference {
	for _, owner := range workload.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			return &corev1.ObjectReference{
				APIVersion: owner.APIVersion, Kind: owner.Kind,
				Namespace: workload.Namespace, Name: owner.Name, UID: owner.UID,
			}
		}
	}
	return nil
}
