package snapshot

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fairshard/fairshard/classes/quantity"
)

// A GPU has 7 compute slices and 8 memory slices for MIG devices.
const (
	computeSlices = 7
	memorySlices  = 8
)

// ParseMIG reads a profile name such as "1g.10gb" for a GPU with usable bytes of
// memory: 1 of 7 compute slices, and as many of 8 memory slices as 10 GB are,
// to the nearest of 1, 2, 4 and 8. A suffix ("+me") is kept in the name only.
func ParseMIG(name string, usable quantity.Bytes) (MIGProfile, error) {
	wrong := func(what string) (MIGProfile, error) {
		return MIGProfile{}, fmt.Errorf("read MIG profile %q: %s: write compute slices and memory, as in 1g.10gb", name, what)
	}
	base, _, _ := strings.Cut(name, "+")
	first, second, found := strings.Cut(base, ".")
	compute, isG := strings.CutSuffix(first, "g")
	memory, isGB := strings.CutSuffix(second, "gb")
	if !found || !isG || !isGB {
		return wrong("it has another form")
	}
	c, err := strconv.Atoi(compute)
	if err != nil || c < 1 || c > computeSlices {
		return wrong("compute slices are 1 to 7")
	}
	m, err := strconv.Atoi(memory)
	if err != nil || m < 1 || m > 1<<20 {
		return wrong("memory is a number of GB")
	}
	p := MIGProfile{Name: name, Compute: c, Slices: nearestSlices(quantity.Bytes(m)*quantity.GiB, usable)}
	if p.Slices == 0 || p.Slices < c && p.Slices != memorySlices {
		return wrong(fmt.Sprintf("a GPU with %s has no such part", usable))
	}
	return p, nil
}

// nearestSlices rounds memory to 1, 2, 4 or 8 eighths of usable; 0 = more than there is.
func nearestSlices(memory, usable quantity.Bytes) int {
	if usable <= 0 || memory > usable.Add(usable/16) {
		return 0
	}
	best := 1
	for _, n := range []int{2, 4, 8} {
		if distance(memory, usable, n) < distance(memory, usable, best) {
			best = n
		}
	}
	return best
}

func distance(memory, usable quantity.Bytes, slices int) quantity.Bytes {
	part := usable / memorySlices * quantity.Bytes(slices)
	return max(part, memory) - min(part, memory)
}

// Milli is what a MIG device of this profile costs: the larger of its memory
// and compute parts.
func (p MIGProfile) Milli() quantity.MilliGPU {
	return max(ceilPart(p.Compute, computeSlices), ceilPart(p.Slices, memorySlices))
}

func ceilPart(n, of int) quantity.MilliGPU {
	return (quantity.PerGPU*quantity.MilliGPU(n) + quantity.MilliGPU(of) - 1) / quantity.MilliGPU(of)
}

// start returns the memory slices of the first free placement of a profile on a
// GPU of which used are taken. A placement starts at a multiple of its memory
// slices; the last memory slice has no compute slice beside it.
func (p MIGProfile) start(used uint8) (uint8, bool) {
	if p.Slices < 1 || p.Slices > memorySlices {
		return 0, false
	}
	for s := 0; s+p.Slices <= memorySlices && s+p.Compute <= computeSlices; s += p.Slices {
		mask := uint8((1<<p.Slices - 1) << s)
		if used&mask == 0 {
			return mask, true
		}
	}
	return 0, false
}
