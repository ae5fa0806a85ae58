package integration

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/classes"
)

func TestReadyStartsTheJobWithGatedPodsThatAreReleasedAndPinned(t *testing.T) {
	w := newWorld(t)
	job := w.job("pair", "share", 2)
	wl := w.workloadUntil(job, "is admitted", admitted)
	state := check(wl)
	if len(state.PodSetUpdates) != len(wl.Spec.PodSets) {
		t.Errorf("podSetUpdates %+v", state.PodSetUpdates)
	}
	for _, update := range state.PodSetUpdates {
		if update.Labels[classes.LabelPlacement] != "true" || len(update.NodeSelector) != 0 {
			t.Errorf("podSetUpdate %+v: one constant label and no node selector", update)
		}
	}
	for _, pod := range w.bound(job, 2) {
		if pod.Labels[classes.LabelPlacement] != "true" {
			t.Errorf("pod %s: labels %v", pod.Name, pod.Labels)
		}
		if pod.Spec.NodeSelector[corev1.LabelHostname] != w.name+".example" || len(pod.Spec.SchedulingGates) != 0 {
			t.Errorf("pod %s: pinned to %v, gates %v", pod.Name, pod.Spec.NodeSelector, pod.Spec.SchedulingGates)
		}
	}
}

func TestAWholeGPUBeyondTheLastFreeOneWaitsWithAReasonAndStartsWhenOneEnds(t *testing.T) {
	w := newWorld(t)
	full := w.job("full", "whole", gpus-1)
	last := w.job("last", "whole", 1)
	w.bound(full, gpus-1)
	w.bound(last, 1)
	late := w.job("late", "whole", 1)
	w.workloadUntil(late, "waits with numbers", waits("0 of 8"))
	if pods := w.pods(late); len(pods) != 0 {
		t.Errorf("a waiting job has %d pods", len(pods))
	}
	w.end(last)
	w.workloadUntil(late, "is admitted", admitted)
	w.bound(late, 1)
}

func TestEverythingIsReservedAtOnceUnderHeadroom(t *testing.T) {
	w := newWorld(t)
	jobs := make([]*batchv1.Job, 0, 4)
	for i := range cap(jobs) {
		jobs = append(jobs, w.job(fmt.Sprintf("big-%d", i), "whole", gpus))
	}
	started := 0
	for _, job := range jobs {
		wl := w.workloadUntil(job, "is reserved and decided", func(wl *kueuev1.Workload) bool {
			return admitted(wl) || waits()(wl)
		})
		if admitted(wl) {
			started++
		}
	}
	if started != 1 {
		t.Errorf("%d jobs of all eight GPUs started, want 1", started)
	}
	w.eventually("all four are reserved", func() (bool, string) {
		used := w.usage()
		return used == 4*gpus*classes.MilliPerGPU, fmt.Sprint(used)
	})
}

func TestTwoShardedJobsShareTheSameEightGPUs(t *testing.T) {
	w := newWorld(t)
	w.template("shard", classes.DeviceClassShare, gpus, "40000000000")
	first, second := w.job("first", "shard", 1), w.job("second", "shard", 1)
	w.bound(first, 1)
	w.bound(second, 1)
	third := w.job("third", "shard", 1)
	w.workloadUntil(third, "waits", waits())
}

func TestWorkThatNeverFitsIsTold(t *testing.T) {
	w := newWorld(t)
	w.template("nine", classes.DeviceClassGPU, gpus+1, "")
	w.template("huge", classes.DeviceClassShare, 1, "200Gi")
	for _, template := range []string{"nine", "huge"} {
		job := w.job(template, template, 1)
		w.workloadUntil(job, "says that it never fits", func(wl *kueuev1.Workload) bool {
			return !admitted(wl) && check(wl).State == kueuev1.CheckStatePending && check(wl).Message != ""
		})
	}
	w.bound(w.job("small", "whole", 1), 1)
}

func TestRetryEvictsAndTheJobStartsAgain(t *testing.T) {
	w := newWorld(t)
	job := w.job("victim", "whole", 1)
	before := w.bound(job, 1)
	w.setCheck(job, kueuev1.CheckStateRetry)
	w.terminated(before)
	wl := w.workloadUntil(job, "was evicted and is admitted again", func(wl *kueuev1.Workload) bool {
		return admitted(wl) && !is(wl, kueuev1.WorkloadEvicted) && wl.Status.SchedulingStats != nil && len(wl.Status.SchedulingStats.Evictions) > 0
	})
	if state := check(wl); state.State != kueuev1.CheckStateReady || len(state.PodSetUpdates) != 1 {
		t.Errorf("check after the second start: %+v", state)
	}
	if after := w.bound(job, 1)[0]; after.UID == before[0].UID || after.Spec.NodeSelector[corev1.LabelHostname] == "" {
		t.Errorf("the second start has pod %s pinned to %v", after.UID, after.Spec.NodeSelector)
	}
}

func TestAfterARetryTheFreedGPUGoesToOneAndTheOtherWaits(t *testing.T) {
	w := newWorld(t)
	victim := w.job("victim", "whole", 1)
	old := w.bound(victim, 1)
	rest := w.job("rest", "whole", gpus-1)
	w.bound(rest, gpus-1)
	next := w.job("next", "whole", 1)
	w.workloadUntil(next, "waits", waits())
	w.setCheck(victim, kueuev1.CheckStateRetry)
	w.terminated(old)
	// The victim is older, but for a moment it holds no reservation: either may get the GPU.
	w.eventually("one runs and the other waits", func() (bool, string) {
		v, n := w.findWorkload(victim), w.findWorkload(next)
		evicted := v.Status.SchedulingStats != nil && len(v.Status.SchedulingStats.Evictions) > 0 && !is(v, kueuev1.WorkloadEvicted)
		return evicted && (admitted(v) && waits()(n) || admitted(n) && waits()(v)), describe(v) + " | " + describe(n)
	})
}

func TestARestartLosesNothing(t *testing.T) {
	w := newWorld(t)
	running := w.job("running", "whole", gpus)
	w.bound(running, gpus)
	waiting := w.job("waiting", "whole", 1)
	message := check(w.workloadUntil(waiting, "waits", waits())).Message

	if err := stopController(); err != nil {
		t.Fatal(err)
	}
	started := false
	defer func() {
		if !started {
			if err := startController(); err != nil {
				t.Error(err)
			}
		}
	}()
	// A plain job of the same queue does not need us: the webhook is not called for it.
	w.workloadUntil(w.job("plain", "", 1), "is admitted without us", admitted)
	w.end(running)
	if wl := w.workload(waiting); admitted(wl) || check(wl).Message != message {
		t.Errorf("something changed while the controller was away: %s", describe(wl))
	}
	if err := startController(); err != nil {
		t.Fatal(err)
	}
	started = true
	w.workloadUntil(waiting, "is admitted", admitted)
	w.bound(waiting, 1)
}
