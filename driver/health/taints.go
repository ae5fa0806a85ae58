package health

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fairshard/fairshard/classes"
)

// KeyUnhealthy is the key of the one taint with an effect on scheduling. Its
// value is the cause.
const KeyUnhealthy = classes.DriverName + "/unhealthy"

// MaxTaints is how many taints a GPU gets at most; the API allows 16.
const MaxTaints = 8

// Taint is a device taint.
type Taint struct {
	Key    string
	Value  string
	Effect string // None, NoSchedule or NoExecute
	Since  int64  // unix seconds
}

// Taints returns the taints of a GPU: first the one that the worst condition
// causes, if it is more than a fact, then every open condition as a fact of
// effect None, the worst first, with the repair it needs as the value.
func (s State) Taints(uuid string, p Policy) []Taint {
	var taints []Taint
	g := s.gpus[uuid]
	open := g.worstFirst(p)
	if len(open) > 0 && open[0].class(p).serious() {
		worst := open[0]
		taints = append(taints, Taint{KeyUnhealthy, string(worst.Cause), string(worst.class(p)), worst.Raised})
	}
	for _, c := range open[:min(len(open), MaxTaints-len(taints))] {
		taints = append(taints, Taint{classes.DriverName + "/" + string(c.Cause), string(c.repair(p)), "None", c.Since})
	}
	return taints
}

// worstFirst returns the open conditions by class, then by age: the cause that
// was named first stays named while nothing worse happens.
func (g *gpu) worstFirst(p Policy) []Condition {
	open := slices.DeleteFunc(slices.Clone(g.Conditions), func(c Condition) bool { return !c.open() || c.class(p) == ClassIgnore })
	slices.SortFunc(open, func(a, b Condition) int {
		return cmp.Or(
			cmp.Compare(b.class(p).rank(), a.class(p).rank()),
			cmp.Compare(a.Raised, b.Raised),
			cmp.Compare(a.Cause, b.Cause),
		)
	})
	return open
}

// Verdict is the health of a GPU in the words of the kubelet.
type Verdict string

// The verdicts.
const (
	Healthy   Verdict = "Healthy"
	Unhealthy Verdict = "Unhealthy"
	Unknown   Verdict = "Unknown" // the driver does not answer, and nothing else is wrong
)

// Health returns how the GPU is, with one sentence that says why and what it
// waits for. The sentence changes only when that does.
func (s State) Health(uuid string, p Policy) (Verdict, string) {
	g := s.gpus[uuid]
	open := g.worstFirst(p)
	if len(open) == 0 {
		return Healthy, "The GPU is healthy."
	}
	text := open[0].describe(p)
	switch g.phase(p) {
	case PhaseRecovering:
		return Unhealthy, text + ": repaired, waits for a clean reading of the driver."
	case PhaseValidating:
		return Unhealthy, text + ": repaired, waits for a validation to pass."
	case PhaseHealthy, PhaseSick:
	}
	sick := slices.IndexFunc(open, func(c Condition) bool { return c.holds(p) && c.Cause != CauseUnmonitored })
	if sick >= 0 {
		return Unhealthy, open[sick].describe(p) + ": " + remedy[open[sick].repair(p)] + "."
	}
	silent := slices.IndexFunc(open, func(c Condition) bool { return c.Cause == CauseUnmonitored })
	if silent < 0 {
		return Healthy, "The GPU is healthy; noted: " + text + "."
	}
	verdict := Unknown
	if open[0].Status == StatusRepaired {
		verdict = Unhealthy // it was not validated before the driver fell silent
	}
	return verdict, open[silent].describe(p) + ": " + remedy[RepairSignal] + "."
}

// describe says "xid-79 (the GPU has fallen off the bus) since 2026-12-04T10:00:00Z".
func (c *Condition) describe(p Policy) string {
	where := ""
	if c.Instance != "" {
		where = " on " + c.Instance
	}
	since := time.Unix(c.Since, 0).UTC().Format(time.RFC3339)
	return fmt.Sprintf("%s (%s)%s since %s", c.Cause, p.rule(c.Cause).What, where, since)
}

// remedy says what a condition waits for.
var remedy = map[Repair]string{
	RepairSignal:   "lasts until the driver says that it is over",
	RepairQuiet:    "closes when it is not seen for some time",
	RepairValidate: "needs a validation",
	RepairReset:    "needs a reset of the GPU",
	RepairReboot:   "needs a reboot of the node",
	RepairReplace:  "needs a look at the hardware, and the operator's word that it is done",
}
