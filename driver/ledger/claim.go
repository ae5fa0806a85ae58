package ledger

import (
	"slices"

	"github.com/fairshard/fairshard/classes/quantity"
	"github.com/fairshard/fairshard/driver/isolation"
)

// Kind says how a device uses its GPU.
type Kind string

// The kinds of devices.
const (
	KindShare Kind = "share" // Bytes of the GPU's memory
	KindWhole Kind = "gpu"   // the GPU alone
	KindAdmin Kind = "admin" // sees the GPU, holds nothing (admin access)
)

// Device is one allocated device of a claim. Comparable with ==.
type Device struct {
	Request string // request of the claim, "parent/alternative" for an alternative
	Pool    string
	Name    string // device name in the slice
	ShareID string // set by the scheduler for shares
	Kind    Kind
	UUID    string         // of the GPU, when it was allocated
	Minor   int            // device node number; may change over a reboot
	Bytes   quantity.Bytes // of a share; 0 otherwise
}

// sameAllocation ignores what the node, not the scheduler, decided.
func (d Device) sameAllocation(o Device) bool {
	d.Minor, o.Minor, d.UUID, o.UUID = 0, 0, "", ""
	return d == o
}

// Claim is a claim with the devices of our driver, in the order of its allocation.
type Claim struct {
	UID       string
	Namespace string
	Name      string
	Devices   []Device
}

// Equal reports whether a and b are the same in everything.
func (c Claim) Equal(o Claim) bool {
	return c.UID == o.UID && c.Namespace == o.Namespace && c.Name == o.Name && slices.Equal(c.Devices, o.Devices)
}

// SameAllocation reports whether o is the same claim with the same allocated devices.
func (c Claim) SameAllocation(o Claim) bool {
	return c.UID == o.UID && slices.EqualFunc(c.Devices, o.Devices, Device.sameAllocation)
}

// Limits is what the claim's containers are told. Admin access has none.
func (c Claim) Limits() isolation.Limits {
	var gpus []isolation.Limit
	for _, d := range c.Devices {
		switch d.Kind {
		case KindShare:
			gpus = append(gpus, isolation.Limit{UUID: d.UUID, Bytes: d.Bytes})
		case KindWhole, KindAdmin:
			gpus = append(gpus, isolation.Limit{UUID: d.UUID, Whole: true})
		}
	}
	return isolation.New(c.UID, c.Namespace, c.Name, gpus)
}

// FromLimits rebuilds what a claim holds from its limits file, for a claim whose
// record is damaged. Requests and device names are lost, so it can be guarded
// and released, but not answered.
func FromLimits(l isolation.Limits) Claim {
	c := Claim{UID: l.ClaimUID, Namespace: l.Namespace, Name: l.Name}
	for _, g := range l.GPUs {
		d := Device{UUID: g.UUID, Kind: KindShare, Bytes: g.Bytes}
		if g.Whole {
			d.Kind = KindWhole
		}
		c.Devices = append(c.Devices, d)
	}
	return c
}

// Phase is where a claim is in its life.
type Phase string

// The phases.
const (
	PhasePreparing Phase = "Preparing" // intent recorded; files may be partly there
	PhasePrepared  Phase = "Prepared"  // answered to the kubelet
	PhaseLost      Phase = "Lost"      // its record was damaged; held until unprepared or prepared again
)

// Entry is one claim of the node.
type Entry struct {
	Claim Claim
	Phase Phase
}
