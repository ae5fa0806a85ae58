package controller

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/observe"
	"github.com/fairshard/fairshard/classes"
)

const (
	// nudgeFirst and nudgeMost bound how soon a Workload is nudged again when
	// the webhook answered from a cache older than ours.
	nudgeFirst = time.Second
	nudgeMost  = time.Minute
)

// nudge is when a Workload was last asked to be looked at again.
type nudge struct {
	at   time.Time
	wait time.Duration // until the next one
}

// nudges are the last nudge of each Workload.
type nudges map[types.UID]nudge

// due reports whether a Workload may be nudged now, and counts it as done.
// Waits double from nudgeFirst to nudgeMost.
func (n nudges) due(uid types.UID, now time.Time) bool {
	last, again := n[uid]
	if !again {
		n[uid] = nudge{at: now, wait: nudgeFirst}
		return true
	}
	if now.Sub(last.at) < last.wait {
		return false
	}
	n[uid] = nudge{at: now, wait: min(2*last.wait, nudgeMost)}
	return true
}

// unresolved tells the owners of Workloads whose charge is unknown, and
// nudges those for which the webhook would answer something else now.
func (l *loop) unresolved(ctx context.Context, view *observe.View) error {
	var failures []error
	seen := map[types.UID]bool{}
	lookup := &viewLookup{view: view}
	for i := range view.Workloads {
		workload := &view.Workloads[i]
		if !isUnresolved(workload) {
			continue
		}
		seen[workload.UID] = true
		reason, text := unresolvedText(workload)
		if err := l.applier.Unresolved(ctx, view, workload, reason, text); err != nil {
			failures = append(failures, err)
		}
		if !answerChanged(workload, lookup) {
			delete(l.nudged, workload.UID)
		} else if err := l.nudge(ctx, workload); err != nil {
			failures = append(failures, err)
		}
	}
	for uid := range l.nudged {
		if !seen[uid] {
			delete(l.nudged, uid)
		}
	}
	return errors.Join(failures...)
}

func isUnresolved(workload *kueuev1.Workload) bool {
	return workload.Annotations[classes.AnnotationUnresolved] != "" && workload.Status.Admission == nil &&
		workload.DeletionTimestamp.IsZero() && !apimeta.IsStatusConditionTrue(workload.Status.Conditions, kueuev1.WorkloadFinished)
}

// nudge changes an annotation, so that the webhook is called and charges.
func (l *loop) nudge(ctx context.Context, workload *kueuev1.Workload) error {
	if !l.nudged.due(workload.UID, l.now()) {
		return nil
	}
	touched := workload.DeepCopy()
	touched.Annotations[classes.AnnotationResolve] = strconv.FormatInt(l.now().UnixNano(), 36)
	patch := client.MergeFromWithOptions(workload, client.MergeFromWithOptimisticLock{})
	if err := ignoreStale(l.writer.Patch(ctx, touched, patch, client.FieldOwner(classes.FieldManager))); err != nil {
		return fmt.Errorf("have workload %s/%s charged again: %w", workload.Namespace, workload.Name, err)
	}
	return nil
}

// ignoreStale drops errors of writes on objects that changed since they were seen.
func ignoreStale(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
