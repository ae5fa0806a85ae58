package gpusim

import (
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed profiles/*.yaml
var profiles embed.FS

// Profile describes the GPUs of one machine.
type Profile struct {
	Model             string   `json:"model"`
	Architecture      string   `json:"architecture"`
	ComputeCapability string   `json:"computeCapability"` // "9.0"
	DriverVersion     string   `json:"driverVersion"`
	CUDAVersion       int      `json:"cudaVersion"`
	MemoryMiB         uint64   `json:"memoryMiB"`   // total, as NVML reports it
	ReservedMiB       uint64   `json:"reservedMiB"` // kept by the driver
	PCIDeviceID       uint32   `json:"pciDeviceID"`
	MIGCapable        bool     `json:"migCapable"`
	MIGEnabled        bool     `json:"migEnabled,omitempty"`
	Count             int      `json:"count"`
	PCIAddresses      []string `json:"pciAddresses"`        // at least count
	NUMANodes         []int    `json:"numaNodes,omitempty"` // per address; -1 = unknown
	UUIDs             []string `json:"uuids,omitempty"`     // per address; made from the seed if left out
	// MIG is what the GPUs can be cut into.
	MIG []MIGProfile `json:"mig,omitempty"`
}

// Profiles lists the names of the profiles that come with the package.
func Profiles() []string {
	files, _ := fs.Glob(profiles, "profiles/*.yaml")
	for i, file := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(file, "profiles/"), ".yaml")
	}
	return files
}

// LoadProfile reads a profile by name, or from a file if name has a slash or a suffix.
func LoadProfile(name string) (Profile, error) {
	content, err := profiles.ReadFile("profiles/" + name + ".yaml")
	if err != nil {
		if !strings.ContainsAny(name, "/.") {
			return Profile{}, fmt.Errorf("load profile: no profile %q; there are %s, or give a file", name, strings.Join(Profiles(), ", "))
		}
		if content, err = os.ReadFile(name); err != nil {
			return Profile{}, fmt.Errorf("load profile: %w", err)
		}
	}
	return ParseProfile(content)
}

// ParseProfile decodes a profile strictly.
func ParseProfile(content []byte) (Profile, error) {
	var p Profile
	if err := yaml.UnmarshalStrict(content, &p); err != nil {
		return Profile{}, fmt.Errorf("parse profile: %w", err)
	}
	if err := p.validate(); err != nil {
		return Profile{}, fmt.Errorf("parse profile: %w", err)
	}
	return p, nil
}

func (p Profile) validate() error {
	var errs []error
	if p.Model == "" || p.DriverVersion == "" {
		errs = append(errs, errors.New("model and driverVersion must be given"))
	}
	if _, known := architectures[p.Architecture]; !known {
		errs = append(errs, fmt.Errorf("architecture %q is unknown", p.Architecture))
	}
	if p.MemoryMiB == 0 || p.ReservedMiB >= p.MemoryMiB || p.MemoryMiB > 1<<24 {
		errs = append(errs, fmt.Errorf("memoryMiB %d must be above reservedMiB %d and at most 16 TiB", p.MemoryMiB, p.ReservedMiB))
	}
	if p.Count < 0 || p.Count > len(p.PCIAddresses) || len(p.PCIAddresses) > MaxGPUs {
		errs = append(errs, fmt.Errorf("count %d needs as many pciAddresses (there are %d, at most %d)", p.Count, len(p.PCIAddresses), MaxGPUs))
	}
	if n := len(p.NUMANodes); n > 0 && n != len(p.PCIAddresses) {
		errs = append(errs, fmt.Errorf("numaNodes has %d entries for %d pciAddresses", n, len(p.PCIAddresses)))
	}
	if n := len(p.UUIDs); n > 0 && n != len(p.PCIAddresses) {
		errs = append(errs, fmt.Errorf("uuids has %d entries for %d pciAddresses", n, len(p.PCIAddresses)))
	}
	if _, _, err := p.computeCapability(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, p.validateAddresses(), p.validateEntries(), p.validateMIG())...)
}

// A GPU has 8 memory slices for MIG devices and 7 compute slices.
const (
	memorySlices  = 8
	computeSlices = 7
)

func (p Profile) validateMIG() error {
	var errs []error
	if len(p.MIG) > maxProfiles || len(p.MIG) > 0 && !p.MIGCapable {
		errs = append(errs, fmt.Errorf("mig has %d profiles: at most %d, and migCapable must be true", len(p.MIG), maxProfiles))
	}
	for _, m := range p.MIG {
		if m.Name == "" || m.Slices < 1 || m.Slices > computeSlices || m.Size < 1 || m.Size > memorySlices || m.Most < 1 || len(m.Placements) == 0 {
			errs = append(errs, fmt.Errorf("mig profile %q needs a name, slices 1 to %d, size 1 to %d, most and placements", m.Name, computeSlices, memorySlices))
		}
		if m.MemoryMiB > p.MemoryMiB {
			errs = append(errs, fmt.Errorf("mig profile %q has %d MiB, the GPU %d", m.Name, m.MemoryMiB, p.MemoryMiB))
		}
		for _, start := range m.Placements {
			if start >= memorySlices || start+m.Size > memorySlices {
				errs = append(errs, fmt.Errorf("mig profile %q at memory slice %d with %d leaves the GPU's %d", m.Name, start, m.Size, memorySlices))
			}
		}
	}
	return errors.Join(errs...)
}

// maxNUMANode is above any node number that Linux gives.
const maxNUMANode = 1023

// validateEntries checks what is listed beside the addresses.
func (p Profile) validateEntries() error {
	var errs []error
	for _, node := range p.NUMANodes {
		if node < -1 || node > maxNUMANode {
			errs = append(errs, fmt.Errorf("numaNode %d is not within -1 to %d", node, maxNUMANode))
		}
	}
	seen := map[string]bool{}
	for _, id := range p.UUIDs {
		if id == "" || seen[id] {
			errs = append(errs, fmt.Errorf("uuid %q is empty or comes twice", id))
		}
		seen[id] = true
	}
	return errors.Join(errs...)
}

func (p Profile) validateAddresses() error {
	var errs []error
	seen := map[string]bool{}
	for _, address := range p.PCIAddresses {
		if _, err := parsePCI(address); err != nil {
			errs = append(errs, err)
		}
		if seen[address] {
			errs = append(errs, fmt.Errorf("pciAddress %s comes twice", address))
		}
		seen[address] = true
	}
	return errors.Join(errs...)
}

func (p Profile) computeCapability() (major, minor int, err error) {
	left, right, found := strings.Cut(p.ComputeCapability, ".")
	major, errMajor := strconv.Atoi(left)
	minor, errMinor := strconv.Atoi(right)
	if !found || errMajor != nil || errMinor != nil || major < 0 || minor < 0 {
		return 0, 0, fmt.Errorf("computeCapability %q must look like \"9.0\"", p.ComputeCapability)
	}
	return major, minor, nil
}

// Node returns the machine that the profile describes, with count GPUs (below
// 1: the profile's count). The seed makes the UUIDs, so that two machines differ.
func (p Profile) Node(count int, seed string) (Node, error) {
	if count < 1 {
		count = p.Count
	}
	if count > len(p.PCIAddresses) {
		return Node{}, fmt.Errorf("make node: the profile has addresses for %d GPUs, not %d", len(p.PCIAddresses), count)
	}
	major, minor, err := p.computeCapability()
	if err != nil {
		return Node{}, fmt.Errorf("make node: %w", err)
	}
	node := Node{Driver: p.DriverVersion, NVML: "13." + p.DriverVersion, CUDAVersion: p.CUDAVersion}
	for i := range count {
		address, err := parsePCI(p.PCIAddresses[i])
		if err != nil {
			return Node{}, fmt.Errorf("make node: %w", err)
		}
		gpu := GPU{
			UUID: uuid(seed, i), Name: p.Model, TotalBytes: p.MemoryMiB << 20, Reserved: p.ReservedMiB << 20,
			Domain: address[0], Bus: address[1], Device: address[2], Minor: uint32(i), NUMA: -1,
			Architecture: p.Architecture, ComputeMajor: major, ComputeMinor: minor,
			MIGCapable: p.MIGCapable, MIGEnabled: p.MIGEnabled, PCIDeviceID: p.PCIDeviceID, Profiles: slices.Clone(p.MIG),
		}
		if len(p.NUMANodes) > 0 {
			gpu.NUMA = p.NUMANodes[i]
		}
		if len(p.UUIDs) > 0 {
			gpu.UUID = p.UUIDs[i]
		}
		node.GPUs = append(node.GPUs, gpu)
	}
	return node, nil
}

// uuid has the form of a GPU's UUID and depends only on seed and index.
func uuid(seed string, index int) string {
	sum := sha256.Sum256([]byte(seed + "/" + strconv.Itoa(index)))
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

var pciForm = regexp.MustCompile(`^([0-9a-f]{4}):([0-9a-f]{2}):([01][0-9a-f])\.0$`)

// parsePCI returns domain, bus and device of "0000:17:00.0".
func parsePCI(address string) ([3]uint32, error) {
	match := pciForm.FindStringSubmatch(address)
	if match == nil {
		return [3]uint32{}, fmt.Errorf("pciAddress %q must look like \"0000:17:00.0\"", address)
	}
	var out [3]uint32
	for i := range out {
		n, err := strconv.ParseUint(match[i+1], 16, 32)
		if err != nil {
			return out, fmt.Errorf("pciAddress %q: %w", address, err)
		}
		out[i] = uint32(n)
	}
	return out, nil
}
