package kueue

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/classes"
)

func cost(w *kueuev1.Workload, i int) int64 {
	amount := w.Spec.PodSets[i].Template.Spec.Overhead[classes.ResourceMilliGPU]
	return amount.Value()
}

func halfWorld() *world {
	w := newWorld()
	w.templates["t"] = exactly(shareClass, ", capacity: {requests: {memory: 40Gi}}")
	return w
}

func TestAChargeStripsClaimsAndKeepsTheRest(t *testing.T) {
	job := workload("t")
	job.Spec.PodSets = append(job.Spec.PodSets, kueuev1.PodSet{Name: "driver", Count: 1})
	spec := &job.Spec.PodSets[0].Template.Spec
	spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
	spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "t"}}
	before := job.DeepCopy()
	charge(t, job, halfWorld())
	if cost(job, 0) != 500 || len(spec.ResourceClaims) > 0 || job.Spec.PodSets[1].Template.Spec.Overhead != nil {
		t.Fatalf("charged %d, claims %v, driver's overhead %v", cost(job, 0), spec.ResourceClaims, job.Spec.PodSets[1].Template.Spec.Overhead)
	}
	if !apiequality.Semantic.DeepEqual(spec.Containers, before.Spec.PodSets[0].Template.Spec.Containers) {
		t.Error("containers changed")
	}
	if cpu := spec.Overhead[corev1.ResourceCPU]; cpu.String() != "250m" {
		t.Error("the RuntimeClass's overhead is gone")
	}
}

func TestChargingTwiceChangesNothing(t *testing.T) {
	for name, w := range map[string]*world{"resolved": halfWorld(), "unresolved": newWorld()} {
		job := workload("t")
		charge(t, job, w)
		once := job.DeepCopy()
		charge(t, job, w)
		if !apiequality.Semantic.DeepEqual(job, once) {
			t.Errorf("%s: %v became %v", name, once, job)
		}
	}
}

func TestAnUnknownDemandIsBeyondAnyQuotaUntilItIsKnown(t *testing.T) {
	w, job := newWorld(), workload("t")
	charge(t, job, w)
	if cost(job, 0) != classes.UnresolvedMilliGPU || !strings.HasPrefix(job.Annotations[classes.AnnotationUnresolved], "TemplateNotFound: ") {
		t.Fatalf("charged %d, %v", cost(job, 0), job.Annotations)
	}
	w.templates["t"] = exactly(gpuClass, "")
	charge(t, job, w)
	if _, still := job.Annotations[classes.AnnotationUnresolved]; still || cost(job, 0) != 1000 {
		t.Fatalf("charged %d, %v", cost(job, 0), job.Annotations)
	}
}

// Kueue replaces the whole spec of a Workload that does not match its job any
// more, and keeps the annotations.
func TestASpecThatKueueRewroteIsChargedAnew(t *testing.T) {
	w, job := halfWorld(), workload("t")
	w.templates["big"] = exactly(gpuClass, ", count: 2")
	charge(t, job, w)
	job.Spec = workload("big").Spec
	charge(t, job, w)
	if cost(job, 0) != 2000 {
		t.Errorf("other claims: charged %d, want 2000", cost(job, 0))
	}
	job.Spec = workload().Spec
	charge(t, job, w)
	if cost(job, 0) != 0 || len(job.Annotations) > 0 || len(job.Spec.PodSets[0].Template.Spec.ResourceClaims) > 0 {
		t.Errorf("no claims any more: charged %d, claims %v, annotations %v", cost(job, 0), job.Spec.PodSets[0].Template.Spec.ResourceClaims, job.Annotations)
	}
}

func TestALostAnnotationNeverMakesAChargeFree(t *testing.T) {
	w, job := halfWorld(), workload("t")
	charge(t, job, w)
	job.Annotations[classes.AnnotationDemand] = "{"
	for range 2 {
		charge(t, job, w)
		if cost(job, 0) != classes.UnresolvedMilliGPU || !strings.HasPrefix(job.Annotations[classes.AnnotationUnresolved], "InvalidRequest: ") {
			t.Fatalf("charged %d, %v", cost(job, 0), job.Annotations)
		}
	}
}

func TestMovedToAQueueThatIsNotOursItGetsItsClaimsBack(t *testing.T) {
	w, job := halfWorld(), workload("t")
	before := job.DeepCopy()
	charge(t, job, w)
	w.queue = clusterQueue("q", "another", "h100")
	charge(t, job, w)
	if !apiequality.Semantic.DeepEqual(job.Spec, before.Spec) || len(job.Annotations) > 0 {
		t.Fatalf("got %v", job)
	}
}

func TestOnlyUnreservedWorkOfThisClusterIsChargeable(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*kueuev1.Workload)
		want   bool
	}{
		"new":      {func(*kueuev1.Workload) {}, true},
		"admitted": {func(w *kueuev1.Workload) { w.Status.Admission = &kueuev1.Admission{} }, false},
		"reserved": {func(w *kueuev1.Workload) {
			w.Status.Conditions = []metav1.Condition{{Type: kueuev1.WorkloadQuotaReserved, Status: metav1.ConditionTrue}}
		}, false},
		"evicted": {func(w *kueuev1.Workload) {
			w.Status.Conditions = []metav1.Condition{{Type: kueuev1.WorkloadQuotaReserved, Status: metav1.ConditionFalse}}
		}, true},
		"a clone": {func(w *kueuev1.Workload) { w.Labels = map[string]string{kueuev1.MultiKueueOriginLabel: "origin"} }, false},
	} {
		w := workload("t")
		tc.change(w)
		if Chargeable(w) != tc.want {
			t.Errorf("%s: want %t", name, tc.want)
		}
	}
}

func FuzzDecodeDemand(f *testing.F) {
	f.Add(`{"version":1,"podSets":[{"name":"main","requests":[{"kind":"share","count":8,"bytes":1,"apart":1}],"claims":[{"name":"c","resourceClaimTemplateName":"t"}]}]}`)
	f.Add(`{"version":1,"podSets":null} {}`)
	f.Add(`{"version":2}`)
	f.Fuzz(func(t *testing.T, text string) {
		d, err := DecodeDemand(text)
		if err != nil {
			if len(d.PodSets) > 0 {
				t.Fatal("an error comes with half a demand")
			}
			return
		}
		encoded, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeDemand(encoded)
		if err != nil {
			t.Fatalf("%s does not decode: %v", encoded, err)
		}
		if second, _ := again.Encode(); second != encoded {
			t.Fatalf("%s became %s", encoded, second)
		}
		for _, set := range again.PodSets {
			set.values()
		}
	})
}
