package webhook

import (
	"context"
	"fmt"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/kueue"
)

// Workloads charges Workloads in milligpu.
type Workloads struct {
	Decoder admission.Decoder
	Reader  client.Reader // cached
}

// Handle answers one review. What is not ours is let through unchanged; when
// the caches cannot be read nothing is let through, since it would be free.
func (w *Workloads) Handle(ctx context.Context, request admission.Request) admission.Response {
	var workload kueuev1.Workload
	if err := w.Decoder.Decode(request, &workload); err != nil {
		return admission.Errored(http.StatusBadRequest, fmt.Errorf("decode Workload: %w", err))
	}
	// On CREATE the namespace may be in the request only.
	workload.Namespace = request.Namespace
	if !kueue.Chargeable(&workload) {
		return admission.Allowed("")
	}
	charged := workload.DeepCopy()
	if err := w.charge(ctx, charged); err != nil {
		return admission.Errored(http.StatusInternalServerError,
			fmt.Errorf("charge Workload %s/%s for its GPUs: %w", workload.Namespace, workload.Name, err))
	}
	operations, err := diff(&workload, charged)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.Patched("", operations...)
}

func (w *Workloads) charge(ctx context.Context, workload *kueuev1.Workload) error {
	lookup := &lookup{ctx: ctx, reader: w.Reader}
	answer := kueue.Resolve(workload, lookup)
	if lookup.err != nil {
		return lookup.err
	}
	if err := kueue.Charge(workload, answer); err != nil {
		return err
	}
	return keepRuntimeOverhead(ctx, w.Reader, workload)
}
