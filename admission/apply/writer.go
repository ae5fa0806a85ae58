package apply

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/classes"
)

// Writer is the part of the API that this package writes. All but EvictPod
// update the given object from the API server's answer.
type Writer interface {
	// ApplyWorkloadStatus applies our fields of a Workload's status.
	ApplyWorkloadStatus(ctx context.Context, fields *unstructured.Unstructured) error
	// PatchPod changes seen into pod, if seen is still the newest.
	PatchPod(ctx context.Context, pod, seen *corev1.Pod) error
	// PatchWorkload changes the metadata of seen into that of workload, if seen is still the newest.
	PatchWorkload(ctx context.Context, workload, seen *kueuev1.Workload) error
	// EvictPod asks for the eviction of exactly this pod, as seen.
	EvictPod(ctx context.Context, pod *corev1.Pod) error
}

// ForClient returns the Writer that writes through c.
func ForClient(c client.Client) Writer { return clientWriter{c} }

type clientWriter struct{ client client.Client }

func (w clientWriter) ApplyWorkloadStatus(ctx context.Context, fields *unstructured.Unstructured) error {
	return w.client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(fields),
		client.FieldOwner(classes.FieldManager), client.ForceOwnership)
}

func (w clientWriter) PatchPod(ctx context.Context, pod, seen *corev1.Pod) error {
	patch := client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{})
	return w.client.Patch(ctx, pod, patch, client.FieldOwner(classes.FieldManager))
}

func (w clientWriter) PatchWorkload(ctx context.Context, workload, seen *kueuev1.Workload) error {
	patch := client.MergeFromWithOptions(seen, client.MergeFromWithOptimisticLock{})
	return w.client.Patch(ctx, workload, patch, client.FieldOwner(classes.FieldManager))
}

func (w clientWriter) EvictPod(ctx context.Context, pod *corev1.Pod) error {
	uid, version := pod.UID, pod.ResourceVersion
	return w.client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}},
	})
}

// write applies the states of our checks. Ownership is forced because Kueue
// writes the whole list too; the resourceVersion keeps that honest.
func (a *Applier) write(ctx context.Context, workload *kueuev1.Workload, checks []kueuev1.AdmissionCheckState) error {
	states := make([]any, 0, len(checks))
	for i := range checks {
		// These two are Kueue's to count; a back-off would delay an eviction.
		checks[i].RetryCount, checks[i].RequeueAfterSeconds = nil, nil
		state, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&checks[i])
		if err != nil {
			return fmt.Errorf("encode state of check %s: %w", checks[i].Name, err)
		}
		states = append(states, state)
	}
	fields := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{
			"namespace": workload.Namespace, "name": workload.Name,
			"uid": string(workload.UID), "resourceVersion": a.version(workload),
		},
		"status": map[string]any{"admissionChecks": states},
	}}
	fields.SetGroupVersionKind(kueuev1.SchemeGroupVersion.WithKind("Workload"))
	if err := a.Writer.ApplyWorkloadStatus(ctx, fields); err != nil {
		return err
	}
	a.noteWorkload(workload, fields.GetResourceVersion())
	return nil
}

// version is the newest resourceVersion of a Workload that this turn knows.
func (a *Applier) version(workload *kueuev1.Workload) string {
	if version := a.newest[workload.UID]; version != "" {
		return version
	}
	return workload.ResourceVersion
}

func (a *Applier) noteWorkload(workload *kueuev1.Workload, after string) {
	a.noteWrite(object{namespace: workload.Namespace, name: workload.Name}, a.version(workload), after)
	if a.newest != nil {
		a.newest[workload.UID] = after
	}
}
