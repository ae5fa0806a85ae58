package v1alpha1

import (
	"fmt"
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/fairshard/fairshard/classes"
)

// uuidAttribute is what a constraint names to keep requests on distinct GPUs.
const uuidAttribute = resourcev1.FullyQualifiedName(classes.DriverName + "/" + classes.AttrUUID)

// ask is one request or alternative for one of our classes.
type ask struct {
	path     string   // where it is in the spec
	request  string   // name of the request; of the parent for an alternative
	names    []string // the names that a constraint may use for it
	class    string
	capacity *resourcev1.CapacityRequirements
}

// ValidateClaimSpec returns everything in spec that our driver could not serve,
// nil if nothing. It judges only requests for our classes and parameters for
// our driver; the rest belongs to others.
func ValidateClaimSpec(spec *resourcev1.ResourceClaimSpec) []error {
	var errs []error
	for i, config := range spec.Devices.Config {
		if config.Opaque == nil || config.Opaque.Driver != classes.DriverName {
			continue
		}
		if _, err := Decode(config.Opaque.Parameters.Raw); err != nil {
			errs = append(errs, fmt.Errorf("devices.config[%d].opaque.parameters: %w", i, err))
		}
	}
	asks := asksOf(spec)
	for _, a := range asks {
		errs = append(errs, checkCapacity(a)...)
	}
	return append(errs, checkSpread(spec, asks)...)
}

func asksOf(spec *resourcev1.ResourceClaimSpec) []ask {
	var asks []ask
	for i, r := range spec.Devices.Requests {
		path := fmt.Sprintf("devices.requests[%d]", i)
		if e := r.Exactly; e != nil && ours(e.DeviceClassName) {
			asks = append(asks, ask{path + ".exactly", r.Name, []string{r.Name}, e.DeviceClassName, e.Capacity})
		}
		for j, s := range r.FirstAvailable {
			if ours(s.DeviceClassName) {
				names := []string{r.Name, r.Name + "/" + s.Name}
				asks = append(asks, ask{fmt.Sprintf("%s.firstAvailable[%d]", path, j), r.Name, names, s.DeviceClassName, s.Capacity})
			}
		}
	}
	return asks
}

func ours(class string) bool {
	return class == classes.DeviceClassGPU || class == classes.DeviceClassShare
}

// checkCapacity refuses amounts that no device can offer and names it does not have.
func checkCapacity(a ask) []error {
	if a.capacity == nil {
		return nil
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(a.capacity.Requests)) {
		amount := a.capacity.Requests[name]
		path := fmt.Sprintf("%s.capacity.requests[%s]", a.path, name)
		switch {
		case name != classes.CapMemory && name != classes.DriverName+"/"+classes.CapMemory:
			errs = append(errs, fmt.Errorf("%s: devices of class %s have no such capacity: use %q", path, a.class, classes.CapMemory))
		case amount.Sign() <= 0:
			errs = append(errs, fmt.Errorf("%s: is %s, which is not a positive amount: use for example 20Gi, or leave it out to take a whole GPU",
				path, amount.String()))
		}
	}
	return errs
}

// checkSpread refuses two share requests that may land on one GPU: the claim
// would look like two GPUs and be one. Alternatives of one request exclude each
// other, and a count never takes the same GPU twice.
func checkSpread(spec *resourcev1.ResourceClaimSpec, asks []ask) []error {
	var errs []error
	for i, a := range asks {
		for _, b := range asks[i+1:] {
			if a.class != classes.DeviceClassShare || b.class != a.class || a.request == b.request || spreads(spec, a, b) {
				continue
			}
			errs = append(errs, fmt.Errorf("%s and %s: both ask for a share and could land on the same GPU: "+
				"use one request with a count, or add to devices.constraints {requests: [%s, %s], distinctAttribute: %s}",
				a.path, b.path, a.request, b.request, uuidAttribute))
		}
	}
	return errs
}

// spreads reports whether a constraint keeps a and b on distinct GPUs.
func spreads(spec *resourcev1.ResourceClaimSpec, a, b ask) bool {
	return slices.ContainsFunc(spec.Devices.Constraints, func(c resourcev1.DeviceConstraint) bool {
		return c.DistinctAttribute != nil && *c.DistinctAttribute == uuidAttribute &&
			covers(c.Requests, a.names) && covers(c.Requests, b.names)
	})
}

// covers reports whether a constraint over requests (none = all) includes one of names.
func covers(requests, names []string) bool {
	return len(requests) == 0 || slices.ContainsFunc(names, func(n string) bool { return slices.Contains(requests, n) })
}
