package kueue

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
)

// Chargeable reports whether w may still be changed: its podSets are immutable
// once it holds quota, and clones of MultiKueue belong to their origin.
func Chargeable(w *kueuev1.Workload) bool {
	_, clone := w.Labels[kueuev1.MultiKueueOriginLabel]
	return !clone && w.Status.Admission == nil && !apimeta.IsStatusConditionTrue(w.Status.Conditions, kueuev1.WorkloadQuotaReserved)
}

// Charge writes an answer into w: overhead per pod, claims stripped, demand
// and reason as annotations. Charging a second time changes nothing. A
// Workload that is not ours any more gets its claims back.
func Charge(w *kueuev1.Workload, answer Answer) error {
	if !answer.Ours {
		release(w)
		return nil
	}
	if w.Annotations == nil {
		w.Annotations = map[string]string{}
	}
	if answer.Demand.Version != 0 { // a damaged one stays: it may still be read by a person
		text, err := answer.Demand.Encode()
		if err != nil {
			return err
		}
		w.Annotations[classes.AnnotationDemand] = text
	}
	delete(w.Annotations, classes.AnnotationUnresolved)
	if answer.Refusal != nil {
		w.Annotations[classes.AnnotationUnresolved] = answer.Refusal.String()
	}
	for i := range w.Spec.PodSets {
		spec := &w.Spec.PodSets[i].Template.Spec
		spec.ResourceClaims = nil
		setOverhead(spec, perPod(answer, i))
	}
	return nil
}

// perPod is the charge of one pod of podSet i. While the demand is unknown it
// is more than any quota: never zero, or it would start uncharged.
func perPod(answer Answer, i int) quantity.MilliGPU {
	if answer.Refusal != nil {
		return classes.UnresolvedMilliGPU
	}
	return answer.PerPod[i]
}

// setOverhead keeps what a RuntimeClass added for other resources.
func setOverhead(spec *corev1.PodSpec, amount quantity.MilliGPU) {
	overhead := maps.Clone(spec.Overhead)
	delete(overhead, classes.ResourceMilliGPU)
	if amount > 0 {
		if overhead == nil {
			overhead = corev1.ResourceList{}
		}
		overhead[classes.ResourceMilliGPU] = *resource.NewQuantity(int64(amount), resource.DecimalSI)
	}
	if len(overhead) == 0 {
		overhead = nil
	}
	spec.Overhead = overhead
}

// release takes every trace of a charge out of w.
func release(w *kueuev1.Workload) {
	if w.Annotations[classes.AnnotationDemand] == "" && w.Annotations[classes.AnnotationUnresolved] == "" {
		return
	}
	for i := range w.Spec.PodSets {
		set := &w.Spec.PodSets[i]
		set.Template.Spec.ResourceClaims = ClaimsOf(w, set)
		setOverhead(&set.Template.Spec, 0)
	}
	delete(w.Annotations, classes.AnnotationDemand)
	delete(w.Annotations, classes.AnnotationUnresolved)
	delete(w.Annotations, classes.AnnotationResolve)
}
