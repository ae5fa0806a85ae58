package kueue

import (
	"bytes"
	"encoding/json"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
)

func (t *translation) addWorkloads() {
	t.constraints, t.solid = map[string]int{}, map[string]bool{}
	for i := range t.PriorityClasses {
		if t.PriorityClasses[i].Labels[classes.LabelPreemptible] == "false" {
			t.solid[t.PriorityClasses[i].Name] = true
		}
	}
	for i := range t.Workloads {
		if w, included := t.workload(&t.Workloads[i]); included {
			t.s.Workloads = append(t.s.Workloads, w)
		}
	}
}

// workload translates one Workload; false if no cycle has to do with it.
func (t *translation) workload(w *kueuev1.Workload) (snapshot.Workload, bool) {
	state, queue, included := t.state(w)
	if !included {
		return snapshot.Workload{}, false
	}
	out := snapshot.Workload{
		Namespace: w.Namespace, Name: w.Name, UID: string(w.UID), Queue: queue, Created: w.CreationTimestamp.UnixNano(), State: state,
		Bare: metav1.GetControllerOf(w) == nil, Promise: promiseOf(w), EvictedAt: evictedAt(w),
	}
	if w.Spec.Priority != nil {
		out.Priority = *w.Spec.Priority
	}
	if ref := w.Spec.PriorityClassRef; ref != nil && ref.Group == kueuev1.WorkloadPriorityClassGroup {
		out.NonPreemptible = t.solid[ref.Name]
	}
	if admitted := apimeta.FindStatusCondition(w.Status.Conditions, kueuev1.WorkloadAdmitted); state == snapshot.Started && admitted != nil && admitted.Status == metav1.ConditionTrue {
		out.StartedAt = admitted.LastTransitionTime.UnixNano()
	}
	demand, known := demandOf(w)
	out.Uncharged = !known
	for i := range w.Spec.PodSets {
		set := &w.Spec.PodSets[i]
		out.PodSets = append(out.PodSets, t.podSet(w, set, demand))
	}
	return out, true
}

func (t *translation) podSet(w *kueuev1.Workload, set *kueuev1.PodSet, demand Demand) snapshot.PodSet {
	wanted := demand.podSet(string(set.Name))
	spec := &set.Template.Spec
	out := snapshot.PodSet{
		Name: string(set.Name), Count: count(w, set), Requests: wanted.values(), Needs: podNeeds(spec),
		Pods: t.pods.of(w.Namespace+"/"+w.Name, set, len(w.Spec.PodSets)),
	}
	if charged, found := spec.Overhead[classes.ResourceMilliGPU]; found {
		out.Charge = quantity.MilliGPU(charged.Value())
	}
	if len(out.Requests) > 0 {
		out.Constraint = t.constraint(spec)
	}
	return out
}

// demandOf reads what w was charged for. It says false for work that names
// devices and was never charged, or whose demand is damaged: it must not start
// as if it were free.
func demandOf(w *kueuev1.Workload) (Demand, bool) {
	if text := w.Annotations[classes.AnnotationDemand]; text != "" {
		demand, err := DecodeDemand(text)
		return demand, err == nil
	}
	for i := range w.Spec.PodSets {
		if spec := &w.Spec.PodSets[i].Template.Spec; len(spec.ResourceClaims) > 0 || extendedGPUs(spec) > 0 {
			return Demand{}, false
		}
	}
	return Demand{}, true
}

// state says what Kueue and our check agreed on, and the queue. A Workload that
// neither waits nor runs is included for the devices that its pods still hold,
// and, where it will be queued again, for what it asks for.
func (t *translation) state(w *kueuev1.Workload) (state snapshot.WorkloadState, queue string, included bool) {
	is := func(condition string) bool { return apimeta.IsStatusConditionTrue(w.Status.Conditions, condition) }
	queue = t.queueOf[w.Namespace+"/"+string(w.Spec.QueueName)]
	if w.Status.Admission != nil {
		queue = string(w.Status.Admission.ClusterQueue)
	}
	over := is(kueuev1.WorkloadFinished) || w.DeletionTimestamp != nil || w.Spec.Active != nil && !*w.Spec.Active
	check, ours := t.check(w)
	switch {
	case over:
		return snapshot.Ended, queue, t.pods.any(w)
	case is(kueuev1.WorkloadEvicted), check == kueuev1.CheckStateRetry:
		return snapshot.Returning, queue, true
	case w.Status.Admission == nil || !is(kueuev1.WorkloadQuotaReserved) || !ours:
		return snapshot.Ended, queue, t.pods.any(w)
	case check == kueuev1.CheckStateReady:
		return snapshot.Started, queue, true
	case check == kueuev1.CheckStatePending && !is(kueuev1.WorkloadAdmitted):
		return snapshot.Waiting, queue, true
	default:
		return snapshot.Ended, queue, t.pods.any(w)
	}
}

// check is the state of our check on w.
func (t *translation) check(w *kueuev1.Workload) (kueuev1.CheckState, bool) {
	for _, check := range w.Status.AdmissionChecks {
		if t.Ours(check.Name) {
			return check.State, true
		}
	}
	return "", false
}

// evictedAt is when w was last evicted; 0 = never.
func evictedAt(w *kueuev1.Workload) int64 {
	var last int64
	for _, kind := range []string{kueuev1.WorkloadEvicted, kueuev1.WorkloadRequeued} {
		if c := apimeta.FindStatusCondition(w.Status.Conditions, kind); c != nil {
			last = max(last, c.LastTransitionTime.UnixNano())
		}
	}
	return last
}

// count is the number of pods that still need devices: those that finished for good are given back.
func count(w *kueuev1.Workload, set *kueuev1.PodSet) int {
	n := int(set.Count)
	if w.Status.Admission == nil { // evicted, and not reserved again yet
		return n
	}
	for _, assignment := range w.Status.Admission.PodSetAssignments {
		if assignment.Name == set.Name && assignment.Count != nil {
			n = int(*assignment.Count)
		}
	}
	for _, done := range w.Status.ReclaimablePods {
		if done.Name == set.Name {
			n -= int(done.Count)
		}
	}
	return max(n, 0)
}

// promise is the annotation's form of a promise.
type promise struct {
	Version int        `json:"version"`
	Nodes   [][]string `json:"nodes"` // per podSet, the node of every pod
	Since   int64      `json:"since"` // Unix nanoseconds
	Turn    int        `json:"turn"`
}

const promiseVersion = 1

// EncodePromise returns the text of classes.AnnotationPromise.
func EncodePromise(p *snapshot.Promise) (string, error) {
	text, err := json.Marshal(promise{promiseVersion, p.Nodes, p.Since, p.Turn})
	if err != nil {
		return "", fmt.Errorf("encode promise: %w", err)
	}
	return string(text), nil
}

// promiseOf reads the annotation strictly; one that cannot be read is none: the
// planner then decides anew.
func promiseOf(w *kueuev1.Workload) *snapshot.Promise {
	decoder := json.NewDecoder(bytes.NewReader([]byte(w.Annotations[classes.AnnotationPromise])))
	decoder.DisallowUnknownFields()
	var p promise
	if err := decoder.Decode(&p); err != nil || p.Version != promiseVersion || len(p.Nodes) != len(w.Spec.PodSets) {
		return nil
	}
	return &snapshot.Promise{Nodes: p.Nodes, Since: p.Since, Turn: p.Turn}
}
