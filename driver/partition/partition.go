package partition

import (
	"fmt"
	"slices"

	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
	"github.com/fairshard/fairshard/driver/inventory"
)

// Limits of the ResourceSlice API that a Layout keeps.
const (
	// MaxDevicesPerSlice is what a slice may hold as soon as one of its devices
	// consumes counters or is tainted.
	MaxDevicesPerSlice = 64
	// MaxCounterSetsPerSlice is what a slice of shared counters may hold.
	MaxCounterSetsPerSlice = 8
)

// Counter is the one counter of every counter set: each offer takes it whole.
const Counter = "gpu"

// Config says how much of a GPU is offered to claims.
type Config struct {
	Step quantity.Bytes // shares are multiples of it, and at least one
	// Headroom stays free for what the driver allocates beside claims: the
	// larger of an amount and a part of the total.
	HeadroomBytes   quantity.Bytes
	HeadroomPercent int64
}

// Default is 256Mi steps and a headroom of 256Mi or 1 %.
func Default() Config {
	return Config{Step: 256 * quantity.MiB, HeadroomBytes: 256 * quantity.MiB, HeadroomPercent: 1}
}

// Offer is one device that the node publishes.
type Offer struct {
	Name       string // DNS label, from the PCI address
	Kind       string // classes.DeviceTypeGPU or classes.DeviceTypeShare
	GPU        inventory.GPU
	CounterSet string         // consumed whole
	Memory     quantity.Bytes // usable bytes, a multiple of Step
	Step       quantity.Bytes // share requests round up to a multiple of it
}

// Skipped is a GPU that offers nothing, and why.
type Skipped struct {
	GPU    inventory.GPU
	Reason string
}

// Layout is everything a node publishes, in published order.
type Layout struct {
	DriverVersion string
	CounterSets   []string // one per GPU, ascending by PCI address
	Shares        []Offer  // ascending
	Wholes        []Offer  // descending
	Skipped       []Skipped
}

// Build lays out what the GPUs of inv offer. A GPU in MIG mode offers neither
// itself nor shares; one with less usable memory than a step offers nothing.
func Build(inv inventory.Inventory, config Config) Layout {
	layout := Layout{DriverVersion: inv.DriverVersion}
	for _, gpu := range inv.GPUs {
		usable := Usable(gpu, config)
		switch {
		case gpu.MIGEnabled:
			layout.Skipped = append(layout.Skipped, Skipped{gpu, "it is in MIG mode, which excludes whole GPU and shares"})
			continue
		case usable < config.Step || usable <= 0:
			reason := fmt.Sprintf("its usable memory is below one step of %s: total %s, reserved %s", config.Step, gpu.Total, gpu.Reserved)
			layout.Skipped = append(layout.Skipped, Skipped{gpu, reason})
			continue
		}
		base := gpu.DeviceBase()
		offer := Offer{Name: base, Kind: classes.DeviceTypeGPU, GPU: gpu, CounterSet: base, Memory: usable, Step: config.Step}
		layout.CounterSets = append(layout.CounterSets, base)
		layout.Wholes = append(layout.Wholes, offer)
		offer.Name, offer.Kind = base+"-"+classes.DeviceTypeShare, classes.DeviceTypeShare
		layout.Shares = append(layout.Shares, offer)
	}
	slices.Reverse(layout.Wholes)
	return layout
}

// Usable returns the bytes of a GPU that claims can have: its total less what
// the driver reserves less the headroom, rounded down to the step.
//
// Example: an H100 of 81559Mi with 551Mi reserved and the default headroom
// (1 %, 815Mi) has 80193Mi left, which is 80128Mi (78.25Gi) in steps of 256Mi:
// twice 40G (38400Mi after rounding), but not twice 40Gi.
func Usable(gpu inventory.GPU, config Config) quantity.Bytes {
	headroom := max(config.HeadroomBytes, gpu.Total/100*quantity.Bytes(config.HeadroomPercent))
	return gpu.Total.Sub(gpu.Reserved).Sub(headroom).RoundDown(config.Step)
}

// Slices cuts offers into pieces that fit one ResourceSlice each, in order.
func Slices(offers []Offer) [][]Offer {
	return slices.Collect(slices.Chunk(offers, MaxDevicesPerSlice))
}

// CounterSlices cuts counter sets into pieces that fit one ResourceSlice each.
func CounterSlices(sets []string) [][]string {
	return slices.Collect(slices.Chunk(sets, MaxCounterSetsPerSlice))
}
