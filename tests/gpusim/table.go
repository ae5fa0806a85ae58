package gpusim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// The table file: a header, faults, events and MaxGPUs records, little endian,
// fixed size, so that the C library can map it as it is. Change it together
// with lib/table.h.
const (
	magic        = "GPUSIM1\x00"
	tableVersion = 2
	// MaxGPUs is what one table holds.
	MaxGPUs = 64

	maxProfiles  = 16
	maxInstances = 7
	maxProcesses = 16
	maxFaults    = 16
	maxEvents    = 64
)

// Forever is a Fault's Left or Delay without an end.
const Forever = 1<<32 - 1

// AllGPUs is a Fault's GPU that hits every one, and calls that name none.
const AllGPUs = -1

// header is struct gpusim_table without what comes in numbers: 128 bytes.
type header struct {
	Magic       [8]byte
	Version     uint32
	Count       uint32
	Driver      [32]byte
	NVML        [32]byte
	CUDAVersion int32
	FaultCount  uint32
	EventCount  uint64
	_           [32]byte
}

type faultRecord struct {
	Call  [64]byte
	GPU   int32
	Code  int32
	Delay uint32
	Left  uint32
}

type eventRecord struct {
	Type, Data  uint64
	GPU, GI, CI uint32
	_           uint32
}

type profileRecord struct {
	Kind, ID, Slices, Size, SMs, Most, Placements uint32

	_      uint32
	Memory uint64
	Name   [24]byte
}

type instanceRecord struct {
	Used, GI, Profile, Start, CIUsed, CI, CIProfile uint32

	_    uint32
	UUID [48]byte
}

type processRecord struct {
	Bytes       uint64
	PID, GI, CI uint32
	_           uint32
}

// record is struct gpusim_gpu.
type record struct {
	UUID             [64]byte
	Name             [96]byte
	Total            uint64 // bytes
	Reserved         uint64
	Used             uint64
	Domain           uint32
	Bus              uint32
	Device           uint32
	Minor            uint32
	NUMA             int32 // -1 = unknown
	Architecture     uint32
	CCMajor          int32
	CCMinor          int32
	MIGCapable       uint32
	MIGEnabled       uint32
	PCIDeviceID      uint32
	Lost             uint32
	Absent           uint32
	Recovery         uint32
	RemapCorrectable uint32
	RemapUncorrected uint32
	RemapPending     uint32
	RemapFailed      uint32
	ECCVolatile      uint64
	ECCAggregate     uint64
	ProfileCount     uint32
	ProcessCount     uint32
	Made             uint32
	_                uint32
	Profiles         [maxProfiles]profileRecord
	Instances        [maxInstances]instanceRecord
	Processes        [maxProcesses]processRecord
}

// Node is the decoded table of one node.
type Node struct {
	Driver      string // "580.65.6"
	NVML        string
	CUDAVersion int // 13000 is 13.0
	GPUs        []GPU
	Faults      []Fault
	// EventCount is how many events there ever were; Events are the last of them.
	EventCount uint64
	Events     []Event
}

// GPU is one simulated GPU.
type GPU struct {
	UUID         string
	Name         string
	TotalBytes   uint64
	Reserved     uint64
	Used         uint64 // beside what Processes hold
	Domain       uint32
	Bus          uint32
	Device       uint32
	Minor        uint32
	NUMA         int // -1 = unknown
	Architecture string
	ComputeMajor int
	ComputeMinor int
	MIGCapable   bool
	MIGEnabled   bool
	PCIDeviceID  uint32
	Lost         bool   // every call on it fails
	Absent       bool   // as if it were not in the machine
	Recovery     uint32 // recovery action: 0 none, 1 reset, 2 reboot, ...
	Remap        Remap
	ECCVolatile  uint64 // uncorrected errors since the last reset
	ECCAggregate uint64 // ever
	Made         uint32 // MIG devices made so far
	Profiles     []MIGProfile
	Instances    []Instance // in their places; GI 0 = free
	Processes    []Process
}

// Remap is the state of row remapping.
type Remap struct {
	Correctable, Uncorrectable uint32
	Pending, Failed            bool
}

// MIGProfile is a way to cut a MIG device out of a GPU.
type MIGProfile struct {
	Kind       uint32   `json:"kind"` // NVML's GPU_INSTANCE_PROFILE_ number
	ID         uint32   `json:"id"`   // what the driver calls it
	Name       string   `json:"name"` // "1g.10gb"
	Slices     uint32   `json:"slices"`
	Size       uint32   `json:"size"` // memory slices
	SMs        uint32   `json:"sms"`
	Most       uint32   `json:"most"` // instances that a GPU can have of it
	Placements []uint32 `json:"placements"`
	MemoryMiB  uint64   `json:"memoryMiB"`
}

// Instance is a GPU instance with the MIG device that covers it.
type Instance struct {
	GI      uint32
	Profile uint32 // position in the GPU's Profiles
	Start   uint32 // first memory slice
	CI      uint32
	CIKind  uint32
	UUID    string // of the MIG device; empty = there is no compute instance
}

// Process holds memory of a GPU.
type Process struct {
	PID    uint32
	Bytes  uint64
	GI, CI uint32 // NoInstance outside of MIG
}

// NoInstance is the GI and CI of what has none.
const NoInstance = 1<<32 - 1

// Fault makes a call fail or slow.
type Fault struct {
	Call  string // "nvmlDeviceGetUUID"
	GPU   int    // position, or AllGPUs
	Code  int32  // NVML's return code; 0 = it goes on after Delay
	Delay uint32 // milliseconds, or Forever = until the fault is gone
	Left  uint32 // calls it still hits, or Forever
}

// Event is what a driver tells of a GPU.
type Event struct {
	Type   uint64 // 8 = XID
	Data   uint64
	GPU    uint32 // position
	GI, CI uint32 // NoInstance = the whole GPU
}

// EventXID is the Type of an Event that carries an XID in Data.
const EventXID = 8

// architectures are NVML's numbers.
var architectures = map[string]uint32{"Turing": 6, "Ampere": 7, "Ada Lovelace": 8, "Hopper": 9, "Blackwell": 10}

// Encode returns the table file's content.
func (n Node) Encode() ([]byte, error) {
	if len(n.GPUs) > MaxGPUs || len(n.Faults) > maxFaults || len(n.Events) > maxEvents {
		return nil, fmt.Errorf("encode table: %d GPUs, %d faults, %d events: at most %d, %d, %d",
			len(n.GPUs), len(n.Faults), len(n.Events), MaxGPUs, maxFaults, maxEvents)
	}
	h := header{
		Version: tableVersion, Count: uint32(len(n.GPUs)), CUDAVersion: int32(n.CUDAVersion),
		FaultCount: uint32(len(n.Faults)), EventCount: max(n.EventCount, uint64(len(n.Events))),
	}
	copy(h.Magic[:], magic)
	errs := []error{put(h.Driver[:], n.Driver), put(h.NVML[:], n.NVML)}
	faults := make([]faultRecord, maxFaults)
	for i, f := range n.Faults {
		errs = append(errs, put(faults[i].Call[:], f.Call))
		faults[i].GPU, faults[i].Code, faults[i].Delay, faults[i].Left = int32(f.GPU), f.Code, f.Delay, f.Left
	}
	events := make([]eventRecord, maxEvents)
	for i, e := range n.Events {
		at := (h.EventCount - uint64(len(n.Events)) + uint64(i)) % maxEvents
		events[at] = eventRecord{Type: e.Type, Data: e.Data, GPU: e.GPU, GI: e.GI, CI: e.CI}
	}
	records := make([]record, MaxGPUs)
	for i, g := range n.GPUs {
		errs = append(errs, g.encode(&records[i]))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("encode table: %w", err)
	}
	var out bytes.Buffer
	for _, part := range []any{h, faults, events, records} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			return nil, fmt.Errorf("encode table: %w", err)
		}
	}
	return out.Bytes(), nil
}

func (g GPU) encode(r *record) error {
	arch, known := architectures[g.Architecture]
	if !known {
		return fmt.Errorf("unknown architecture %q", g.Architecture)
	}
	if len(g.Profiles) > maxProfiles || len(g.Instances) > maxInstances || len(g.Processes) > maxProcesses {
		return fmt.Errorf("GPU %s: %d profiles, %d instances, %d processes: at most %d, %d, %d",
			g.UUID, len(g.Profiles), len(g.Instances), len(g.Processes), maxProfiles, maxInstances, maxProcesses)
	}
	errs := []error{put(r.UUID[:], g.UUID), put(r.Name[:], g.Name)}
	r.Total, r.Reserved, r.Used = g.TotalBytes, g.Reserved, g.Used
	r.Domain, r.Bus, r.Device, r.Minor, r.NUMA = g.Domain, g.Bus, g.Device, g.Minor, int32(g.NUMA)
	r.Architecture, r.CCMajor, r.CCMinor = arch, int32(g.ComputeMajor), int32(g.ComputeMinor)
	r.MIGCapable, r.MIGEnabled, r.PCIDeviceID = flag(g.MIGCapable), flag(g.MIGEnabled), g.PCIDeviceID
	r.Lost, r.Absent, r.Recovery = flag(g.Lost), flag(g.Absent), g.Recovery
	r.RemapCorrectable, r.RemapUncorrected = g.Remap.Correctable, g.Remap.Uncorrectable
	r.RemapPending, r.RemapFailed = flag(g.Remap.Pending), flag(g.Remap.Failed)
	r.ECCVolatile, r.ECCAggregate, r.Made = g.ECCVolatile, g.ECCAggregate, g.Made
	r.ProfileCount, r.ProcessCount = uint32(len(g.Profiles)), uint32(len(g.Processes))
	for i, p := range g.Profiles {
		errs = append(errs, put(r.Profiles[i].Name[:], p.Name))
		q := &r.Profiles[i]
		q.Kind, q.ID, q.Slices, q.Size, q.SMs, q.Most, q.Memory = p.Kind, p.ID, p.Slices, p.Size, p.SMs, p.Most, p.MemoryMiB<<20
		for _, start := range p.Placements {
			q.Placements |= 1 << start
		}
	}
	for i, in := range g.Instances {
		if int(in.Profile) >= max(1, len(g.Profiles)) {
			errs = append(errs, fmt.Errorf("GPU %s: instance %d has profile %d of %d", g.UUID, in.GI, in.Profile, len(g.Profiles)))
		}
		errs = append(errs, put(r.Instances[i].UUID[:], in.UUID))
		q := &r.Instances[i]
		q.Used, q.GI, q.Profile, q.Start = flag(in.GI != 0), in.GI, in.Profile, in.Start
		q.CIUsed, q.CI, q.CIProfile = flag(in.UUID != ""), in.CI, in.CIKind
	}
	for i, p := range g.Processes {
		r.Processes[i] = processRecord{Bytes: p.Bytes, PID: p.PID, GI: p.GI, CI: p.CI}
	}
	return errors.Join(errs...)
}

// Decode reads a table file.
func Decode(content []byte) (Node, error) {
	reader := bytes.NewReader(content)
	var h header
	faults, events, records := make([]faultRecord, maxFaults), make([]eventRecord, maxEvents), make([]record, MaxGPUs)
	for _, part := range []any{&h, faults, events, records} {
		if err := binary.Read(reader, binary.LittleEndian, part); err != nil {
			return Node{}, fmt.Errorf("decode table: %w", err)
		}
	}
	if string(h.Magic[:]) != magic || h.Version != tableVersion || h.Count > MaxGPUs || h.FaultCount > maxFaults {
		return Node{}, fmt.Errorf("decode table: magic %q, version %d, %d GPUs, %d faults", h.Magic, h.Version, h.Count, h.FaultCount)
	}
	n := Node{Driver: get(h.Driver[:]), NVML: get(h.NVML[:]), CUDAVersion: int(h.CUDAVersion), EventCount: h.EventCount}
	for _, f := range faults[:h.FaultCount] {
		n.Faults = append(n.Faults, Fault{Call: get(f.Call[:]), GPU: int(f.GPU), Code: f.Code, Delay: f.Delay, Left: f.Left})
	}
	for i := h.EventCount - min(h.EventCount, maxEvents); i < h.EventCount; i++ {
		e := events[i%maxEvents]
		n.Events = append(n.Events, Event{Type: e.Type, Data: e.Data, GPU: e.GPU, GI: e.GI, CI: e.CI})
	}
	for i := range records[:h.Count] {
		gpu, err := records[i].decode()
		if err != nil {
			return Node{}, fmt.Errorf("decode table: GPU %d: %w", i, err)
		}
		n.GPUs = append(n.GPUs, gpu)
	}
	return n, nil
}

func (r *record) decode() (GPU, error) {
	if r.ProfileCount > maxProfiles || r.ProcessCount > maxProcesses {
		return GPU{}, fmt.Errorf("%d profiles, %d processes", r.ProfileCount, r.ProcessCount)
	}
	g := GPU{
		UUID: get(r.UUID[:]), Name: get(r.Name[:]), TotalBytes: r.Total, Reserved: r.Reserved, Used: r.Used,
		Domain: r.Domain, Bus: r.Bus, Device: r.Device, Minor: r.Minor, NUMA: int(r.NUMA),
		Architecture: architectureName(r.Architecture), ComputeMajor: int(r.CCMajor), ComputeMinor: int(r.CCMinor),
		MIGCapable: r.MIGCapable != 0, MIGEnabled: r.MIGEnabled != 0, PCIDeviceID: r.PCIDeviceID,
		Lost: r.Lost != 0, Absent: r.Absent != 0, Recovery: r.Recovery, Made: r.Made,
		Remap:       Remap{r.RemapCorrectable, r.RemapUncorrected, r.RemapPending != 0, r.RemapFailed != 0},
		ECCVolatile: r.ECCVolatile, ECCAggregate: r.ECCAggregate,
	}
	for i := range r.Profiles[:r.ProfileCount] {
		g.Profiles = append(g.Profiles, r.Profiles[i].decode())
	}
	for _, in := range r.Instances {
		instance := Instance{}
		if in.Used != 0 {
			instance = Instance{GI: in.GI, Profile: in.Profile, Start: in.Start}
		}
		if in.Used != 0 && in.CIUsed != 0 {
			instance.CI, instance.CIKind, instance.UUID = in.CI, in.CIProfile, get(in.UUID[:])
		}
		g.Instances = append(g.Instances, instance)
	}
	for len(g.Instances) > 0 && g.Instances[len(g.Instances)-1] == (Instance{}) {
		g.Instances = g.Instances[:len(g.Instances)-1]
	}
	g.Instances = slices.Clip(g.Instances)
	if len(g.Instances) == 0 {
		g.Instances = nil
	}
	for _, p := range r.Processes[:r.ProcessCount] {
		g.Processes = append(g.Processes, Process{PID: p.PID, Bytes: p.Bytes, GI: p.GI, CI: p.CI})
	}
	return g, nil
}

func (r *profileRecord) decode() MIGProfile {
	p := MIGProfile{
		Kind: r.Kind, ID: r.ID, Name: get(r.Name[:]), Slices: r.Slices, Size: r.Size, SMs: r.SMs, Most: r.Most, MemoryMiB: r.Memory >> 20,
	}
	for start := range uint32(32) {
		if r.Placements>>start&1 == 1 {
			p.Placements = append(p.Placements, start)
		}
	}
	return p
}

// put copies text with its end marker.
func put(field []byte, text string) error {
	if len(text) >= len(field) {
		return fmt.Errorf("%q is longer than %d bytes", text, len(field)-1)
	}
	copy(field, text)
	return nil
}

func get(field []byte) string {
	text, _, _ := bytes.Cut(field, []byte{0})
	return string(text)
}

func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func architectureName(number uint32) string {
	for name, n := range architectures {
		if n == number {
			return name
		}
	}
	return ""
}
