package webhook

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// Paths that are served.
const (
	MutatePath   = "/mutate-workload"
	ValidatePath = "/validate-claim"
)

// The matchConditions of the two webhooks. They keep running work and
// everybody else's work off the webhook, so they must neither fail on a
// missing field (that would refuse the object) nor miss anything of ours.
const (
	// unreserved: podSets are immutable from the reservation on, and a webhook
	// that changes a reserved Workload would block its every update.
	unreserved = `!has(object.status) || !has(object.status.admission)`

	// asksForDevices: a podSet names a claim or our extended resource, or the
	// Workload was charged before (its claims are stripped then).
	asksForDevices = `(has(object.metadata.annotations) && ` +
		`("fairshard.dev/demand" in object.metadata.annotations || "fairshard.dev/unresolved" in object.metadata.annotations)) || ` +
		`(has(object.spec.podSets) && object.spec.podSets.exists(p, has(p.template) && has(p.template.spec) && (` +
		`(has(p.template.spec.resourceClaims) && size(p.template.spec.resourceClaims) > 0) || ` +
		`(has(p.template.spec.containers) && p.template.spec.containers.exists(c, has(c.resources) && (` +
		`(has(c.resources.limits) && "fairshard.dev/gpu" in c.resources.limits) || ` +
		`(has(c.resources.requests) && "fairshard.dev/gpu" in c.resources.requests)))) || ` +
		`(has(p.template.spec.initContainers) && p.template.spec.initContainers.exists(c, has(c.resources) && (` +
		`(has(c.resources.limits) && "fairshard.dev/gpu" in c.resources.limits) || ` +
		`(has(c.resources.requests) && "fairshard.dev/gpu" in c.resources.requests)))))))`

	// namesOurDriver: the claim (or the template's claim) has opaque parameters
	// for our driver or one of our classes, also as one of several alternatives.
	namesOurDriver = `[object.spec, has(object.spec.spec) ? object.spec.spec : object.spec].exists(s, has(s.devices) && (` +
		`(has(s.devices.config) && s.devices.config.exists(c, has(c.opaque) && c.opaque.driver == "gpu.fairshard.dev")) || ` +
		`(has(s.devices.requests) && s.devices.requests.exists(r, ` +
		`(has(r.exactly) && r.exactly.deviceClassName in ["gpu.fairshard.dev", "gpu-share.fairshard.dev"]) || ` +
		`(has(r.firstAvailable) && r.firstAvailable.exists(a, a.deviceClassName in ["gpu.fairshard.dev", "gpu-share.fairshard.dev"]))))))`
)

// WorkloadConditions are the matchConditions of the Workload webhook.
func WorkloadConditions() []admissionv1.MatchCondition {
	return []admissionv1.MatchCondition{
		{Name: "unreserved", Expression: unreserved},
		{Name: "asks-for-devices", Expression: asksForDevices},
	}
}

// ClaimConditions are the matchConditions of the claim webhook.
func ClaimConditions() []admissionv1.MatchCondition {
	return []admissionv1.MatchCondition{{Name: "names-our-driver", Expression: namesOurDriver}}
}
