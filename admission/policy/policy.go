package policy

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairshard/fairshard/admission/decide"
	policyv1 "github.com/fairshard/fairshard/classes/policy/v1alpha1"
)

// Times are the parts of a policy that concern the loop around the planner.
type Times struct {
	MessageInterval time.Duration
	CyclePeriod     time.Duration
}

// Translate returns the planner's policy for spec. All that is wrong with it is
// in the error, one line each.
func Translate(spec *policyv1.FairSharePolicySpec) (decide.Policy, Times, error) {
	t := translator{policy: decide.Defaults(), times: Times{MessageInterval: time.Minute, CyclePeriod: 10 * time.Second}}
	t.placement(spec.Placement)
	t.consolidation(spec.Consolidation)
	if spec.MinRuntime != nil {
		t.duration("minRuntime.preempt", spec.MinRuntime.Preempt, &t.policy.MinRuntimePreempt)
		t.duration("minRuntime.reclaim", spec.MinRuntime.Reclaim, &t.policy.MinRuntimeReclaim)
	}
	t.duration("preemptionDelay", spec.PreemptionDelay, &t.policy.PreemptionDelay)
	t.count("evictionsPerCycle", spec.EvictionsPerCycle, &t.policy.Evictions)
	if spec.StaleGangGrace != nil {
		t.policy.StaleGangGrace = spec.StaleGangGrace.Duration
	}
	t.duration("placementTimeout", spec.PlacementTimeout, &t.policy.PromiseTimeout)
	t.policy.EvictBare = t.oneOf("barePods", string(spec.BarePods), string(policyv1.BarePodsNever), string(policyv1.BarePodsEvict))
	t.policy.FirstCome = t.oneOf("overcommittedQuota", string(spec.OvercommittedQuota), string(policyv1.Proportional), string(policyv1.FirstCome))
	t.history(spec.UsageHistory)
	t.duration("messageInterval", spec.MessageInterval, &t.times.MessageInterval)
	t.duration("cyclePeriod", spec.CyclePeriod, &t.times.CyclePeriod)
	if t.times.CyclePeriod < time.Second {
		t.wrong("cyclePeriod", "%s is too short: use 1s or more", t.times.CyclePeriod)
	}
	return t.policy, t.times, errors.Join(t.errs...)
}

// translator collects what is wrong.
type translator struct {
	policy decide.Policy
	times  Times
	errs   []error
}

func (t *translator) wrong(field, format string, args ...any) {
	t.errs = append(t.errs, fmt.Errorf("policy.%s: %s", field, fmt.Sprintf(format, args...)))
}

func (t *translator) duration(field string, from *metav1.Duration, to *time.Duration) {
	switch {
	case from == nil:
	case from.Duration < 0:
		t.wrong(field, "%s is negative: use 0s or more", from.Duration)
	default:
		*to = from.Duration
	}
}

func (t *translator) count(field string, from *int32, to *int) {
	switch {
	case from == nil:
	case *from < -1:
		t.wrong(field, "%d is not a number of workloads: use 0 or more, or -1 for no bound", *from)
	default:
		*to = int(*from)
	}
}

// oneOf reports whether value is the second of two words; empty is the first.
func (t *translator) oneOf(field, value, first, second string) bool {
	if value != "" && value != first && value != second {
		t.wrong(field, "%q is not known: use %s or %s", value, first, second)
	}
	return value == second
}

func (t *translator) placement(p *policyv1.Placement) {
	if p == nil {
		return
	}
	t.policy.Placement = t.mode("placement.default", p.Default)
	for name, mode := range p.Pools {
		if t.policy.Pools == nil {
			t.policy.Pools = map[string]decide.PlacementMode{}
		}
		t.policy.Pools[name] = t.mode("placement.pools."+name, mode)
	}
}

func (t *translator) mode(field string, mode policyv1.PlacementMode) decide.PlacementMode {
	if t.oneOf(field, string(mode), string(policyv1.BinPack), string(policyv1.Spread)) {
		return decide.Spread
	}
	return decide.BinPack
}

func (t *translator) consolidation(c *policyv1.Consolidation) {
	if c == nil {
		return
	}
	t.count("consolidation.movesPerCycle", c.MovesPerCycle, &t.policy.Moves)
	if c.Enabled != nil && !*c.Enabled {
		t.policy.Moves = 0
	}
}

func (t *translator) history(h *policyv1.UsageHistory) {
	if h == nil {
		return
	}
	k, err := strconv.ParseFloat(h.K, 64)
	switch {
	case h.K == "":
		t.policy.HistoryK = 1000
	case err != nil || k < 0 || k > 1000:
		t.wrong("usageHistory.k", "%q is not a number from 0 to 1000", h.K)
	default:
		t.policy.HistoryK = int64(k*1000 + 0.5)
	}
	t.duration("usageHistory.halfLife", h.HalfLife, &t.policy.HistoryHalfLife)
	t.duration("usageHistory.window", h.Window, &t.policy.HistoryWindow)
}
