package webhook

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/classes"
)

// reader is a cache with one queue, one pool and one RuntimeClass.
type reader struct {
	broken   bool
	template bool // the template "gpu" exists
}

func (r reader) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if r.broken {
		return errors.New("cache is not started")
	}
	switch o := object.(type) {
	case *kueuev1.LocalQueue:
		if key.Name != "queue" {
			return missing(key)
		}
		o.Spec.ClusterQueue = "queue"
	case *kueuev1.ClusterQueue:
		o.Spec.AdmissionChecksStrategy = &kueuev1.AdmissionChecksStrategy{AdmissionChecks: []kueuev1.AdmissionCheckStrategyRule{{Name: "ours"}}}
		o.Spec.ResourceGroups = []kueuev1.ResourceGroup{{Flavors: []kueuev1.FlavorQuotas{{
			Name: "pool", Resources: []kueuev1.ResourceQuota{{Name: classes.ResourceMilliGPU}},
		}}}}
	case *kueuev1.AdmissionCheck:
		o.Spec.ControllerName = classes.AdmissionControllerName
	case *kueuev1.ResourceFlavor:
	case *resourcev1.DeviceClass:
	case *resourcev1.ResourceClaimTemplate:
		if !r.template {
			return missing(key)
		}
		o.Spec.Spec = claimSpec("40Gi")
	case *nodev1.RuntimeClass:
		o.Overhead = &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}}
	default:
		return missing(key)
	}
	object.SetName(key.Name)
	return nil
}

func missing(key client.ObjectKey) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (r reader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch l := list.(type) {
	case *corev1.NodeList:
		l.Items = []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node"}}}
	case *resourcev1.ResourceSliceList:
		kind, memory := classes.DeviceTypeShare, resource.MustParse("80Gi")
		l.Items = []resourcev1.ResourceSlice{{Spec: resourcev1.ResourceSliceSpec{
			Driver: classes.DriverName, NodeName: new("node"), Pool: resourcev1.ResourcePool{Name: "node", ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{
				Name:       "gpu-0-share",
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{classes.AttrType: {StringValue: &kind}},
				Capacity:   map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{classes.CapMemory: {Value: memory}},
			}},
		}}}
	}
	return nil
}

func workload(change func(*kueuev1.Workload)) *kueuev1.Workload {
	w := &kueuev1.Workload{Spec: kueuev1.WorkloadSpec{QueueName: "queue", PodSets: []kueuev1.PodSet{{Name: "main", Count: 2}}}}
	w.Spec.PodSets[0].Template.Spec = corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Claims: []corev1.ResourceClaim{{Name: "gpu"}},
		}}},
		ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("gpu")}},
	}
	if change != nil {
		change(w)
	}
	return w
}

func handle(t *testing.T, r reader, w *kueuev1.Workload) (admission.Response, []string) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := kueuev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	handler := &Workloads{Decoder: admission.NewDecoder(scheme), Reader: r}
	response := handler.Handle(t.Context(), review(t, "Workload", w))
	var touched []string
	for _, operation := range response.Patches {
		touched = append(touched, operation.Operation+" "+operation.Path)
	}
	slices.Sort(touched)
	return response, touched
}

func TestAChargeTouchesOnlyClaimsOverheadAndAnnotations(t *testing.T) {
	response, touched := handle(t, reader{template: true}, workload(nil))
	want := []string{
		"add /metadata/annotations",
		"add /spec/podSets/0/template/spec/overhead",
		"remove /spec/podSets/0/template/spec/resourceClaims",
	}
	if !response.Allowed || !slices.Equal(touched, want) {
		t.Fatalf("allowed %t, touched %q, want %q", response.Allowed, touched, want)
	}
	for _, operation := range response.Patches {
		if text, _ := operation.MarshalJSON(); strings.HasSuffix(operation.Path, "overhead") && !strings.Contains(string(text), `"500"`) {
			t.Errorf("40Gi of 80Gi cost 500 milligpu, got %s", text)
		}
	}
}

func TestRuntimeClassOverheadIsAddedToACharge(t *testing.T) {
	response, _ := handle(t, reader{template: true}, workload(func(w *kueuev1.Workload) { w.Spec.PodSets[0].Template.Spec.RuntimeClassName = new("kata") }))
	found := false
	for _, operation := range response.Patches {
		text, _ := operation.MarshalJSON()
		found = found || strings.Contains(string(text), "250m") && strings.Contains(string(text), classes.ResourceMilliGPU)
	}
	if !found {
		t.Fatalf("patches %v", response.Patches)
	}
}

func TestAMissingTemplateIsChargedBeyondAnyQuotaWithAReason(t *testing.T) {
	response, _ := handle(t, reader{}, workload(nil))
	text := ""
	for _, operation := range response.Patches {
		part, _ := operation.MarshalJSON()
		text += string(part)
	}
	if !response.Allowed || !strings.Contains(text, classes.AnnotationUnresolved) || !strings.Contains(text, `"2G"`) {
		t.Fatalf("allowed %t, patches %s", response.Allowed, text)
	}
}

func TestReservedAndForeignWorkIsNeverTouched(t *testing.T) {
	for name, w := range map[string]*kueuev1.Workload{
		"reserved": workload(func(w *kueuev1.Workload) { w.Status.Admission = &kueuev1.Admission{ClusterQueue: "queue"} }),
		"no claims": workload(func(w *kueuev1.Workload) {
			w.Spec.PodSets[0].Template.Spec.ResourceClaims = nil
		}),
	} {
		if response, touched := handle(t, reader{template: true}, w); !response.Allowed || len(touched) > 0 {
			t.Errorf("%s: allowed %t, touched %q", name, response.Allowed, touched)
		}
	}
}

func TestWithoutCachesNothingIsLetThrough(t *testing.T) {
	response, _ := handle(t, reader{broken: true}, workload(nil))
	if response.Allowed || response.Result.Code != 500 || !strings.Contains(response.Result.Message, "cache is not started") ||
		!strings.Contains(response.Result.Message, "team/") {
		t.Fatalf("%+v", response.Result)
	}
}
