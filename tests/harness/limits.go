package harness

import (
	"fmt"
	"slices"

	"github.com/fairshard/fairshard/classes/quantity"
	"github.com/fairshard/fairshard/driver/isolation"
)

// ParseLimits returns the bytes per GPU of a limits file; 0 is a whole GPU.
func ParseLimits(content string) ([]quantity.Bytes, error) {
	limits, err := isolation.Parse([]byte(content))
	if err != nil {
		return nil, err
	}
	var bytes []quantity.Bytes
	for _, gpu := range limits.GPUs {
		bytes = append(bytes, gpu.Bytes)
	}
	return bytes, nil
}

// DescribeLimits says in a few words what a limits file tells a container.
func DescribeLimits(content string) string {
	bytes, err := ParseLimits(content)
	switch {
	case err != nil:
		return "unreadable limits: " + err.Error()
	case len(bytes) == 0:
		return "no GPU"
	}
	what := "all memory"
	if bytes[0] > 0 {
		what = "memory " + bytes[0].String()
	}
	if slices.Max(bytes) != slices.Min(bytes) {
		what = fmt.Sprintf("memory %v", bytes)
	}
	if len(bytes) == 1 {
		return what + " on 1 GPU"
	}
	return fmt.Sprintf("%s on %d GPUs", what, len(bytes))
}
