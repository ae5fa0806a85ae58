package wire

import (
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/deviceattribute"

	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
	"github.com/fairshard/fairshard/driver/isolation"
	"github.com/fairshard/fairshard/driver/ledger"
	"github.com/fairshard/fairshard/driver/partition"
)

// Pool is what a node publishes: its slices, in the order in which the scheduler tries them.
type Pool struct{ Slices []Slice }

// Slice is one ResourceSlice: either counters or devices, as the API demands.
type Slice struct {
	Counters []resourcev1.CounterSet
	Devices  []resourcev1.Device
}

// PoolOf translates a layout: counters, then shares, then whole GPUs. A node that
// offers nothing publishes one empty slice, which tells that the driver is there.
func PoolOf(layout partition.Layout) Pool {
	var pool Pool
	for _, sets := range partition.CounterSlices(layout.CounterSets) {
		var s Slice
		for _, name := range sets {
			s.Counters = append(s.Counters, resourcev1.CounterSet{Name: name, Counters: oneGPU()})
		}
		pool.Slices = append(pool.Slices, s)
	}
	for _, offers := range [][]partition.Offer{layout.Shares, layout.Wholes} {
		for _, part := range partition.Slices(offers) {
			var s Slice
			for _, offer := range part {
				s.Devices = append(s.Devices, deviceOf(offer, layout.DriverVersion))
			}
			pool.Slices = append(pool.Slices, s)
		}
	}
	if len(pool.Slices) == 0 {
		pool.Slices = []Slice{{}}
	}
	return pool
}

// FactsOfLayout returns what Prepare has to know about the offers.
func FactsOfLayout(layout partition.Layout) Facts {
	facts := Facts{}
	for _, offers := range [][]partition.Offer{layout.Shares, layout.Wholes} {
		for _, o := range offers {
			kind := ledger.KindWhole
			if o.Kind == classes.DeviceTypeShare {
				kind = ledger.KindShare
			}
			facts[o.Name] = Fact{Kind: kind, UUID: o.GPU.UUID, Minor: o.GPU.Minor, Usable: o.Memory}
		}
	}
	return facts
}

// oneGPU is the counter of a GPU; every device of the GPU consumes all of it.
func oneGPU() map[string]resourcev1.Counter {
	return map[string]resourcev1.Counter{partition.Counter: {Value: *resource.NewQuantity(1, resource.DecimalSI)}}
}

func deviceOf(o partition.Offer, driverVersion string) resourcev1.Device {
	d := resourcev1.Device{
		Name:             o.Name,
		Attributes:       attributes(o, driverVersion),
		Capacity:         map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{classes.CapMemory: {Value: bytes(o.Memory)}},
		ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: o.CounterSet, Counters: oneGPU()}},
	}
	if o.Kind == classes.DeviceTypeShare {
		multiple := true
		d.AllowMultipleAllocations = &multiple
		d.Capacity[classes.CapMemory] = resourcev1.DeviceCapacity{Value: bytes(o.Memory), RequestPolicy: policy(o)}
	}
	return d
}

// policy rounds requests up to the step; a request without a number takes everything.
func policy(o partition.Offer) *resourcev1.CapacityRequestPolicy {
	all, step := bytes(o.Memory), bytes(o.Step)
	p := &resourcev1.CapacityRequestPolicy{Default: &all}
	if o.Memory < o.Step.Add(o.Step) {
		// The API wants room for two steps in a range.
		p.ValidValues = []resource.Quantity{all}
		return p
	}
	minimum := step.DeepCopy()
	p.ValidRange = &resourcev1.CapacityRequestPolicyRange{Min: &minimum, Step: &step}
	return p
}

func bytes(b quantity.Bytes) resource.Quantity {
	return *resource.NewQuantity(int64(b), resource.BinarySI)
}

func attributes(o partition.Offer, driverVersion string) map[resourcev1.QualifiedName]resourcev1.DeviceAttribute {
	attrs := map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}
	text := func(name resourcev1.QualifiedName, value string) {
		if value != "" {
			value = value[:min(len(value), resourcev1.DeviceAttributeMaxValueLength)]
			attrs[name] = resourcev1.DeviceAttribute{StringValue: &value}
		}
	}
	version := func(name resourcev1.QualifiedName, value string) {
		if v, ok := semver(value); ok {
			attrs[name] = resourcev1.DeviceAttribute{VersionValue: &v}
		}
	}
	text(classes.AttrType, o.Kind)
	text(classes.AttrUUID, o.GPU.UUID)
	text(classes.AttrProductName, o.GPU.ProductName)
	text(classes.AttrArchitecture, o.GPU.Architecture)
	version(classes.AttrComputeCapability, o.GPU.ComputeCapability)
	version(classes.AttrDriverVersion, driverVersion)
	if o.Kind == classes.DeviceTypeShare {
		text(classes.AttrIsolation, string(isolation.TierNone))
	}
	text(deviceattribute.StandardDeviceAttributePCIBusID, o.GPU.PCIBusID)
	if o.GPU.NUMANode >= 0 {
		numa := int64(o.GPU.NUMANode)
		attrs[deviceattribute.StandardDeviceAttributeNUMANode] = resourcev1.DeviceAttribute{IntValue: &numa}
	}
	return attrs
}

// semver makes three plain numbers of a dotted version, as the API wants them:
// "9.0" gives "9.0.0", "580.65.06" gives "580.65.6". One bad version would make
// the whole slice invalid, so what is no version is left out.
func semver(version string) (string, bool) {
	parts := strings.Split(version, ".")
	numbers := []string{"0", "0", "0"}
	for i, part := range parts[:min(len(parts), len(numbers))] {
		n, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return "", false
		}
		numbers[i] = strconv.FormatUint(n, 10)
	}
	return strings.Join(numbers, "."), true
}
