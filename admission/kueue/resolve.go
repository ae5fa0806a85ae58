package kueue

import (
	"errors"
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
	"github.com/fairshard/fairshard/classes/v1alpha1"
)

const (
	// maxDevices is the most devices that kube-scheduler allocates to a claim. It
	// also keeps a charge far from overflow.
	maxDevices = resourcev1.AllocationResultsMaxSize
	// uuidAttribute is what a constraint names to spread shares over GPUs.
	uuidAttribute = resourcev1.FullyQualifiedName(classes.DriverName + "/" + classes.AttrUUID)
)

// Lookup finds the objects that a Workload names; nil means that it does not exist.
type Lookup interface {
	Template(namespace, name string) *resourcev1.ResourceClaimTemplate
	Claim(namespace, name string) *resourcev1.ResourceClaim
	Class(name string) *resourcev1.DeviceClass
	LocalQueue(namespace, name string) *kueuev1.LocalQueue
	ClusterQueue(name string) *kueuev1.ClusterQueue
	Flavor(name string) *kueuev1.ResourceFlavor
	// Ours reports whether this controller answers an AdmissionCheck.
	Ours(check kueuev1.AdmissionCheckReference) bool
	Nodes() []corev1.Node
	Slices() []resourcev1.ResourceSlice
}

// Refusal says why a demand cannot be resolved now. Detail names the object
// that is missing or wrong, as the middle of a sentence.
type Refusal struct {
	Reason classes.Reason
	Detail string
}

// String is the text of classes.AnnotationUnresolved.
func (r Refusal) String() string { return string(r.Reason) + ": " + r.Detail }

// Answer is what Resolve found.
type Answer struct {
	Ours    bool                // false: nothing in the Workload asks for our devices, or its queue is not ours
	Demand  Demand              // the claims are kept even when the requests are unknown; zero if the kept ones are damaged
	PerPod  []quantity.MilliGPU // charge of one pod, per podSet
	Refusal *Refusal            // the demand is unknown; PerPod is empty
}

// Resolve finds what w asks for and what that costs in its queue's pool.
func Resolve(w *kueuev1.Workload, lookup Lookup) Answer {
	r := resolver{workload: w, lookup: lookup}
	if charged(w) && !readable(w) {
		return Answer{Ours: true, Refusal: &Refusal{classes.ReasonInvalidRequest, "annotation " + classes.AnnotationDemand + " is damaged, so what the job asks for is unknown; create the job again"}}
	}
	answer := Answer{Demand: Demand{Version: demandVersion}}
	for i := range w.Spec.PodSets {
		set := r.podSet(&w.Spec.PodSets[i])
		answer.Demand.PodSets = append(answer.Demand.PodSets, set)
	}
	if !r.ours {
		return Answer{}
	}
	pool, managed, refusal := poolOf(w, lookup)
	if !managed {
		return Answer{}
	}
	answer.Ours, answer.Refusal = true, r.refusal
	if answer.Refusal == nil {
		answer.Refusal = refusal
	}
	if answer.Refusal != nil {
		return answer
	}
	for _, set := range answer.Demand.PodSets {
		answer.PerPod = append(answer.PerPod, pool.cost(set.values()))
	}
	return answer
}

// resolver collects what the claims of one Workload ask for.
type resolver struct {
	workload *kueuev1.Workload
	lookup   Lookup
	ours     bool // something asks for our devices, or may do so once it exists
	refusal  *Refusal
}

// refuse keeps the first refusal.
func (r *resolver) refuse(reason classes.Reason, format string, args ...any) {
	if r.refusal == nil {
		r.refusal = &Refusal{Reason: reason, Detail: fmt.Sprintf(format, args...)}
	}
}

func (r *resolver) podSet(set *kueuev1.PodSet) PodSetDemand {
	demand := PodSetDemand{Name: string(set.Name), Claims: ClaimsOf(r.workload, set)}
	for i, claim := range demand.Claims {
		if spec := r.claimSpec(set, claim); spec != nil {
			demand.Requests = append(demand.Requests, keepApart(r.requests(claim.Name, spec), i+1)...)
		}
	}
	n := extendedGPUs(&set.Template.Spec)
	if n > maxDevices {
		r.refuse(classes.ReasonInvalidRequest, "a pod of podSet %s asks for %d %s, it can get at most %d", set.Name, n, classes.ExtendedResourceGPU, maxDevices)
	}
	if n > 0 {
		r.ours = true
		demand.Requests = append(demand.Requests, Request{Kind: kindGPU, Count: int(min(n, maxDevices))})
	}
	return demand
}

// ClaimsOf returns the pod-level claims of a podSet: those in its template, or
// those that an earlier charge stripped from it. When Kueue rewrites the spec
// from a changed job, the charge is gone and what was stripped before is void.
func ClaimsOf(w *kueuev1.Workload, set *kueuev1.PodSet) []corev1.PodResourceClaim {
	if len(set.Template.Spec.ResourceClaims) > 0 || !charged(w) {
		return set.Template.Spec.ResourceClaims
	}
	demand, err := DecodeDemand(w.Annotations[classes.AnnotationDemand])
	if err != nil {
		return nil
	}
	return demand.podSet(string(set.Name)).Claims
}

// charged reports whether the podSets of w carry a charge now: then their
// claims are in the demand and not in the templates.
func charged(w *kueuev1.Workload) bool {
	return slices.ContainsFunc(w.Spec.PodSets, func(set kueuev1.PodSet) bool {
		amount := set.Template.Spec.Overhead[classes.ResourceMilliGPU]
		return !amount.IsZero()
	})
}

func readable(w *kueuev1.Workload) bool {
	_, err := DecodeDemand(w.Annotations[classes.AnnotationDemand])
	return err == nil
}

// claimSpec returns the spec behind a pod's claim, or nil after a refusal.
func (r *resolver) claimSpec(set *kueuev1.PodSet, claim corev1.PodResourceClaim) *resourcev1.ResourceClaimSpec {
	namespace := r.workload.Namespace
	if name := claim.ResourceClaimTemplateName; name != nil {
		if template := r.lookup.Template(namespace, *name); template != nil {
			return &template.Spec.Spec
		}
		r.ours = true // unknown yet: it must not start before we know
		r.refuse(classes.ReasonTemplateNotFound, "ResourceClaimTemplate %s does not exist in namespace %s", *name, namespace)
		return nil
	}
	if claim.ResourceClaimName == nil {
		return nil
	}
	found := r.lookup.Claim(namespace, *claim.ResourceClaimName)
	if found == nil {
		r.ours = true
		r.refuse(classes.ReasonClaimNotFound, "ResourceClaim %s does not exist in namespace %s", *claim.ResourceClaimName, namespace)
		return nil
	}
	if set.Count > 1 && asksUs(&found.Spec) {
		r.refuse(classes.ReasonUnsupportedRequest, "the %d pods of podSet %s would share ResourceClaim %s; use a ResourceClaimTemplate, so that each pod has its own", set.Count, set.Name, found.Name)
	}
	return &found.Spec
}

// requests translates the requests for our classes; others' are ignored.
func (r *resolver) requests(claim string, spec *resourcev1.ResourceClaimSpec) []Request {
	if !asksUs(spec) {
		return nil
	}
	r.ours = true
	if errs := v1alpha1.ValidateClaimSpec(spec); len(errs) > 0 {
		r.refuse(classes.ReasonInvalidRequest, "claim %s: %v", claim, errors.Join(errs...))
		return nil
	}
	if !constraintsKnown(spec) {
		r.refuse(classes.ReasonUnsupportedRequest, "claim %s: constraints other than distinctAttribute %s are not supported yet in a queue", claim, uuidAttribute)
		return nil
	}
	var out []Request
	devices := 0
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if request.Exactly == nil {
			r.refuse(classes.ReasonUnsupportedRequest, "claim %s, request %s: firstAvailable is not supported yet; use exactly", claim, request.Name)
			continue
		}
		if !ourClass(request.Exactly.DeviceClassName) {
			continue
		}
		if translated, ok := r.exactly(claim, request); ok {
			out = append(out, translated)
			devices += min(translated.Count, math.MaxInt32) // no overflow: a claim has 32 requests at most
		}
	}
	if devices > maxDevices {
		r.refuse(classes.ReasonInvalidRequest, "claim %s asks for %d devices, a claim holds at most %d", claim, devices, maxDevices)
	}
	return out
}

// constraintsKnown reports whether the planner can keep every constraint over
// requests for our classes: only the one that spreads shares over GPUs.
func constraintsKnown(spec *resourcev1.ResourceClaimSpec) bool {
	ours := map[string]bool{}
	for _, request := range spec.Devices.Requests {
		ours[request.Name] = request.Exactly != nil && ourClass(request.Exactly.DeviceClassName)
	}
	return !slices.ContainsFunc(spec.Devices.Constraints, func(c resourcev1.DeviceConstraint) bool {
		concernsUs := len(c.Requests) == 0 || slices.ContainsFunc(c.Requests, func(name string) bool { return ours[name] })
		return concernsUs && (c.DistinctAttribute == nil || *c.DistinctAttribute != uuidAttribute)
	})
}

// keepApart marks the share requests of one claim, if there are several: the
// claim's rules demand that they take distinct GPUs.
func keepApart(requests []Request, group int) []Request {
	isShare := func(r Request) bool { return r.Kind == kindShare }
	first := slices.IndexFunc(requests, isShare)
	if first < 0 || !slices.ContainsFunc(requests[first+1:], isShare) {
		return requests
	}
	for i := range requests {
		if isShare(requests[i]) {
			requests[i].Apart = group
		}
	}
	return requests
}

func (r *resolver) exactly(claim string, request *resourcev1.DeviceRequest) (Request, bool) {
	e := request.Exactly
	switch {
	case r.lookup.Class(e.DeviceClassName) == nil:
		r.refuse(classes.ReasonClassNotFound, "DeviceClass %s does not exist", e.DeviceClassName)
		return Request{}, false
	case e.AllocationMode == resourcev1.DeviceAllocationModeAll:
		r.refuse(classes.ReasonUnsupportedRequest, "claim %s, request %s: allocationMode All is not supported; use a count", claim, request.Name)
		return Request{}, false
	case e.AdminAccess != nil && *e.AdminAccess:
		r.refuse(classes.ReasonUnsupportedRequest, "claim %s, request %s: admin access cannot be queued; run it without a queue", claim, request.Name)
		return Request{}, false
	case len(e.Selectors) > 0:
		r.refuse(classes.ReasonUnsupportedRequest, "claim %s, request %s: selectors are not supported yet in a queue", claim, request.Name)
		return Request{}, false
	}
	out := Request{Kind: kindGPU, Count: int(max(e.Count, 1))}
	if e.DeviceClassName == classes.DeviceClassShare {
		out.Kind, out.Bytes = kindShare, memory(e.Capacity)
	}
	return out, true
}

// memory is the requested bytes per device, 0 if none are named. Validated before.
func memory(capacity *resourcev1.CapacityRequirements) int64 {
	if capacity == nil {
		return 0
	}
	for _, name := range []resourcev1.QualifiedName{classes.CapMemory, classes.DriverName + "/" + classes.CapMemory} {
		if amount, named := capacity.Requests[name]; named {
			return max(amount.Value(), 1) // an explicit 0 takes the least there is, not everything
		}
	}
	return 0
}

func asksUs(spec *resourcev1.ResourceClaimSpec) bool {
	for _, request := range spec.Devices.Requests {
		if request.Exactly != nil && ourClass(request.Exactly.DeviceClassName) {
			return true
		}
		for _, alternative := range request.FirstAvailable {
			if ourClass(alternative.DeviceClassName) {
				return true
			}
		}
	}
	return false
}

func ourClass(name string) bool {
	return name == classes.DeviceClassGPU || name == classes.DeviceClassShare
}

// extendedGPUs is the number of GPUs that a pod asks for as an extended
// resource, by the rules for init containers and sidecars.
func extendedGPUs(spec *corev1.PodSpec) int64 {
	total := resourcehelper.PodRequests(&corev1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{ExcludeOverhead: true})
	amount := total[classes.ExtendedResourceGPU]
	return amount.Value()
}

// cost is the charge of one pod.
func (p Pool) cost(requests []snapshot.Request) quantity.MilliGPU {
	var total quantity.MilliGPU
	device := snapshot.GPU{Usable: p.Usable, Step: p.Step, Min: p.Min}
	for _, r := range requests {
		each := quantity.PerGPU
		if r.Kind == snapshot.Share {
			each = quantity.OfShare(device.Charge(r.Bytes), p.Usable)
		}
		total = total.Add(each.Mul(int64(r.Count)))
	}
	return total
}
