package apply

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/classes"
)

const check = kueuev1.AdmissionCheckReference("fairshard")

// world is a Seen, a Writer and a Recorder: what the cache holds, what was written, what was told.
type world struct {
	workload *kueuev1.Workload
	pod      *corev1.Pod
	conflict bool
	applied  []map[string]any
	pods     []*corev1.Pod
	patched  []*kueuev1.Workload
	evicted  []string
	events   []string
}

func (w *world) Workload(_, name string) *kueuev1.Workload {
	if w.workload != nil && w.workload.Name == name {
		return w.workload
	}
	return nil
}

func (w *world) Pod(_, name string) *corev1.Pod {
	if w.pod != nil && w.pod.Name == name {
		return w.pod
	}
	return nil
}

func (w *world) Ours(c kueuev1.AdmissionCheckReference) bool { return c == check }

func (w *world) ApplyWorkloadStatus(_ context.Context, fields *unstructured.Unstructured) error {
	if w.conflict {
		return apierrors.NewConflict(schema.GroupResource{Resource: "workloads"}, fields.GetName(), nil)
	}
	w.applied = append(w.applied, fields.DeepCopy().Object)
	fields.SetResourceVersion(fields.GetResourceVersion() + "0")
	return nil
}

func (w *world) PatchPod(_ context.Context, pod, _ *corev1.Pod) error {
	if w.conflict {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, pod.Name, nil)
	}
	w.pods = append(w.pods, pod.DeepCopy())
	pod.ResourceVersion += "0"
	return nil
}

func (w *world) PatchWorkload(_ context.Context, workload, _ *kueuev1.Workload) error {
	if w.conflict {
		return apierrors.NewConflict(schema.GroupResource{Resource: "workloads"}, workload.Name, nil)
	}
	w.patched = append(w.patched, workload.DeepCopy())
	workload.ResourceVersion += "0"
	return nil
}

func (w *world) EvictPod(_ context.Context, pod *corev1.Pod) error {
	w.evicted = append(w.evicted, pod.Name)
	return nil
}

func (w *world) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	w.events = append(w.events, reason+": "+fmt.Sprintf(note, args...))
}

// waiting is a reserved Workload whose check is Pending.
func waiting() *kueuev1.Workload {
	return &kueuev1.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "job", UID: "u1", ResourceVersion: "7"},
		Spec:       kueuev1.WorkloadSpec{PodSets: []kueuev1.PodSet{{Name: "main", Count: 1}, {Name: "worker", Count: 3}}},
		Status: kueuev1.WorkloadStatus{
			Conditions: []metav1.Condition{{Type: kueuev1.WorkloadQuotaReserved, Status: metav1.ConditionTrue}},
			AdmissionChecks: []kueuev1.AdmissionCheckState{
				{Name: "other", State: kueuev1.CheckStatePending},
				{Name: check, State: kueuev1.CheckStatePending, LastTransitionTime: metav1.Unix(100, 0), RetryCount: new(int32)},
			},
		},
	}
}

func condition(w *kueuev1.Workload, name string) {
	w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: name, Status: metav1.ConditionTrue})
}

type clock struct{ now time.Time }

func applier(w *world, c *clock) *Applier {
	return &Applier{
		Writer: w, Events: w, Now: func() time.Time { return c.now }, MessageInterval: DefaultMessageInterval,
		Text: func(d decide.Decision) string {
			return fmt.Sprintf("%s %d of %d", d.Reason, d.Numbers.FreeGPUs, d.Numbers.TotalGPUs)
		},
	}
}

func run(t *testing.T, a *Applier, w *world, d decide.Decision) Result {
	t.Helper()
	d.Namespace, d.Workload = "team", "job"
	if d.UID == "" {
		d.UID = "u1"
	}
	result, err := a.Apply(t.Context(), w, []decide.Decision{d})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func states(t *testing.T, fields map[string]any) []any {
	t.Helper()
	list, found, err := unstructured.NestedSlice(fields, "status", "admissionChecks")
	if err != nil || !found {
		t.Fatalf("no admissionChecks in %v", fields)
	}
	return list
}

func TestStartWritesReadyWithEveryPodSetOnTheVersionSeen(t *testing.T) {
	w, c := &world{workload: waiting()}, &clock{now: time.Unix(500, 0)}
	a := applier(w, c)
	if got := run(t, a, w, decide.Decision{Kind: decide.Start}); got.Started != 1 {
		t.Fatalf("result %+v", got)
	}
	fields := &unstructured.Unstructured{Object: w.applied[0]}
	if fields.GetResourceVersion() != "7" || fields.GetUID() != "u1" {
		t.Fatalf("metadata %v", fields.Object["metadata"])
	}
	list := states(t, w.applied[0])
	if len(list) != 1 {
		t.Fatalf("only our check may be written, got %v", list)
	}
	state := list[0].(map[string]any)
	if state["state"] != "Ready" || state["retryCount"] != nil || state["lastTransitionTime"] != "1970-01-01T00:08:20Z" {
		t.Fatalf("state %v", state)
	}
	if updates := fmt.Sprint(state["podSetUpdates"]); strings.Count(updates, "fairshard.dev/placement:true") != 2 || strings.Contains(updates, "nodeSelector") {
		t.Fatalf("podSetUpdates %v", updates)
	}
	if !a.Behind(w) {
		t.Fatal("the cache does not show the write yet")
	}
	w.workload.ResourceVersion = "70"
	if a.Behind(w) {
		t.Fatal("the cache shows a newer version")
	}
}

func TestStartIsSkippedWhenAPreconditionFails(t *testing.T) {
	for name, change := range map[string]func(*kueuev1.Workload){
		"no reservation":   func(w *kueuev1.Workload) { w.Status.Conditions = nil },
		"evicted":          func(w *kueuev1.Workload) { condition(w, kueuev1.WorkloadEvicted) },
		"admitted":         func(w *kueuev1.Workload) { condition(w, kueuev1.WorkloadAdmitted) },
		"finished":         func(w *kueuev1.Workload) { condition(w, kueuev1.WorkloadFinished) },
		"ready already":    func(w *kueuev1.Workload) { w.Status.AdmissionChecks[1].State = kueuev1.CheckStateReady },
		"retry":            func(w *kueuev1.Workload) { w.Status.AdmissionChecks[1].State = kueuev1.CheckStateRetry },
		"not our check":    func(w *kueuev1.Workload) { w.Status.AdmissionChecks = w.Status.AdmissionChecks[:1] },
		"being deleted":    func(w *kueuev1.Workload) { w.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
		"another workload": func(w *kueuev1.Workload) { w.UID = "u2" },
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{workload: waiting()}
			change(w.workload)
			if got := run(t, applier(w, &clock{}), w, decide.Decision{Kind: decide.Start}); got.Skipped != 1 || len(w.applied)+len(w.events) > 0 {
				t.Fatalf("result %+v, writes %v, events %v", got, w.applied, w.events)
			}
		})
	}
}

func TestAConflictDropsTheDecision(t *testing.T) {
	w := &world{workload: waiting(), conflict: true}
	a := applier(w, &clock{})
	if got := run(t, a, w, decide.Decision{Kind: decide.Start}); got.Conflicts != 1 || got.Started != 0 || len(w.events) > 0 {
		t.Fatalf("result %+v, events %v", got, w.events)
	}
	if a.Behind(w) {
		t.Fatal("nothing was written, so nothing is missing")
	}
}

func TestMessagesAreRewrittenWhenTheReasonChangesOrAfterAMinute(t *testing.T) {
	w, c := &world{workload: waiting()}, &clock{now: time.Unix(1000, 0)}
	w.workload.Status.AdmissionChecks[1].PodSetUpdates = podSetUpdates(w.workload)
	a := applier(w, c)
	steps := []struct {
		name   string
		after  time.Duration
		reason classes.Reason
		free   int
		writes int // in total
		events int // in total
	}{
		{"first", 0, classes.ReasonWaitingForCapacity, 0, 1, 1},
		{"same text", time.Hour / 2, classes.ReasonWaitingForCapacity, 0, 1, 1},
		{"other numbers, later", 0, classes.ReasonWaitingForCapacity, 1, 2, 1},
		{"other numbers, at once", time.Second, classes.ReasonWaitingForCapacity, 2, 2, 1},
		{"other reason, at once", time.Second, classes.ReasonNeverFits, 2, 3, 2},
		{"other numbers, too soon", 59 * time.Second, classes.ReasonNeverFits, 3, 3, 2},
		{"other numbers, after a minute", time.Second, classes.ReasonNeverFits, 3, 4, 2},
	}
	for _, step := range steps {
		c.now = c.now.Add(step.after)
		run(t, a, w, decide.Decision{Kind: decide.Hold, Reason: step.reason, Numbers: decide.Numbers{FreeGPUs: step.free}})
		if len(w.applied) != step.writes || len(w.events) != step.events {
			t.Fatalf("%s: %d writes, want %d; events %q, want %d", step.name, len(w.applied), step.writes, w.events, step.events)
		}
		state := states(t, w.applied[len(w.applied)-1])[0].(map[string]any)
		if state["state"] != "Pending" || state["lastTransitionTime"] != "1970-01-01T00:01:40Z" || len(state["podSetUpdates"].([]any)) != 2 {
			t.Fatalf("%s: a message changed more than the message: %v", step.name, state)
		}
		w.workload.Status.AdmissionChecks[1].Message = state["message"].(string)
		w.workload.ResourceVersion += "0"
	}
	w.workload.Status.AdmissionChecks[1].Message = "Reset to Pending after eviction"
	run(t, a, w, decide.Decision{Kind: decide.Hold, Reason: classes.ReasonNeverFits, Numbers: decide.Numbers{FreeGPUs: 3}})
	if len(w.applied) != 5 {
		t.Fatal("a message that Kueue replaced is told again at once")
	}
}

func TestAReadyCheckKeepsItsMessage(t *testing.T) {
	w := &world{workload: waiting()}
	w.workload.Status.AdmissionChecks[1].State = kueuev1.CheckStateReady
	if got := run(t, applier(w, &clock{}), w, decide.Decision{Kind: decide.Hold, Reason: classes.ReasonNeverFits}); got.Skipped != 1 || len(w.applied) > 0 {
		t.Fatalf("result %+v", got)
	}
}

func TestReleaseRemovesOurGateAndPinsInOnePatch(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "job-0", UID: "p", ResourceVersion: "3"}}
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "someone/else"}, {Name: classes.GatePlacement}}
	pod.Spec.NodeSelector = map[string]string{"disk": "fast"}
	w := &world{workload: waiting(), pod: pod}
	a := applier(w, &clock{})
	d := decide.Decision{Kind: decide.Release, Pod: "job-0", Node: "n1", Hostname: "host-1"}
	if got := run(t, a, w, d); got.Released != 1 || !a.Behind(w) {
		t.Fatalf("result %+v", got)
	}
	got := w.pods[0]
	if len(got.Spec.SchedulingGates) != 1 || got.Spec.SchedulingGates[0].Name != "someone/else" ||
		got.Spec.NodeSelector["disk"] != "fast" || got.Spec.NodeSelector[corev1.LabelHostname] != "host-1" {
		t.Fatalf("pod %+v", got.Spec)
	}
	if len(pod.Spec.SchedulingGates) != 2 {
		t.Fatal("the cached pod was changed")
	}
	w.pod = got
	if again := run(t, a, w, d); again.Skipped != 1 || len(w.pods) != 1 {
		t.Fatal("a released pod is left alone")
	}
	pod.Spec.NodeSelector[corev1.LabelHostname] = "host-2"
	w.pod = pod
	d.Namespace, d.Workload, d.UID = "team", "job", "u1"
	if _, err := a.Apply(t.Context(), w, []decide.Decision{d}); err == nil || !strings.Contains(err.Error(), "host-2") {
		t.Fatalf("a pod that asks for another host is not moved: %v", err)
	}
}

func TestUnresolvedWorkIsToldOnceOnTheCheckAndOnTheJob(t *testing.T) {
	workload := waiting()
	workload.Status.Conditions = nil
	workload.Annotations = map[string]string{classes.AnnotationUnresolved: "x"}
	workload.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: "j", Controller: new(true)}}
	w, c := &world{workload: workload}, &clock{now: time.Unix(1, 0)}
	a := applier(w, c)
	tell := func() {
		t.Helper()
		if err := a.Unresolved(t.Context(), w, workload, classes.ReasonTemplateNotFound, "template gone"); err != nil {
			t.Fatal(err)
		}
	}
	tell()
	if len(w.applied) != 1 || len(w.events) != 2 {
		t.Fatalf("writes %d, events %q", len(w.applied), w.events)
	}
	workload.Status.AdmissionChecks[1].Message = "template gone"
	tell()
	if len(w.applied) != 1 || len(w.events) != 2 {
		t.Fatalf("told twice: writes %d, events %q", len(w.applied), w.events)
	}
	// A queue that does not exist has no checks: the events are all there is.
	workload.UID, workload.Status.AdmissionChecks = "u9", nil
	tell()
	tell()
	if len(w.applied) != 1 || len(w.events) != 4 {
		t.Fatalf("writes %d, events %q", len(w.applied), w.events)
	}
}
