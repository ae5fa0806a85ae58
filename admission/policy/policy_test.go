package policy

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairshard/fairshard/admission/decide"
	policyv1 "github.com/fairshard/fairshard/classes/policy/v1alpha1"
)

func span(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

func TestAnEmptyPolicyIsTheDefaults(t *testing.T) {
	got, times, err := Translate(&policyv1.FairSharePolicySpec{})
	want := decide.Defaults()
	if err != nil || got.Moves != want.Moves || got.Evictions != -1 || got.StaleGangGrace != time.Minute || got.FirstCome || got.EvictBare || got.HistoryK != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	if times.CyclePeriod != 10*time.Second || times.MessageInterval != time.Minute {
		t.Errorf("times %+v", times)
	}
}

func TestEveryFieldIsTranslated(t *testing.T) {
	got, times, err := Translate(&policyv1.FairSharePolicySpec{
		Placement:       &policyv1.Placement{Default: policyv1.Spread, Pools: map[string]policyv1.PlacementMode{"a": policyv1.BinPack}},
		Consolidation:   &policyv1.Consolidation{MovesPerCycle: new(int32(3))},
		MinRuntime:      &policyv1.MinRuntime{Preempt: span(time.Second), Reclaim: span(2 * time.Second)},
		PreemptionDelay: span(3 * time.Second), EvictionsPerCycle: new(int32(5)), StaleGangGrace: span(-1), PlacementTimeout: span(6 * time.Second),
		BarePods: policyv1.BarePodsEvict, OvercommittedQuota: policyv1.FirstCome,
		UsageHistory:    &policyv1.UsageHistory{K: "0.5", HalfLife: span(7 * time.Second), Window: span(8 * time.Second)},
		MessageInterval: span(9 * time.Second), CyclePeriod: span(10 * time.Second),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Placement != decide.Spread || got.Pools["a"] != decide.BinPack || got.Moves != 3 || got.MinRuntimePreempt != time.Second ||
		got.MinRuntimeReclaim != 2*time.Second || got.PreemptionDelay != 3*time.Second || got.Evictions != 5 || got.StaleGangGrace != -1 ||
		got.PromiseTimeout != 6*time.Second || !got.EvictBare || !got.FirstCome || got.HistoryK != 500 || got.HistoryHalfLife != 7*time.Second ||
		got.HistoryWindow != 8*time.Second || times.MessageInterval != 9*time.Second || times.CyclePeriod != 10*time.Second {
		t.Errorf("got %+v, %+v", got, times)
	}
	off, _, err := Translate(&policyv1.FairSharePolicySpec{Consolidation: &policyv1.Consolidation{Enabled: new(false), MovesPerCycle: new(int32(3))}})
	if err != nil || off.Moves != 0 {
		t.Errorf("moves %d, %v", off.Moves, err)
	}
}

func TestAllThatIsWrongIsTold(t *testing.T) {
	_, _, err := Translate(&policyv1.FairSharePolicySpec{
		Placement: &policyv1.Placement{Default: "Random"}, Consolidation: &policyv1.Consolidation{MovesPerCycle: new(int32(-2))},
		MinRuntime: &policyv1.MinRuntime{Preempt: span(-1)}, BarePods: "Maybe", OvercommittedQuota: "Never",
		UsageHistory: &policyv1.UsageHistory{K: "x"}, CyclePeriod: span(time.Millisecond),
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		"policy.placement.default", "use BinPack or Spread", "policy.consolidation.movesPerCycle", "policy.minRuntime.preempt", "policy.barePods",
		"use Never or Evict", "policy.overcommittedQuota", "policy.usageHistory.k", "policy.cyclePeriod",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}
