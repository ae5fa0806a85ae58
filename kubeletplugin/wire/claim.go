package wire

import (
	"errors"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
	"github.com/fairshard/fairshard/classes/v1alpha1"
	"github.com/fairshard/fairshard/driver/ledger"
)

// Fact is what the node knows about one published device.
type Fact struct {
	Kind   ledger.Kind
	UUID   string
	Minor  int
	Usable quantity.Bytes // what the GPU offers to claims
}

// Facts finds a published device by its name.
type Facts map[string]Fact

// FactsOf returns what a prepared claim recorded about its devices. They answer
// for it while the driver library is away.
func FactsOf(c ledger.Claim) Facts {
	facts := Facts{}
	for _, d := range c.Devices {
		facts[d.Name] = Fact{Kind: d.Kind, UUID: d.UUID, Minor: d.Minor, Usable: d.Bytes}
	}
	return facts
}

// Claim translates the devices of our driver that are allocated to c. pool is
// the pool of this node. Errors are read by users in their pod's events.
func Claim(c *resourcev1.ResourceClaim, pool string, facts Facts) (ledger.Claim, error) {
	claim := ledger.Claim{UID: string(c.UID), Namespace: c.Namespace, Name: c.Name}
	if c.Status.Allocation == nil {
		return ledger.Claim{}, errors.New("the claim is not allocated")
	}
	allocated := c.Status.Allocation.Devices
	for _, result := range allocated.Results {
		if result.Driver != classes.DriverName {
			continue
		}
		if err := checkConfig(allocated.Config, result); err != nil {
			return ledger.Claim{}, err
		}
		if result.Pool != pool {
			return ledger.Claim{}, fmt.Errorf("device %s is in pool %q, this node is %q", result.Device, result.Pool, pool)
		}
		fact, known := facts[result.Device]
		if !known {
			return ledger.Claim{}, fmt.Errorf("device %s is not on this node (any more): delete the pod so that it is scheduled again", result.Device)
		}
		claim.Devices = append(claim.Devices, device(result, fact))
	}
	return claim, nil
}

func checkConfig(configs []resourcev1.DeviceAllocationConfiguration, result resourcev1.DeviceRequestAllocationResult) error {
	for _, config := range resourceclaim.ConfigForResult(configs, result) {
		if config.Opaque.Driver != classes.DriverName {
			continue
		}
		if _, err := v1alpha1.Decode(config.Opaque.Parameters.Raw); err != nil {
			return fmt.Errorf("request %s: %w", result.Request, err)
		}
	}
	return nil
}

func device(result resourcev1.DeviceRequestAllocationResult, fact Fact) ledger.Device {
	d := ledger.Device{
		Request: result.Request, Pool: result.Pool, Name: result.Device,
		Kind: fact.Kind, UUID: fact.UUID, Minor: fact.Minor,
	}
	if result.ShareID != nil {
		d.ShareID = string(*result.ShareID)
	}
	switch {
	case result.AdminAccess != nil && *result.AdminAccess:
		d.Kind = ledger.KindAdmin
	case d.Kind == ledger.KindShare:
		d.Bytes = consumed(result, fact.Usable)
	}
	return d
}

// consumed is what the scheduler charged for a share; without a number it is everything.
func consumed(result resourcev1.DeviceRequestAllocationResult, everything quantity.Bytes) quantity.Bytes {
	for _, name := range []resourcev1.QualifiedName{classes.CapMemory, classes.DriverName + "/" + classes.CapMemory} {
		if amount, ok := result.ConsumedCapacity[name]; ok {
			return quantity.Bytes(amount.Value())
		}
	}
	return everything
}

// Holds reports whether c is the claim that was recorded, allocated as it was
// then. A damaged record knows no devices; then the UID decides.
func Holds(c *resourcev1.ResourceClaim, recorded ledger.Entry) bool {
	if string(c.UID) != recorded.Claim.UID || c.Status.Allocation == nil {
		return false
	}
	if recorded.Phase == ledger.PhaseLost {
		return true
	}
	var devices []ledger.Device
	for _, result := range c.Status.Allocation.Devices.Results {
		if result.Driver == classes.DriverName {
			devices = append(devices, device(result, Fact{}))
		}
	}
	return slices.EqualFunc(devices, recorded.Claim.Devices, func(a, b ledger.Device) bool {
		return a.Request == b.Request && a.Pool == b.Pool && a.Name == b.Name && a.ShareID == b.ShareID
	})
}
