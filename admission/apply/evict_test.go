package apply

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
)

// started is an admitted Workload whose check is Ready.
func started() *kueuev1.Workload {
	w := waiting()
	w.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "job", UID: "j", Controller: new(true)}}
	w.Status.AdmissionChecks[1].State = kueuev1.CheckStateReady
	w.Status.AdmissionChecks[1].PodSetUpdates = podSetUpdates(w)
	condition(w, kueuev1.WorkloadAdmitted)
	return w
}

func TestEvictSetsRetryWithoutABackOffOnTheVersionSeen(t *testing.T) {
	w := &world{workload: started()}
	w.workload.Status.AdmissionChecks[1].RequeueAfterSeconds = new(int32(60))
	a := applier(w, &clock{now: time.Unix(500, 0)})
	if got := run(t, a, w, decide.Decision{Kind: decide.Evict, Rule: decide.RulePreempt}); got.Evicted != 1 || !a.Behind(w) {
		t.Fatalf("result %+v", got)
	}
	fields := &unstructured.Unstructured{Object: w.applied[0]}
	state := states(t, w.applied[0])[0].(map[string]any)
	if fields.GetResourceVersion() != "7" || state["state"] != "Retry" || state["requeueAfterSeconds"] != nil || state["retryCount"] != nil {
		t.Fatalf("version %s, state %v", fields.GetResourceVersion(), state)
	}
	if len(w.events) != 2 || !strings.HasPrefix(w.events[0], "Preempt: ") {
		t.Fatalf("an event on the Workload and on its job, got %q", w.events)
	}
}

func TestEvictIsSkippedWhenAPreconditionFails(t *testing.T) {
	for name, change := range map[string]func(*kueuev1.Workload){
		"no reservation": func(w *kueuev1.Workload) { w.Status.Conditions = nil },
		"evicted":        func(w *kueuev1.Workload) { condition(w, kueuev1.WorkloadEvicted) },
		"finished":       func(w *kueuev1.Workload) { condition(w, kueuev1.WorkloadFinished) },
		"not started":    func(w *kueuev1.Workload) { w.Status.AdmissionChecks[1].State = kueuev1.CheckStatePending },
		"retry already":  func(w *kueuev1.Workload) { w.Status.AdmissionChecks[1].State = kueuev1.CheckStateRetry },
		"a clone":        func(w *kueuev1.Workload) { w.Labels = map[string]string{kueuev1.MultiKueueOriginLabel: "x"} },
		"a replacement":  func(w *kueuev1.Workload) { w.Annotations = map[string]string{sliceReplacement: "x"} },
		"being deleted":  func(w *kueuev1.Workload) { w.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} },
		"another object": func(w *kueuev1.Workload) { w.UID = "u2" },
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{workload: started()}
			change(w.workload)
			if got := run(t, applier(w, &clock{}), w, decide.Decision{Kind: decide.Evict}); got.Skipped != 1 || len(w.applied)+len(w.events)+len(w.patched) > 0 {
				t.Fatalf("result %+v, writes %v", got, w.applied)
			}
		})
	}
}

func plan() *snapshot.Promise {
	return &snapshot.Promise{Nodes: [][]string{{"n1"}, {"n1", "n1", "n2"}}, Since: 5}
}

// The victim's next place is on record before the victim is told to leave, and
// the second write is based on the first.
func TestAMovedWorkloadsPlaceIsWrittenBeforeItsEviction(t *testing.T) {
	w := &world{workload: started()}
	a := applier(w, &clock{})
	run(t, a, w, decide.Decision{Kind: decide.Evict, Promise: plan()})
	if len(w.patched) != 1 || !strings.Contains(w.patched[0].Annotations[classes.AnnotationPromise], `"n2"`) {
		t.Fatalf("patched %v", w.patched)
	}
	if got := (&unstructured.Unstructured{Object: w.applied[0]}).GetResourceVersion(); got != "70" {
		t.Fatalf("the eviction is based on version %s, the promise made it 70", got)
	}
	for _, version := range []string{"7", "70"} {
		w.workload.ResourceVersion = version
		if !a.Behind(w) {
			t.Fatalf("a cache at version %s lacks our writes", version)
		}
	}
	w.workload.ResourceVersion = "700"
	if a.Behind(w) {
		t.Fatal("the cache has all of it")
	}
}

// two is a requester and a victim.
type two struct {
	world
	victim *kueuev1.Workload
}

func (w *two) Workload(namespace, name string) *kueuev1.Workload {
	if name == "victim" {
		return w.victim
	}
	return w.world.Workload(namespace, name)
}

func decisionsOfAPlan() []decide.Decision {
	requester := decide.Ref{Namespace: "team", Name: "job", UID: "u1", Queue: "q"}
	return []decide.Decision{
		{Kind: decide.Hold, Namespace: "team", Workload: "job", UID: "u1", Queue: "q", Reason: classes.ReasonWaitingForRelease, Promise: plan()},
		{Kind: decide.Evict, Namespace: "team", Workload: "victim", UID: "v1", For: requester, Rule: decide.RuleReclaimFairShare},
	}
}

func victim() *kueuev1.Workload {
	v := started()
	v.Name, v.UID = "victim", "v1"
	return v
}

func TestBothSidesOfAnEvictionAreTold(t *testing.T) {
	w := &two{world: world{workload: waiting()}, victim: victim()}
	a := applier(&w.world, &clock{})
	got, err := a.Apply(t.Context(), w, decisionsOfAPlan())
	if err != nil || got.Evicted != 1 || got.Messages != 1 {
		t.Fatalf("result %+v, %v", got, err)
	}
	if len(w.patched) != 1 || w.patched[0].Name != "job" {
		t.Fatalf("the requester's promise is written first, got %v", w.patched)
	}
	gives := slices.ContainsFunc(w.events, func(e string) bool { return strings.Contains(e, "team/victim of queue") })
	if !gives || len(w.events) < 4 {
		t.Fatalf("events %q", w.events)
	}
}

// Nobody leaves for a plan that is not on record.
func TestAPlanWhosePromiseFailsEvictsNobody(t *testing.T) {
	w := &two{world: world{workload: waiting(), conflict: true}, victim: victim()}
	a := applier(&w.world, &clock{})
	got, err := a.Apply(t.Context(), w, decisionsOfAPlan())
	if err != nil || got.Conflicts != 1 || got.Skipped != 1 || got.Evicted != 0 || len(w.applied) > 0 {
		t.Fatalf("result %+v, %v, writes %v", got, err, w.applied)
	}
}

func TestAnOldPromiseIsTakenAway(t *testing.T) {
	for name, d := range map[string]decide.Decision{
		"it starts":    {Kind: decide.Start},
		"it is void":   {Kind: decide.Hold, Reason: classes.ReasonWaitingForCapacity},
		"it is moved ": {Kind: decide.Hold, Reason: classes.ReasonWaitingForRelease, Promise: plan()},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{workload: waiting()}
			w.workload.Annotations = map[string]string{classes.AnnotationPromise: "old"}
			run(t, applier(w, &clock{}), w, d)
			if len(w.patched) != 1 || w.patched[0].Annotations[classes.AnnotationPromise] == "old" {
				t.Fatalf("patched %v", w.patched)
			}
		})
	}
}

func TestSurplusPodsAreEvictedOneByOne(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "job-1", UID: "p", ResourceVersion: "3"}}
	w := &world{workload: started(), pod: pod}
	a := applier(w, &clock{})
	if got := run(t, a, w, decide.Decision{Kind: decide.Evict, Pods: []string{"job-1", "job-2"}}); got.Evicted != 1 || got.Skipped != 1 {
		t.Fatalf("result %+v", got)
	}
	if !slices.Equal(w.evicted, []string{"job-1"}) || len(w.applied) > 0 {
		t.Fatalf("evicted %v, writes %v", w.evicted, w.applied)
	}
}
