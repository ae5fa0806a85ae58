package controller

import (
	"context"
	"errors"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/observe"
	"github.com/fairshard/fairshard/classes"
)

// checks keeps our AdmissionChecks Active: Kueue closes every queue whose
// check is not.
func (l *loop) checks(ctx context.Context, view *observe.View) error {
	var failures []error
	for i := range view.Checks {
		check := &view.Checks[i]
		current := apimeta.FindStatusCondition(check.Status.Conditions, kueuev1.AdmissionCheckActive)
		if current != nil && current.Status == metav1.ConditionTrue && current.ObservedGeneration == check.Generation {
			continue
		}
		condition := metav1.Condition{
			Type: kueuev1.AdmissionCheckActive, Status: metav1.ConditionTrue, Reason: "Active",
			Message:            "the fair-share controller answers this check",
			ObservedGeneration: check.Generation,
			LastTransitionTime: metav1.NewTime(l.now()),
		}
		if current != nil && current.Status == condition.Status {
			condition.LastTransitionTime = current.LastTransitionTime
		}
		if err := l.applyCondition(ctx, check, condition); err != nil {
			failures = append(failures, fmt.Errorf("activate admission check %s: %w", check.Name, err))
		}
	}
	return errors.Join(failures...)
}

func (l *loop) applyCondition(ctx context.Context, check *kueuev1.AdmissionCheck, condition metav1.Condition) error {
	encoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&condition)
	if err != nil {
		return fmt.Errorf("encode condition: %w", err)
	}
	patch := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": check.Name, "uid": string(check.UID)},
		"status":   map[string]any{"conditions": []any{encoded}},
	}}
	patch.SetGroupVersionKind(kueuev1.SchemeGroupVersion.WithKind("AdmissionCheck"))
	return l.writer.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), client.FieldOwner(classes.FieldManager), client.ForceOwnership)
}
