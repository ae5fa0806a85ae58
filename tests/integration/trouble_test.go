package integration

import (
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// These tests disturb Kueue and the queue while one job runs and others wait:
// what runs goes on, what waits is told the same as before.

// full starts a job on all GPUs and n jobs that wait behind it.
func (w *world) full(n int) (running *batchv1.Job, waiting []*batchv1.Job) {
	w.t.Helper()
	running = w.job("running", "whole", gpus)
	w.bound(running, gpus)
	for i := range n {
		waiting = append(waiting, w.job(fmt.Sprintf("waiting-%02d", i), "whole", 1))
	}
	for _, job := range waiting {
		w.workloadUntil(job, "waits", waits())
	}
	return running, waiting
}

// undisturbed checks that a started job was neither evicted nor given other pods.
func (w *world) undisturbed(job *batchv1.Job, before []string) {
	w.t.Helper()
	wl := w.workload(job)
	if !admitted(wl) || is(wl, kueuev1.WorkloadEvicted) {
		w.t.Errorf("running work was disturbed: %s", describe(wl))
	}
	if after := w.podNames(job); fmt.Sprint(after) != fmt.Sprint(before) {
		w.t.Errorf("pods changed from %v to %v", before, after)
	}
}

func (w *world) podNames(job *batchv1.Job) []string {
	w.t.Helper()
	var names []string
	for _, pod := range w.pods(job) {
		names = append(names, pod.Name)
	}
	return names
}

func (w *world) setStopPolicy(policy kueuev1.StopPolicy) {
	w.t.Helper()
	w.eventually("stop policy "+string(policy), func() (bool, string) {
		var queue kueuev1.ClusterQueue
		if err := cluster.client.Get(w.ctx(), client.ObjectKey{Name: w.name}, &queue); err != nil {
			return false, err.Error()
		}
		queue.Spec.StopPolicy = &policy
		err := cluster.client.Update(w.ctx(), &queue)
		return err == nil, fmt.Sprint(err)
	})
}

func TestHoldAndUnHoldLoseNothing(t *testing.T) {
	w := newWorld(t)
	running, waiting := w.full(3)
	pods := w.podNames(running)
	w.setStopPolicy(kueuev1.Hold)
	for _, job := range waiting {
		w.workloadUntil(job, "lost its reservation", func(wl *kueuev1.Workload) bool { return wl.Status.Admission == nil })
	}
	w.undisturbed(running, pods)
	w.setStopPolicy(kueuev1.None)
	for _, job := range waiting {
		w.workloadUntil(job, "is reserved and waits again", func(wl *kueuev1.Workload) bool {
			return is(wl, kueuev1.WorkloadQuotaReserved) && waits()(wl)
		})
	}
	w.undisturbed(running, pods)
	w.end(running)
	for _, job := range waiting {
		w.bound(job, 1)
	}
}

func TestAKueueRestartLosesNothing(t *testing.T) {
	w := newWorld(t)
	if cluster.tool == nil {
		t.Skipf("restarting Kueue needs a cluster that this run started: set %s=1", envStart)
	}
	running, waiting := w.full(20)
	pods := w.podNames(running)
	if err := cluster.tool(t.Context(), "restart", "kueue"); err != nil {
		t.Fatal(err)
	}
	w.undisturbed(running, pods)
	w.end(running)
	started := 0
	w.eventually("as many as fit are started, the rest waits", func() (bool, string) {
		started = 0
		for _, job := range waiting {
			if wl := w.findWorkload(job); wl != nil && admitted(wl) {
				started++
			}
		}
		return started == gpus, fmt.Sprint(started)
	})
}

func TestAPriorityChangeReordersWhatWaits(t *testing.T) {
	w := newWorld(t)
	rest, one := w.job("rest", "whole", gpus-1), w.job("one", "whole", 1)
	w.bound(rest, gpus-1)
	w.bound(one, 1)
	first := w.job("first", "whole", 1)
	w.workloadUntil(first, "waits", waits())
	second := w.job("second", "whole", 1)
	w.workloadUntil(second, "waits", waits())
	w.eventually("priority raised", func() (bool, string) {
		wl := w.findWorkload(second)
		raised := int32(1000)
		wl.Spec.Priority = &raised
		err := cluster.client.Update(w.ctx(), wl)
		return err == nil, fmt.Sprint(err)
	})
	w.end(one)
	w.bound(second, 1)
	if wl := w.workload(first); admitted(wl) {
		t.Errorf("the job of lower priority started too: %s", describe(wl))
	}
}

func TestAQueueDeletedUnderRunningWorkLosesNothing(t *testing.T) {
	w := newWorld(t)
	job := w.job("running", "whole", 1)
	w.bound(job, 1)
	pods := w.podNames(job)
	queue := &kueuev1.ClusterQueue{}
	queue.Name = w.name
	if err := cluster.client.Delete(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	w.eventually("the queue is being deleted", func() (bool, string) {
		var now kueuev1.ClusterQueue
		if err := cluster.client.Get(w.ctx(), client.ObjectKey{Name: w.name}, &now); err != nil {
			return false, "it is gone under running work: " + err.Error()
		}
		return now.DeletionTimestamp != nil, "not yet deleted"
	})
	w.undisturbed(job, pods)
	w.end(job)
}
