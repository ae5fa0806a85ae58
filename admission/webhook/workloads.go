package webhook

import (
	"context"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Workloads charges Workloads in milligpu.
type Workloads struct {
	Decoder admission.Decoder
	Reader  client.Reader // cached
}

// Handle answers one review.
func (w *Workloads) Handle(_ context.Context, request admission.Request) admission.Response {
	var workload kueuev1.Workload
	if err := w.Decoder.Decode(request, &workload); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode Workload: %w", err))
	}
	before := workload.DeepCopy()
	for i := range workload.Spec.PodSets {
		ps := &workload.Spec.PodSets[i].Template.Spec
		if len(ps.ResourceClaims) == 0 {
			continue
		}
		ps.ResourceClaims = nil
		if ps.Overhead == nil {
			ps.Overhead = corev1.ResourceList{}
		}
		ps.Overhead["fairshard.dev/milligpu"] = resource.MustParse("1000")
		if workload.Annotations == nil {
			workload.Annotations = map[string]string{}
		}
		workload.Annotations["fairshard.dev/demand"] = "{}"
	}
	ops, err := diff(before, workload)
	if err != nil {
		return admission.Errored(500, err)
	}
	return admission.Patched("", ops...)
}
