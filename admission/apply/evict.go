package apply

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/admission/kueue"
	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
)

// sliceReplacement marks a Workload that runs with its old number of pods while
// Kueue replaces it: it must not be sent back. Kueue's API module does not name
// this annotation.
var sliceReplacement = kueuev1.SchemeGroupVersion.Group + "/workload-slice-replacement-for"

// evict takes a workload, or its surplus pods, off its devices: our checks go to
// Retry, and Kueue stops the job and queues it again. Nothing is evicted for a
// requester whose promise is not on record.
func (a *Applier) evict(ctx context.Context, seen Seen, d decide.Decision, result *Result) error {
	if a.dropped[d.For] {
		result.Skipped++
		return nil
	}
	workload := seen.Workload(d.Namespace, d.Workload)
	if len(d.Pods) > 0 {
		return a.evictPods(ctx, seen, d, result)
	}
	checks := ourChecks(seen, workload)
	if !mayRetry(workload, checks) {
		result.Skipped++
		return nil
	}
	if err := a.keepPromise(ctx, workload, d.Promise); err != nil {
		return err
	}
	text := a.Text(d)
	for i := range checks {
		checks[i].State = kueuev1.CheckStateRetry
		checks[i].LastTransitionTime.Time = a.Now()
		checks[i].Message = text
	}
	if err := a.write(ctx, workload, checks); err != nil {
		return fmt.Errorf("evict workload %s/%s: %w", d.Namespace, d.Workload, err)
	}
	result.Evicted++
	delete(a.told, workload.UID)
	a.tellEviction(seen, d, text)
	return nil
}

// evictPods asks for the eviction of surplus pods. What replaces them is born gated.
func (a *Applier) evictPods(ctx context.Context, seen Seen, d decide.Decision, result *Result) error {
	for _, name := range d.Pods {
		pod := seen.Pod(d.Namespace, name)
		if pod == nil || !pod.DeletionTimestamp.IsZero() {
			result.Skipped++
			continue
		}
		if err := a.Writer.EvictPod(ctx, pod); err != nil {
			return fmt.Errorf("evict pod %s/%s: %w", d.Namespace, name, err)
		}
		result.Evicted++
		a.noteWrite(object{pod: true, namespace: pod.Namespace, name: pod.Name}, pod.ResourceVersion, "")
	}
	a.tellEviction(seen, d, a.Text(d))
	return nil
}

// tellEviction makes events on both sides: the victim's Workload and job, and
// those of whom it leaves for.
func (a *Applier) tellEviction(seen Seen, d decide.Decision, text string) {
	workload := seen.Workload(d.Namespace, d.Workload)
	requester := seen.Workload(d.For.Namespace, d.For.Name)
	tell := func(regarding, related *kueuev1.Workload, text string) {
		if regarding == nil {
			return
		}
		if related == nil {
			related = regarding
		}
		a.Events.Eventf(regarding, related, corev1.EventTypeNormal, string(d.Rule), "Evict", "%s", text)
		if owner := ownerOf(regarding); owner != nil {
			a.Events.Eventf(owner, related, corev1.EventTypeNormal, string(d.Rule), "Evict", "%s", text)
		}
	}
	tell(workload, requester, text)
	tell(requester, workload, fmt.Sprintf("%s/%s of queue %s gives way for this: %s", d.Namespace, d.Workload, d.Queue, text))
}

// mayRetry: Retry without a reservation, or while an eviction runs, would leave
// the Workload stuck; clones and replacements belong to others.
func mayRetry(workload *kueuev1.Workload, checks []kueuev1.AdmissionCheckState) bool {
	is := func(condition string) bool {
		return apimeta.IsStatusConditionTrue(workload.Status.Conditions, condition)
	}
	_, clone := workload.Labels[kueuev1.MultiKueueOriginLabel]
	_, replaces := workload.Annotations[sliceReplacement]
	return !clone && !replaces && len(checks) > 0 && checks[0].State == kueuev1.CheckStateReady &&
		workload.DeletionTimestamp.IsZero() && is(kueuev1.WorkloadQuotaReserved) &&
		!is(kueuev1.WorkloadEvicted) && !is(kueuev1.WorkloadFinished)
}

// keepPromise writes the nodes that a workload was planned on, so that a restart
// of this controller forgets no plan; nil takes an old promise away.
func (a *Applier) keepPromise(ctx context.Context, workload *kueuev1.Workload, promise *snapshot.Promise) error {
	text := ""
	if promise != nil {
		var err error
		if text, err = kueue.EncodePromise(promise); err != nil {
			return err
		}
	}
	if workload.Annotations[classes.AnnotationPromise] == text {
		return nil
	}
	seen := workload.DeepCopy()
	seen.ResourceVersion = a.version(workload)
	changed := seen.DeepCopy()
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	changed.Annotations[classes.AnnotationPromise] = text
	if promise == nil {
		delete(changed.Annotations, classes.AnnotationPromise)
	}
	if err := a.Writer.PatchWorkload(ctx, changed, seen); err != nil {
		return fmt.Errorf("keep the plan of workload %s/%s: %w", workload.Namespace, workload.Name, err)
	}
	a.noteWorkload(workload, changed.ResourceVersion)
	return nil
}

// ignoreGone drops the error of a write that came too late.
func ignoreGone(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
