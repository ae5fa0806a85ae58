package gpusim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// The table file: a header and MaxGPUs records, little endian, fixed size, so
// that the C library can map it as it is. Change it together with lib/table.h.
const (
	magic        = "GPUSIM1\x00"
	tableVersion = 1
	// MaxGPUs is what one table holds.
	MaxGPUs = 64
)

// header is struct gpusim_table without its records: 128 bytes.
type header struct {
	Magic       [8]byte
	Version     uint32
	Count       uint32
	Driver      [32]byte
	NVML        [32]byte
	CUDAVersion int32
	_           [44]byte
}

// record is struct gpusim_gpu: 256 bytes.
type record struct {
	UUID         [64]byte
	Name         [96]byte
	Total        uint64 // bytes
	Reserved     uint64
	Used         uint64
	Domain       uint32
	Bus          uint32
	Device       uint32
	Minor        uint32
	NUMA         int32 // -1 = unknown
	Architecture uint32
	CCMajor      int32
	CCMinor      int32
	MIGCapable   uint32
	MIGEnabled   uint32
	PCIDeviceID  uint32
	Lost         uint32
	_            [24]byte
}

// Node is the decoded table of one node.
type Node struct {
	Driver      string // "580.65.6"
	NVML        string
	CUDAVersion int // 13000 is 13.0
	GPUs        []GPU
}

// GPU is one simulated GPU.
type GPU struct {
	UUID         string
	Name         string
	TotalBytes   uint64
	Reserved     uint64
	Used         uint64
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
	Lost         bool // every call on it fails
}

// architectures are NVML's numbers.
var architectures = map[string]uint32{"Turing": 6, "Ampere": 7, "Ada Lovelace": 8, "Hopper": 9, "Blackwell": 10}

// Encode returns the table file's content.
func (n Node) Encode() ([]byte, error) {
	if len(n.GPUs) > MaxGPUs {
		return nil, fmt.Errorf("encode table: %d GPUs, at most %d", len(n.GPUs), MaxGPUs)
	}
	h := header{Version: tableVersion, Count: uint32(len(n.GPUs)), CUDAVersion: int32(n.CUDAVersion)}
	copy(h.Magic[:], magic)
	errs := []error{put(h.Driver[:], n.Driver), put(h.NVML[:], n.NVML)}
	records := make([]record, MaxGPUs)
	for i, g := range n.GPUs {
		arch, known := architectures[g.Architecture]
		if !known {
			errs = append(errs, fmt.Errorf("unknown architecture %q", g.Architecture))
		}
		r := &records[i]
		errs = append(errs, put(r.UUID[:], g.UUID), put(r.Name[:], g.Name))
		r.Total, r.Reserved, r.Used = g.TotalBytes, g.Reserved, g.Used
		r.Domain, r.Bus, r.Device, r.Minor, r.NUMA = g.Domain, g.Bus, g.Device, g.Minor, int32(g.NUMA)
		r.Architecture, r.CCMajor, r.CCMinor = arch, int32(g.ComputeMajor), int32(g.ComputeMinor)
		r.MIGCapable, r.MIGEnabled, r.PCIDeviceID = flag(g.MIGCapable), flag(g.MIGEnabled), g.PCIDeviceID
		r.Lost = flag(g.Lost)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("encode table: %w", err)
	}
	var out bytes.Buffer
	for _, part := range []any{h, records} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			return nil, fmt.Errorf("encode table: %w", err)
		}
	}
	return out.Bytes(), nil
}

// Decode reads a table file.
func Decode(content []byte) (Node, error) {
	reader := bytes.NewReader(content)
	var h header
	records := make([]record, MaxGPUs)
	for _, part := range []any{&h, records} {
		if err := binary.Read(reader, binary.LittleEndian, part); err != nil {
			return Node{}, fmt.Errorf("decode table: %w", err)
		}
	}
	if string(h.Magic[:]) != magic || h.Version != tableVersion || h.Count > MaxGPUs {
		return Node{}, fmt.Errorf("decode table: magic %q, version %d, count %d", h.Magic, h.Version, h.Count)
	}
	n := Node{Driver: get(h.Driver[:]), NVML: get(h.NVML[:]), CUDAVersion: int(h.CUDAVersion)}
	for _, r := range records[:h.Count] {
		n.GPUs = append(n.GPUs, GPU{
			UUID: get(r.UUID[:]), Name: get(r.Name[:]), TotalBytes: r.Total, Reserved: r.Reserved, Used: r.Used,
			Domain: r.Domain, Bus: r.Bus, Device: r.Device, Minor: r.Minor, NUMA: int(r.NUMA),
			Architecture: architectureName(r.Architecture), ComputeMajor: int(r.CCMajor), ComputeMinor: int(r.CCMinor),
			MIGCapable: r.MIGCapable != 0, MIGEnabled: r.MIGEnabled != 0, PCIDeviceID: r.PCIDeviceID,
			Lost: r.Lost != 0,
		})
	}
	return n, nil
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
