package inventory

import (
	"cmp"
	"slices"
	"strings"

	"github.com/fairshard/fairshard/classes/quantity"
)

// GPU is one physical GPU as the driver library describes it.
type GPU struct {
	UUID              string         // "GPU-7277883e-ce1e-3b6e-6cc1-6d52e80cdb86"; the identity
	PCIBusID          string         // "0000:17:00.0": four hex digits of domain, lower case
	Minor             int            // device node number: /dev/nvidia<Minor>; not stable over reboots
	ProductName       string         // "NVIDIA H100 80GB HBM3"
	Architecture      string         // "Hopper"
	ComputeCapability string         // "9.0"
	NUMANode          int            // -1 when the platform does not say
	Total             quantity.Bytes // all memory, as NVML reports it
	Reserved          quantity.Bytes // what the driver keeps for itself
	MIGCapable        bool
	MIGEnabled        bool // in MIG mode: no whole GPU and no shares
}

// Inventory is every GPU of a node, sorted by PCI address.
type Inventory struct {
	DriverVersion string // "580.65.6"; the same for every GPU of a node
	GPUs          []GPU
}

// New sorts gpus by PCI address (UUID breaks ties) and returns them as an Inventory.
func New(driverVersion string, gpus []GPU) Inventory {
	sorted := slices.Clone(gpus)
	slices.SortFunc(sorted, func(a, b GPU) int {
		return cmp.Or(strings.Compare(a.PCIBusID, b.PCIBusID), strings.Compare(a.UUID, b.UUID))
	})
	return Inventory{DriverVersion: driverVersion, GPUs: sorted}
}

// Equal reports whether a and b describe the same hardware.
func (a Inventory) Equal(b Inventory) bool {
	return a.DriverVersion == b.DriverVersion && slices.Equal(a.GPUs, b.GPUs)
}

// ByUUID returns the GPU with that UUID.
func (a Inventory) ByUUID(uuid string) (GPU, bool) {
	i := slices.IndexFunc(a.GPUs, func(g GPU) bool { return g.UUID == uuid })
	if i < 0 {
		return GPU{}, false
	}
	return a.GPUs[i], true
}

// DeviceBase returns the name that a GPU's devices start with, from its PCI
// address: "0000:17:00.0" gives "gpu-0000-17-00-0". It survives reboots and
// driver restarts, unlike index and minor number.
func (g GPU) DeviceBase() string {
	return "gpu-" + strings.NewReplacer(":", "-", ".", "-").Replace(strings.ToLower(g.PCIBusID))
}
