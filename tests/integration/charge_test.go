package integration

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/classes"
)

func TestAChargeInOverheadIsCountedPerPodAndTheWorkloadStays(t *testing.T) {
	w := newWorld(t)
	job := w.job("two", "whole", 2)
	first := w.workloadUntil(job, "is reserved", func(wl *kueuev1.Workload) bool { return is(wl, kueuev1.WorkloadQuotaReserved) })
	w.eventually("Kueue counts 2000 milligpu", func() (bool, string) {
		used := w.usage()
		return used == 2000, resource.NewQuantity(used, resource.DecimalSI).String()
	})
	spec := first.Spec.PodSets[0].Template.Spec
	if charge := spec.Overhead[classes.ResourceMilliGPU]; charge.Value() != classes.MilliPerGPU {
		t.Errorf("one pod is charged %s milligpu", charge.String())
	}
	if len(spec.ResourceClaims) != 0 {
		t.Errorf("pod-level claims must be stripped, or Kueue's own path takes over: %v", spec.ResourceClaims)
	}
	if len(spec.Containers[0].Resources.Claims) != 1 {
		t.Errorf("containers must stay as the job has them: %+v", spec.Containers[0].Resources)
	}
	// Pods run now; Kueue compared job and Workload many times on the way.
	w.bound(job, 2)
	if now := w.workload(job); now.UID != first.UID {
		t.Errorf("the Workload was made again: %s, then %s", first.UID, now.UID)
	}
}

func TestSharesAreChargedByTheirPart(t *testing.T) {
	w := newWorld(t)
	w.job("half", "share", 1)
	// 40e9 bytes round up to 38400Mi of 80384Mi.
	want := int64((38400*1000 + usableMi - 1) / usableMi)
	w.eventually("the share is charged", func() (bool, string) {
		used := w.usage()
		return used == want, resource.NewQuantity(used, resource.DecimalSI).String()
	})
}

func TestRuntimeClassOverheadIsKept(t *testing.T) {
	w := newWorld(t)
	w.create(&nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: w.name}, Handler: "runc",
		Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}},
	})
	job := w.job("kata", "whole", 1, func(j *batchv1.Job) { j.Spec.Template.Spec.RuntimeClassName = &w.name })
	wl := w.workloadUntil(job, "is reserved", func(wl *kueuev1.Workload) bool { return is(wl, kueuev1.WorkloadQuotaReserved) })
	overhead := wl.Spec.PodSets[0].Template.Spec.Overhead
	if overhead.Cpu().String() != "250m" || overhead.Name(classes.ResourceMilliGPU, resource.DecimalSI).Value() != classes.MilliPerGPU {
		t.Errorf("overhead %v, want 250m CPU and %d milligpu", overhead, classes.MilliPerGPU)
	}
	w.bound(job, 1)
}

func TestTheExtendedResourceIsChargedToo(t *testing.T) {
	w := newWorld(t)
	job := w.job("classic", "", 1, func(j *batchv1.Job) {
		three := resource.MustParse("3")
		r := &j.Spec.Template.Spec.Containers[0].Resources
		r.Requests[classes.ExtendedResourceGPU], r.Limits = three, corev1.ResourceList{classes.ExtendedResourceGPU: three}
	})
	w.workloadUntil(job, "is admitted", admitted)
	w.eventually("three GPUs are charged", func() (bool, string) {
		used := w.usage()
		return used == 3000, resource.NewQuantity(used, resource.DecimalSI).String()
	})
	w.bound(job, 1)
}

func TestWorkWithoutOurDevicesStartsAtOnceAndUntouched(t *testing.T) {
	w := newWorld(t)
	job := w.job("plain", "", 1)
	wl := w.workloadUntil(job, "is admitted", admitted)
	if wl.Annotations[classes.AnnotationDemand] != "" || len(wl.Spec.PodSets[0].Template.Spec.Overhead) != 0 {
		t.Errorf("the webhook was called for a plain job: %v, overhead %v", wl.Annotations, wl.Spec.PodSets[0].Template.Spec.Overhead)
	}
	// Without milligpu it uses no flavor that the check is for: Kueue drops the check by itself.
	w.workloadUntil(job, "has no check", func(wl *kueuev1.Workload) bool { return len(wl.Status.AdmissionChecks) == 0 })
	if pod := w.bound(job, 1)[0]; pod.Spec.NodeSelector[corev1.LabelHostname] != "" || pod.Labels[classes.LabelPlacement] != "" {
		t.Errorf("a pod without devices is left alone: selector %v, labels %v", pod.Spec.NodeSelector, pod.Labels)
	}
}

func TestAMissingTemplateIsToldAndTheJobStartsOnceItExists(t *testing.T) {
	w := newWorld(t)
	job := w.job("early", "later", 1)
	w.workloadUntil(job, "says what is missing", func(wl *kueuev1.Workload) bool {
		return !is(wl, kueuev1.WorkloadQuotaReserved) && wl.Annotations[classes.AnnotationUnresolved] != "" &&
			strings.Contains(check(wl).Message, "later")
	})
	w.eventually("the job has an event", func() (bool, string) {
		var events corev1.EventList
		if err := cluster.client.List(w.ctx(), &events); err != nil {
			return false, err.Error()
		}
		for _, e := range events.Items {
			if e.InvolvedObject.UID == job.UID && e.Reason == string(classes.ReasonTemplateNotFound) {
				return true, ""
			}
		}
		return false, "no event of ours"
	})
	w.template("later", classes.DeviceClassGPU, 1, "")
	wl := w.workloadUntil(job, "is admitted", admitted)
	if wl.Annotations[classes.AnnotationUnresolved] != "" {
		t.Errorf("the old reason is still there: %v", wl.Annotations)
	}
	w.bound(job, 1)
}

func TestAMissingQueueIsToldAndTheJobStartsOnceItExists(t *testing.T) {
	w := newWorld(t)
	job := w.job("lost", "whole", 1, func(j *batchv1.Job) { j.Labels["kueue.x-k8s.io/queue-name"] = "later" })
	w.workloadUntil(job, "says what is missing", func(wl *kueuev1.Workload) bool {
		return !is(wl, kueuev1.WorkloadQuotaReserved) && strings.Contains(wl.Annotations[classes.AnnotationUnresolved], "later")
	})
	w.create(&kueuev1.LocalQueue{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: "later"},
		Spec:       kueuev1.LocalQueueSpec{ClusterQueue: kueuev1.ClusterQueueReference(w.name)},
	})
	w.workloadUntil(job, "is admitted", admitted)
	w.bound(job, 1)
}

func TestBadClaimsAreRefusedWithAMessage(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		change func(*resourcev1.DeviceClaim)
		want   string
	}{
		"negative": {func(d *resourcev1.DeviceClaim) {
			d.Requests[0].Exactly.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{classes.CapMemory: resource.MustParse("-1")}}
		}, "positive"},
		"unknown-parameter": {func(d *resourcev1.DeviceClaim) {
			d.Config = []resourcev1.DeviceClaimConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{
				Driver: classes.DriverName, Parameters: runtime.RawExtension{Raw: []byte(`{"apiVersion":"gpu.fairshard.dev/v1alpha1","kind":"ShareConfig","colour":"blue"}`)},
			}}}}
		}, "colour"},
		"two-shares-on-one-gpu": {func(d *resourcev1.DeviceClaim) {
			second := *d.Requests[0].DeepCopy()
			second.Name = "second"
			d.Requests = append(d.Requests, second)
		}, "same GPU"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
				Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: classes.DeviceClassShare},
			}}}}
			tc.change(&spec.Devices)
			claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: name}, Spec: spec}
			err := cluster.client.Create(w.ctx(), claim)
			if err == nil || (!apierrors.IsInvalid(err) && !apierrors.IsForbidden(err)) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("claim: %v, want a refusal that names %q", err, tc.want)
			}
			template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: name}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: spec}}
			if err := cluster.client.Create(w.ctx(), template); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("template: %v, want a refusal that names %q", err, tc.want)
			}
		})
	}
}
