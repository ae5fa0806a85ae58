package webhook

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/fairshard/fairshard/classes"
)

func claimSpec(amount string) resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
		Name: "share",
		Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: classes.DeviceClassShare,
			Capacity: &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{
				classes.CapMemory: resource.MustParse(amount),
			}},
		},
	}}}}
}

func review(t *testing.T, kind string, object any) admission.Request {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Name: "mine", Namespace: "team", Operation: admissionv1.Create,
		Kind:   metav1.GroupVersionKind{Kind: kind},
		Object: runtime.RawExtension{Raw: raw},
	}}
}

func TestClaimsAreRefusedWithAMessage(t *testing.T) {
	handler := &Claims{Decoder: admission.NewDecoder(clientgoscheme.Scheme)}
	claim := resourcev1.ResourceClaim{Spec: claimSpec("20Gi")}
	if got := handler.Handle(t.Context(), review(t, "ResourceClaim", claim)); !got.Allowed {
		t.Fatalf("a good claim is refused: %v", got.Result)
	}
	claim.Spec = claimSpec("-1")
	got := handler.Handle(t.Context(), review(t, "ResourceClaim", claim))
	if got.Allowed || !strings.Contains(got.Result.Message, "positive") || !strings.Contains(got.Result.Message, `"mine"`) {
		t.Fatalf("a negative amount: %v", got.Result)
	}
	template := resourcev1.ResourceClaimTemplate{Spec: resourcev1.ResourceClaimTemplateSpec{Spec: claimSpec("0")}}
	got = handler.Handle(t.Context(), review(t, "ResourceClaimTemplate", template))
	if got.Allowed || !strings.HasPrefix(got.Result.Message, "spec.spec of ResourceClaimTemplate") {
		t.Fatalf("a template without memory: %v", got.Result)
	}
	if got := handler.Handle(t.Context(), review(t, "Pod", claim)); got.Allowed || got.Result.Code != 400 {
		t.Fatalf("another kind: %v", got.Result)
	}
}
