package isolation

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fairshard/fairshard/classes/quantity"
)

// Tier is how the limits of a claim are enforced.
type Tier string

// TierNone tells a container its limits and enforces nothing.
const TierNone Tier = "None"

// version is the first line of a limits file; another version is refused.
const version = "fairshard-limits=1"

// all stands for a GPU without a limit.
const all = "all"

// Limit is what a claim may use of one GPU.
type Limit struct {
	UUID  string         // NVML UUID of the GPU: never an index, which differs between host and container
	Whole bool           // everything, no limit
	Bytes quantity.Bytes // of GPU memory; 0 when Whole
}

// Limits is what one claim is told.
type Limits struct {
	ClaimUID  string
	Namespace string
	Name      string
	Tier      Tier
	GPUs      []Limit // sorted by UUID
}

// New returns limits with a private, sorted copy of gpus.
func New(claimUID, namespace, name string, gpus []Limit) Limits {
	sorted := slices.Clone(gpus)
	slices.SortFunc(sorted, func(a, b Limit) int {
		return cmp.Or(strings.Compare(a.UUID, b.UUID), cmp.Compare(a.Bytes, b.Bytes))
	})
	return Limits{ClaimUID: claimUID, Namespace: namespace, Name: name, Tier: TierNone, GPUs: sorted}
}

// Encode returns the limits file, one key=value per line:
//
//	fairshard-limits=1
//	claim=8c0f6d1e-...
//	namespace=team-a
//	name=half-gpu
//	tier=None
//	gpu.GPU-7277883e-...=40000000000
//	gpu.GPU-9a1b22c3-...=all
//
// Same limits, same bytes.
func (l Limits) Encode() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nclaim=%s\nnamespace=%s\nname=%s\ntier=%s\n", version, l.ClaimUID, l.Namespace, l.Name, l.Tier)
	for _, g := range l.GPUs {
		value := all
		if !g.Whole {
			value = strconv.FormatInt(int64(g.Bytes), 10)
		}
		fmt.Fprintf(&b, "gpu.%s=%s\n", g.UUID, value)
	}
	return []byte(b.String())
}

// Parse reads a limits file. Unknown keys are ignored, so that a newer driver
// can add some without breaking what already runs.
func Parse(content []byte) (Limits, error) {
	scanner := bufio.NewScanner(strings.NewReader(string(content)))
	if !scanner.Scan() || scanner.Text() != version {
		return Limits{}, fmt.Errorf("parse limits: the first line must be %q", version)
	}
	var l Limits
	for line := 2; scanner.Scan(); line++ {
		if err := set(&l, scanner.Text()); err != nil {
			return Limits{}, fmt.Errorf("parse limits, line %d: %w", line, err)
		}
	}
	if err := scanner.Err(); err != nil {
		return Limits{}, fmt.Errorf("parse limits: %w", err)
	}
	if l.ClaimUID == "" {
		return Limits{}, errors.New("parse limits: no claim")
	}
	return l, nil
}

func set(l *Limits, line string) error {
	key, value, ok := strings.Cut(line, "=")
	if !ok {
		return fmt.Errorf("%q is not key=value", line)
	}
	switch key {
	case "claim":
		l.ClaimUID = value
	case "namespace":
		l.Namespace = value
	case "name":
		l.Name = value
	case "tier":
		l.Tier = Tier(value)
	default:
		if uuid, isGPU := strings.CutPrefix(key, "gpu."); isGPU {
			return setGPU(l, uuid, value)
		}
	}
	return nil
}

func setGPU(l *Limits, uuid, value string) error {
	if value == all {
		l.GPUs = append(l.GPUs, Limit{UUID: uuid, Whole: true})
		return nil
	}
	bytes, err := strconv.ParseInt(value, 10, 64)
	if err != nil || bytes <= 0 {
		return fmt.Errorf("limit of %s is %q: want a positive number of bytes or %q", uuid, value, all)
	}
	l.GPUs = append(l.GPUs, Limit{UUID: uuid, Bytes: quantity.Bytes(bytes)})
	return nil
}
