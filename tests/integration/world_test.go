package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/tests/harness"
)

const (
	poolLabel = "fairshard.dev/pool"
	gpus      = 8
	// usableMi is what an H100 80GB offers as shares, in Mi.
	usableMi = 80384
)

var worlds atomic.Int64

// world is one test's own pool: a node with eight GPUs, a managed tree with
// one queue, and a namespace.
type world struct {
	t    *testing.T
	name string // of the pool, the namespace, the queues and the prefix of all else
}

// newWorld makes a pool that no other test sees.
func newWorld(t *testing.T) *world {
	t.Helper()
	needCluster(t)
	w := &world{t: t, name: fmt.Sprintf("it-%x-%d", time.Now().Unix()&0xffffff, worlds.Add(1))}
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.name}})
	w.create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: w.name}})
	w.node()
	w.slices()
	w.create(&kueuev1.ResourceFlavor{
		ObjectMeta: metav1.ObjectMeta{Name: w.name},
		Spec:       kueuev1.ResourceFlavorSpec{NodeLabels: map[string]string{poolLabel: w.name}},
	})
	w.create(&kueuev1.Cohort{ObjectMeta: metav1.ObjectMeta{Name: w.name, Labels: map[string]string{classes.LabelManaged: "true"}}})
	w.clusterQueue()
	w.create(&kueuev1.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: "gpu"},
		Spec:       kueuev1.LocalQueueSpec{ClusterQueue: kueuev1.ClusterQueueReference(w.name)},
	})
	w.template("whole", classes.DeviceClassGPU, 1, "")
	w.template("share", classes.DeviceClassShare, 1, "40000000000")
	w.eventually("the queue is active with headroom", func() (bool, string) {
		var cohort kueuev1.Cohort
		w.get(w.name, "", &cohort)
		var queue kueuev1.ClusterQueue
		w.get(w.name, "", &queue)
		active := apimeta.IsStatusConditionTrue(queue.Status.Conditions, kueuev1.ClusterQueueActive)
		return active && len(cohort.Spec.ResourceGroups) == 1, fmt.Sprintf("active %t, cohort %+v", active, cohort.Spec.ResourceGroups)
	})
	return w
}

func (w *world) ctx() context.Context { return w.t.Context() }

// create makes an object and removes it when the test ends. What exists is fine.
func (w *world) create(object client.Object) {
	w.t.Helper()
	if err := cluster.client.Create(w.ctx(), object); err != nil && !apierrors.IsAlreadyExists(err) {
		w.t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
	w.t.Cleanup(func() {
		// The test's own context is already over.
		ctx, cancel := context.WithTimeout(context.Background(), soon)
		defer cancel()
		if err := cluster.client.Delete(ctx, object, client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
			w.t.Errorf("delete %T %s: %v", object, object.GetName(), err)
		}
	})
}

func (w *world) get(name, namespace string, object client.Object) {
	w.t.Helper()
	if err := cluster.client.Get(w.ctx(), types.NamespacedName{Namespace: namespace, Name: name}, object); err != nil {
		w.t.Fatalf("get %T %s: %v", object, name, err)
	}
}

func (w *world) eventually(what string, done func() (bool, string)) {
	w.t.Helper()
	if err := harness.Wait(w.ctx(), soon, what, done); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) node() {
	w.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:   w.name,
		Labels: map[string]string{poolLabel: w.name, corev1.LabelHostname: w.name + ".example"},
	}}
	w.create(node)
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	w.eventually("the node is ready", func() (bool, string) {
		w.get(w.name, "", node)
		node.Spec.Taints = nil
		if err := cluster.client.Update(w.ctx(), node); err != nil {
			return false, err.Error()
		}
		node.Status.Capacity, node.Status.Allocatable = capacity, capacity
		node.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Test", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}}
		if err := cluster.client.Status().Update(w.ctx(), node); err != nil {
			return false, err.Error()
		}
		return true, ""
	})
}

// slices publishes eight GPUs the way the kubelet plugin does: counters,
// then shares, then whole GPUs.
func (w *world) slices() {
	w.t.Helper()
	full := map[string]resourcev1.Counter{"gpu": {Value: resource.MustParse("1")}}
	var counters []resourcev1.CounterSet
	var shares, whole []resourcev1.Device
	for i := range gpus {
		base := fmt.Sprintf("gpu-%d", i)
		attributes := func(kind string) map[resourcev1.QualifiedName]resourcev1.DeviceAttribute {
			return map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				classes.AttrType:        {StringValue: &kind},
				classes.AttrUUID:        {StringValue: new(fmt.Sprintf("GPU-%s-%d", w.name, i))},
				classes.AttrProductName: {StringValue: new("NVIDIA H100 80GB HBM3")},
			}
		}
		consumes := []resourcev1.DeviceCounterConsumption{{CounterSet: base, Counters: full}}
		usable, step := resource.MustParse(fmt.Sprintf("%dMi", usableMi)), resource.MustParse("256Mi")
		counters = append(counters, resourcev1.CounterSet{Name: base, Counters: full})
		shares = append(shares, resourcev1.Device{
			Name: base + "-share", Attributes: attributes(classes.DeviceTypeShare), ConsumesCounters: consumes,
			AllowMultipleAllocations: new(true),
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{classes.CapMemory: {
				Value: usable,
				RequestPolicy: &resourcev1.CapacityRequestPolicy{
					Default: &usable, ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: &step, Step: &step},
				},
			}},
		})
		whole = append(whole, resourcev1.Device{
			Name: base, Attributes: attributes(classes.DeviceTypeGPU), ConsumesCounters: consumes,
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{classes.CapMemory: {Value: usable}},
		})
	}
	slices.Reverse(whole)
	for i, spec := range []resourcev1.ResourceSliceSpec{{SharedCounters: counters}, {Devices: shares}, {Devices: whole}} {
		spec.Driver, spec.NodeName = classes.DriverName, &w.name
		spec.Pool = resourcev1.ResourcePool{Name: w.name, Generation: 1, ResourceSliceCount: 3}
		w.create(&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", w.name, i)}, Spec: spec})
	}
}

func (w *world) clusterQueue() {
	w.t.Helper()
	w.create(&kueuev1.ClusterQueue{
		ObjectMeta: metav1.ObjectMeta{Name: w.name},
		Spec: kueuev1.ClusterQueueSpec{
			CohortName:        kueuev1.CohortReference(w.name),
			NamespaceSelector: &metav1.LabelSelector{},
			AdmissionChecksStrategy: &kueuev1.AdmissionChecksStrategy{
				AdmissionChecks: []kueuev1.AdmissionCheckStrategyRule{{Name: checkName}},
			},
			ResourceGroups: []kueuev1.ResourceGroup{{
				CoveredResources: []corev1.ResourceName{classes.ResourceMilliGPU},
				Flavors: []kueuev1.FlavorQuotas{{
					Name:      kueuev1.ResourceFlavorReference(w.name),
					Resources: []kueuev1.ResourceQuota{{Name: classes.ResourceMilliGPU, NominalQuota: resource.MustParse("8k")}},
				}},
			}},
		},
	})
}

// template makes a ResourceClaimTemplate of one request.
func (w *world) template(name, class string, count int64, bytes string) {
	w.t.Helper()
	request := &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}
	if bytes != "" {
		request.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{classes.CapMemory: resource.MustParse(bytes)}}
	}
	spec := resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: request}}}}
	if count > 1 {
		spec.Devices.Constraints = []resourcev1.DeviceConstraint{{DistinctAttribute: new(resourcev1.FullyQualifiedName(classes.DriverName + "/" + classes.AttrUUID))}}
	}
	w.create(&resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: name},
		Spec:       resourcev1.ResourceClaimTemplateSpec{Spec: spec},
	})
}

// job makes a Job in queue "gpu" whose pods use a claim template ("" = none).
func (w *world) job(name, template string, pods int32, change ...func(*batchv1.Job)) *batchv1.Job {
	w.t.Helper()
	container := corev1.Container{Name: "main", Image: "example.com/none", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
	}}
	spec := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64)}
	if template != "" {
		container.Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
		spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
	}
	spec.Containers = []corev1.Container{container}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: name, Labels: map[string]string{"kueue.x-k8s.io/queue-name": "gpu"}},
		Spec: batchv1.JobSpec{
			Parallelism: &pods, Completions: &pods, Suspend: new(true), BackoffLimit: new(int32),
			Template: corev1.PodTemplateSpec{Spec: spec},
		},
	}
	for _, f := range change {
		f(job)
	}
	w.create(job)
	return job
}

// workload returns the Workload of a Job, once there is one.
func (w *world) workload(job *batchv1.Job) *kueuev1.Workload {
	w.t.Helper()
	var found *kueuev1.Workload
	w.eventually("the Workload of job "+job.Name, func() (bool, string) {
		found = w.findWorkload(job)
		return found != nil, "none"
	})
	return found
}

func (w *world) findWorkload(job *batchv1.Job) *kueuev1.Workload {
	w.t.Helper()
	var list kueuev1.WorkloadList
	if err := cluster.client.List(w.ctx(), &list, client.InNamespace(w.name)); err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		for _, owner := range list.Items[i].OwnerReferences {
			if owner.UID == job.UID {
				return &list.Items[i]
			}
		}
	}
	return nil
}

// workloadUntil waits until the Workload of a Job satisfies done.
func (w *world) workloadUntil(job *batchv1.Job, what string, done func(*kueuev1.Workload) bool) *kueuev1.Workload {
	w.t.Helper()
	var wl *kueuev1.Workload
	w.eventually("workload of job "+job.Name+" "+what, func() (bool, string) {
		if wl = w.findWorkload(job); wl == nil {
			return false, "no Workload"
		}
		return done(wl), describe(wl)
	})
	return wl
}

func describe(wl *kueuev1.Workload) string {
	var b strings.Builder
	fmt.Fprintf(&b, "annotations %v;", slices.Sorted(maps.Keys(wl.Annotations)))
	for _, c := range wl.Status.Conditions {
		fmt.Fprintf(&b, " %s=%s (%s: %s);", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, c := range wl.Status.AdmissionChecks {
		fmt.Fprintf(&b, " check %s %s %q;", c.Name, c.State, c.Message)
	}
	return b.String()
}

func is(wl *kueuev1.Workload, condition string) bool {
	return apimeta.IsStatusConditionTrue(wl.Status.Conditions, condition)
}

func admitted(wl *kueuev1.Workload) bool { return is(wl, kueuev1.WorkloadAdmitted) }

// check returns the state of our check, or an empty one.
func check(wl *kueuev1.Workload) kueuev1.AdmissionCheckState {
	for _, c := range wl.Status.AdmissionChecks {
		if c.Name == checkName {
			return c
		}
	}
	return kueuev1.AdmissionCheckState{}
}

// waits: reserved, our check Pending with a message that holds every part.
func waits(parts ...string) func(*kueuev1.Workload) bool {
	return func(wl *kueuev1.Workload) bool {
		state := check(wl)
		ok := is(wl, kueuev1.WorkloadQuotaReserved) && !admitted(wl) && state.State == kueuev1.CheckStatePending && state.Message != ""
		for _, part := range parts {
			ok = ok && strings.Contains(state.Message, part)
		}
		return ok
	}
}

// pods returns the pods of a Job.
func (w *world) pods(job *batchv1.Job) []corev1.Pod {
	w.t.Helper()
	var list corev1.PodList
	if err := cluster.client.List(w.ctx(), &list, client.InNamespace(w.name), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// bound waits until n pods of a Job are bound to the node, and returns them.
func (w *world) bound(job *batchv1.Job, n int) []corev1.Pod {
	w.t.Helper()
	var pods []corev1.Pod
	w.eventually(fmt.Sprintf("%d pods of job %s are bound", n, job.Name), func() (bool, string) {
		pods = w.pods(job)
		bound := 0
		seen := ""
		for _, pod := range pods {
			if pod.Spec.NodeName == w.name {
				bound++
			}
			seen += fmt.Sprintf(" %s: gates %v, selector %v, node %q, conditions %v;", pod.Name, pod.Spec.SchedulingGates, pod.Spec.NodeSelector, pod.Spec.NodeName, pod.Status.Conditions)
		}
		return bound == n && len(pods) == n, seen
	})
	return pods
}

// end deletes a Job with its pods, as if it had ended: no kubelet would do it.
func (w *world) end(job *batchv1.Job) {
	w.t.Helper()
	pods := w.pods(job)
	if err := cluster.client.Delete(w.ctx(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		w.t.Fatal(err)
	}
	w.kill(pods)
}

// terminated ends pods once they are told to, as their kubelet would.
func (w *world) terminated(pods []corev1.Pod) {
	w.t.Helper()
	for _, pod := range pods {
		w.eventually("pod "+pod.Name+" ends", func() (bool, string) {
			var now corev1.Pod
			err := cluster.client.Get(w.ctx(), client.ObjectKeyFromObject(&pod), &now)
			if apierrors.IsNotFound(err) || err == nil && now.UID != pod.UID {
				return true, ""
			}
			if err == nil && !now.DeletionTimestamp.IsZero() {
				w.kill([]corev1.Pod{now})
			}
			return false, "it still runs"
		})
	}
}

// kill removes pods the way a kubelet ends them.
func (w *world) kill(pods []corev1.Pod) {
	w.t.Helper()
	for i := range pods {
		if err := cluster.client.Delete(w.ctx(), &pods[i], client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			w.t.Fatal(err)
		}
	}
}

// update changes a Workload's status the way another writer would, again on conflicts.
func (w *world) setCheck(job *batchv1.Job, state kueuev1.CheckState) {
	w.t.Helper()
	w.eventually("check set to "+string(state), func() (bool, string) {
		wl := w.findWorkload(job)
		if wl == nil {
			return false, "no Workload"
		}
		for i := range wl.Status.AdmissionChecks {
			if c := &wl.Status.AdmissionChecks[i]; c.Name == checkName {
				c.State, c.Message, c.LastTransitionTime = state, "by the test", metav1.Now()
				c.PodSetUpdates = nil
			}
		}
		err := cluster.client.Status().Update(w.ctx(), wl)
		return err == nil, fmt.Sprint(err)
	})
}

// usage returns the milligpu that Kueue counts as reserved in the queue.
func (w *world) usage() int64 {
	w.t.Helper()
	var queue kueuev1.ClusterQueue
	w.get(w.name, "", &queue)
	for _, flavor := range queue.Status.FlavorsReservation {
		for _, r := range flavor.Resources {
			if r.Name == classes.ResourceMilliGPU {
				return r.Total.Value()
			}
		}
	}
	return 0
}
