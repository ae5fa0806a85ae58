package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/fairshard/fairshard/classes/v1alpha1"
)

// Claims refuses ResourceClaims and ResourceClaimTemplates that our driver
// could never prepare. It judges only what is ours in them.
type Claims struct {
	Decoder admission.Decoder
}

// Handle answers one review.
func (c *Claims) Handle(_ context.Context, request admission.Request) admission.Response {
	spec, where, err := c.spec(request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if problems := v1alpha1.ValidateClaimSpec(spec); len(problems) > 0 {
		return admission.Denied(fmt.Sprintf("%s of %s %q: %v", where, request.Kind.Kind, request.Name, errors.Join(problems...)))
	}
	return admission.Allowed("")
}

func (c *Claims) spec(request admission.Request) (*resourcev1.ResourceClaimSpec, string, error) {
	switch request.Kind.Kind {
	case "ResourceClaim":
		var claim resourcev1.ResourceClaim
		if err := c.Decoder.Decode(request, &claim); err != nil {
			return nil, "", fmt.Errorf("decode ResourceClaim: %w", err)
		}
		return &claim.Spec, "spec", nil
	case "ResourceClaimTemplate":
		var template resourcev1.ResourceClaimTemplate
		if err := c.Decoder.Decode(request, &template); err != nil {
			return nil, "", fmt.Errorf("decode ResourceClaimTemplate: %w", err)
		}
		return &template.Spec.Spec, "spec.spec", nil
	default:
		return nil, "", fmt.Errorf("validate claim: unexpected kind %q", request.Kind.Kind)
	}
}
