package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/classes"
)

// DefaultMessageInterval is the shortest time between two messages of one
// Workload that differ only in numbers.
const DefaultMessageInterval = time.Minute

// Seen finds the objects that the decisions were made on; nil when there is none.
type Seen interface {
	Workload(namespace, name string) *kueuev1.Workload
	Pod(namespace, name string) *corev1.Pod
	// Ours reports whether an AdmissionCheck is answered by this controller.
	Ours(check kueuev1.AdmissionCheckReference) bool
}

// Recorder writes Kubernetes Events.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// Applier carries out decisions.
type Applier struct {
	Writer Writer
	Events Recorder
	// Text says a decision in one sentence.
	Text func(decide.Decision) string
	Now  func() time.Time
	// MessageInterval: see DefaultMessageInterval.
	MessageInterval time.Duration

	told  map[types.UID]told
	wrote map[object][]string // resourceVersions that our last writes were based on
	// newest are objects that this turn wrote already: a second write is based on
	// the first. dropped are requesters whose promise could not be written.
	newest  map[types.UID]string
	dropped map[decide.Ref]bool
}

// told is the last message of one object.
type told struct {
	reason  classes.Reason
	message string
	at      time.Time
}

// object names what was written.
type object struct {
	pod             bool
	namespace, name string
}

// Result counts what one Apply did.
type Result struct {
	Started, Released, Evicted, Messages int
	Conflicts                            int // decisions dropped until the next cycle
	Skipped                              int // decisions whose preconditions do not hold
}

// Apply carries out the decisions in order. One that fails does not stop the others.
func (a *Applier) Apply(ctx context.Context, seen Seen, decisions []decide.Decision) (Result, error) {
	var result Result
	var failures []error
	a.newest, a.dropped = map[types.UID]string{}, map[decide.Ref]bool{}
	for _, d := range decisions {
		if ctx.Err() != nil {
			return result, errors.Join(append(failures, ctx.Err())...)
		}
		err := a.one(ctx, seen, d, &result)
		if err != nil && d.Promise != nil {
			a.dropped[d.Ref()] = true // nobody leaves for a plan that is not on record
		}
		switch {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			result.Conflicts++
		case err != nil:
			failures = append(failures, err)
		}
	}
	a.forget()
	return result, errors.Join(failures...)
}

func (a *Applier) one(ctx context.Context, seen Seen, d decide.Decision, result *Result) error {
	workload := seen.Workload(d.Namespace, d.Workload)
	if workload == nil || string(workload.UID) != d.UID {
		result.Skipped++
		return nil
	}
	switch d.Kind {
	case decide.Start:
		return a.start(ctx, seen, d, result)
	case decide.Release:
		return a.release(ctx, seen, d, result)
	case decide.Hold:
		return a.hold(ctx, seen, d, result)
	case decide.Evict:
		return a.evict(ctx, seen, d, result)
	default:
		return fmt.Errorf("apply decision on %s/%s: unknown kind %d", d.Namespace, d.Workload, d.Kind)
	}
}

// start sets our checks Ready with the full podSetUpdates.
func (a *Applier) start(ctx context.Context, seen Seen, d decide.Decision, result *Result) error {
	workload := seen.Workload(d.Namespace, d.Workload)
	checks := ourChecks(seen, workload)
	if !mayStart(workload, checks) {
		result.Skipped++
		return nil
	}
	text := a.Text(d)
	for i := range checks {
		checks[i].State = kueuev1.CheckStateReady
		checks[i].LastTransitionTime.Time = a.Now()
		checks[i].Message = text
		checks[i].PodSetUpdates = podSetUpdates(workload)
	}
	if err := a.write(ctx, workload, checks); err != nil {
		return fmt.Errorf("start workload %s/%s: %w", d.Namespace, d.Workload, err)
	}
	result.Started++
	delete(a.told, workload.UID)
	a.Events.Eventf(workload, nil, corev1.EventTypeNormal, "Started", "Start", "%s", text)
	// A promise that stays behind is ignored while it runs; the next cycle may take it away.
	return ignoreGone(a.keepPromise(ctx, workload, nil))
}

// hold tells why a workload waits. The state stays what it is.
func (a *Applier) hold(ctx context.Context, seen Seen, d decide.Decision, result *Result) error {
	workload := seen.Workload(d.Namespace, d.Workload)
	if err := a.keepPromise(ctx, workload, d.Promise); err != nil {
		return err
	}
	if d.Pod != "" {
		return a.holdPod(seen, d)
	}
	checks := ourChecks(seen, workload)
	if !mayTell(workload, checks) {
		result.Skipped++
		return nil
	}
	written, err := a.tell(ctx, workload, checks, d.Reason, a.Text(d))
	if written {
		result.Messages++
	}
	return err
}

// holdPod tells on a pod of a started workload that it fits nowhere now.
func (a *Applier) holdPod(seen Seen, d decide.Decision) error {
	pod := seen.Pod(d.Namespace, d.Pod)
	if pod == nil || a.told[pod.UID].reason == d.Reason {
		return nil
	}
	text := a.Text(d)
	a.remember(pod.UID, told{reason: d.Reason, message: text, at: a.Now()})
	a.Events.Eventf(pod, nil, corev1.EventTypeWarning, string(d.Reason), "Place", "%s", text)
	return nil
}

// Unresolved tells on a Workload, and on the job that owns it, why its charge
// is not known yet. It holds no reservation, and its check may not exist yet.
func (a *Applier) Unresolved(ctx context.Context, seen Seen, workload *kueuev1.Workload, reason classes.Reason, text string) error {
	if a.told[workload.UID].message != text {
		a.Events.Eventf(workload, nil, corev1.EventTypeWarning, string(reason), "Charge", "%s", text)
		if owner := ownerOf(workload); owner != nil {
			a.Events.Eventf(owner, workload, corev1.EventTypeWarning, string(reason), "Charge", "%s", text)
		}
	}
	checks := ourChecks(seen, workload)
	if !allPending(checks) {
		a.remember(workload.UID, told{reason: reason, message: text, at: a.Now()})
		return nil
	}
	_, err := a.tell(ctx, workload, checks, reason, text)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// tell writes text as the message of checks, if it is worth a write.
func (a *Applier) tell(ctx context.Context, workload *kueuev1.Workload, checks []kueuev1.AdmissionCheckState, reason classes.Reason, text string) (bool, error) {
	now, prior := a.Now(), a.told[workload.UID]
	shown := checks[0].Message
	if shown == text {
		if prior.reason != reason || prior.message != text {
			a.remember(workload.UID, told{reason: reason, message: text, at: now})
		}
		return false, nil
	}
	numbersOnly := prior.reason == reason && shown == prior.message
	if numbersOnly && now.Sub(prior.at) < a.MessageInterval {
		return false, nil
	}
	for i := range checks {
		checks[i].Message = text
	}
	if err := a.write(ctx, workload, checks); err != nil {
		return false, fmt.Errorf("tell workload %s/%s why it waits: %w", workload.Namespace, workload.Name, err)
	}
	a.remember(workload.UID, told{reason: reason, message: text, at: now})
	if prior.reason != reason && workload.Annotations[classes.AnnotationUnresolved] == "" {
		a.Events.Eventf(workload, nil, corev1.EventTypeNormal, string(reason), "Hold", "%s", text)
		if owner := ownerOf(workload); owner != nil && reason == classes.ReasonWaitingForRelease {
			a.Events.Eventf(owner, workload, corev1.EventTypeNormal, string(reason), "Hold", "%s", text)
		}
	}
	return true, nil
}

// Behind reports whether seen lacks one of our own writes.
func (a *Applier) Behind(seen Seen) bool {
	for key, versions := range a.wrote {
		if slices.Contains(versions, key.in(seen)) {
			return true
		}
		delete(a.wrote, key)
	}
	return false
}

// in returns the resourceVersion of the object in seen, "" when it is gone.
func (o object) in(seen Seen) string {
	if o.pod {
		if pod := seen.Pod(o.namespace, o.name); pod != nil {
			return pod.ResourceVersion
		}
		return ""
	}
	if workload := seen.Workload(o.namespace, o.name); workload != nil {
		return workload.ResourceVersion
	}
	return ""
}

func (a *Applier) remember(uid types.UID, t told) {
	if a.told == nil {
		a.told = map[types.UID]told{}
	}
	a.told[uid] = t
}

func (a *Applier) noteWrite(key object, before, after string) {
	if before == after {
		return
	}
	if a.wrote == nil {
		a.wrote = map[object][]string{}
	}
	a.wrote[key] = append(a.wrote[key], before)
}

// forgetAfter bounds the memory of messages: what is older is told again at most once.
const forgetAfter = time.Hour

func (a *Applier) forget() {
	for uid, t := range a.told {
		if a.Now().Sub(t.at) > forgetAfter {
			delete(a.told, uid)
		}
	}
}
