package controller

import (
	"context"
	"errors"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/observe"
	"github.com/fairshard/fairshard/classes"
)

// headroom keeps the milligpu quota of managed root Cohorts: so much that
// Kueue reserves at once and the planner alone decides.
func (l *loop) headroom(ctx context.Context, view *observe.View) error {
	var failures []error
	tree := tree{cohorts: view.Cohorts, queues: view.ClusterQueues, ours: view.Ours}
	for i := range view.Cohorts {
		cohort := &view.Cohorts[i]
		want, managed := wantedQuota(tree, cohort)
		if !managed || apiequality.Semantic.DeepEqual(cohort.Spec.ResourceGroups, want) {
			continue
		}
		if err := l.applyQuota(ctx, cohort, want); err != nil {
			failures = append(failures, fmt.Errorf("write headroom of cohort %s: %w", cohort.Name, err))
		}
	}
	return errors.Join(failures...)
}

func (l *loop) applyQuota(ctx context.Context, cohort *kueuev1.Cohort, groups []kueuev1.ResourceGroup) error {
	encoded := make([]any, 0, len(groups))
	for i := range groups {
		group, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&groups[i])
		if err != nil {
			return fmt.Errorf("encode quota: %w", err)
		}
		encoded = append(encoded, group)
	}
	patch := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": cohort.Name, "uid": string(cohort.UID), "resourceVersion": cohort.ResourceVersion},
		"spec":     map[string]any{"resourceGroups": encoded},
	}}
	patch.SetGroupVersionKind(kueuev1.SchemeGroupVersion.WithKind("Cohort"))
	err := l.writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), client.FieldOwner(classes.FieldManager), client.ForceOwnership)
	return ignoreStale(err)
}
