package health

import (
	"maps"
	"slices"
)

// State is what is wrong with the GPUs of a node. The zero value is a node where
// nothing is. A State is never changed, only replaced.
type State struct {
	boot string         // boot ID of the last KindBoot
	gpus map[string]gpu // by UUID; a GPU about which there is nothing to say is not in it
}

type gpu struct {
	ECC        uint64      `json:"uncorrectable,omitempty"` // at the last reading
	Confirmed  bool        `json:"confirmed,omitempty"`     // a clean reading was seen since everything was repaired
	Conditions []Condition `json:"conditions,omitempty"`    // sorted by cause
}

// Status is where a condition is in its life.
type Status string

// The statuses.
const (
	StatusWatched  Status = "watched"  // not open; what was seen counts for repeats
	StatusOpen     Status = "open"     // it holds
	StatusRepaired Status = "repaired" // it is over, but was NoExecute: counts as open until a validation passes
)

// Condition is one thing that is, or was lately, wrong with a GPU.
type Condition struct {
	Cause    Cause   `json:"cause"`
	Status   Status  `json:"status"`
	Instance string  `json:"instance,omitempty"` // MIG instance that it is confined to, "" for the whole GPU
	Level    int     `json:"level,omitempty"`    // repeats of its rule that it reached; falls only when it closes
	Since    int64   `json:"since,omitempty"`    // unix seconds when it opened; 0 when watched
	Raised   int64   `json:"raised,omitempty"`   // when it reached its class
	Times    []int64 `json:"times,omitempty"`    // of the newest occurrences, ascending
}

func (c *Condition) open() bool { return c.Status != StatusWatched }

func (c *Condition) class(p Policy) Class {
	class, _ := p.rule(c.Cause).at(c.Level)
	return class
}

func (c *Condition) repair(p Policy) Repair {
	_, repair := p.rule(c.Cause).at(c.Level)
	return repair
}

// holds reports whether c is open, not repaired, and keeps work away.
func (c *Condition) holds(p Policy) bool { return c.Status == StatusOpen && c.class(p).serious() }

// UUIDs returns the GPUs that have conditions or counters, sorted. Those that are
// not in the node's inventory are lost.
func (s State) UUIDs() []string { return slices.Sorted(maps.Keys(s.gpus)) }

// Conditions returns the conditions of a GPU, watched ones too, sorted by cause.
func (s State) Conditions(uuid string) []Condition {
	conditions := slices.Clone(s.gpus[uuid].Conditions)
	for i := range conditions {
		conditions[i].Times = slices.Clone(conditions[i].Times)
	}
	return conditions
}

// Phase is where a GPU is on its way from a fault back to work.
type Phase string

// The phases; the package comment says what leads from one to the next.
const (
	PhaseHealthy    Phase = "Healthy"
	PhaseSick       Phase = "Sick"
	PhaseRecovering Phase = "Recovering"
	PhaseValidating Phase = "Validating"
)

// Phase returns where the GPU is.
func (s State) Phase(uuid string, p Policy) Phase {
	g := s.gpus[uuid]
	return g.phase(p)
}

func (g *gpu) phase(p Policy) Phase {
	phase := PhaseHealthy
	for _, c := range g.Conditions {
		switch {
		case c.holds(p):
			return PhaseSick
		case c.Status == StatusRepaired && g.Confirmed:
			phase = PhaseValidating
		case c.Status == StatusRepaired:
			phase = PhaseRecovering
		}
	}
	return phase
}
