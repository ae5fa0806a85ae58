package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Group and Version of the policy objects.
const (
	Group   = "fairshard.dev"
	Version = "v1alpha1"
)

// FairSharePolicy says how the planner divides, places and evicts.
type FairSharePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FairSharePolicySpec `json:"spec,omitempty"`
}

// FairSharePolicySpec is what an administrator chooses. An absent field has its default.
type FairSharePolicySpec struct {
	// Placement over nodes; inside a node the published order of devices packs.
	Placement *Placement `json:"placement,omitempty"`
	// Consolidation moves work so that waiting work fits.
	Consolidation *Consolidation `json:"consolidation,omitempty"`
	// MinRuntime is how long work runs before it may be evicted; 0s by default.
	MinRuntime *MinRuntime `json:"minRuntime,omitempty"`
	// PreemptionDelay is how long work waits, after it was created or evicted,
	// before others give way for it; 0s by default.
	PreemptionDelay *metav1.Duration `json:"preemptionDelay,omitempty"`
	// EvictionsPerCycle is the most workloads that one cycle evicts; -1, the
	// default, is without bound. Moves are counted by Consolidation.
	EvictionsPerCycle *int32 `json:"evictionsPerCycle,omitempty"`
	// StaleGangGrace is how long a gang may run with fewer pods than its minimum;
	// 60s by default, negative = for ever.
	StaleGangGrace *metav1.Duration `json:"staleGangGrace,omitempty"`
	// PlacementTimeout is how long a pod may take from its start to running, and
	// how long devices are kept for whom they were freed for; 5m by default.
	PlacementTimeout *metav1.Duration `json:"placementTimeout,omitempty"`
	// BarePods says whether pods without an owner may be evicted although that
	// ends them: Never (default) or Evict.
	BarePods BarePods `json:"barePods,omitempty"`
	// OvercommittedQuota says what happens when queues deserve more than there
	// is: Proportional (default) scales all, FirstCome serves who comes first.
	OvercommittedQuota OvercommittedQuota `json:"overcommittedQuota,omitempty"`
	// UsageHistory lets past use count against a queue; absent = it does not.
	UsageHistory *UsageHistory `json:"usageHistory,omitempty"`
	// MessageInterval is the shortest time between two messages of one workload
	// that differ in numbers only; 1m by default.
	MessageInterval *metav1.Duration `json:"messageInterval,omitempty"`
	// CyclePeriod is the longest time between two cycles; 10s by default.
	CyclePeriod *metav1.Duration `json:"cyclePeriod,omitempty"`
}

// Placement chooses the order in which nodes are tried.
type Placement struct {
	// Default is for pools that are not named: BinPack (default) or Spread.
	Default PlacementMode `json:"default,omitempty"`
	// Pools by name.
	Pools map[string]PlacementMode `json:"pools,omitempty"`
}

// PlacementMode is BinPack, the fullest node first, or Spread, the emptiest first.
type PlacementMode string

// The placement modes.
const (
	BinPack PlacementMode = "BinPack"
	Spread  PlacementMode = "Spread"
)

// Consolidation moves preemptible work to make room.
type Consolidation struct {
	// Enabled is true by default.
	Enabled *bool `json:"enabled,omitempty"`
	// MovesPerCycle is the most workloads that one cycle moves; 16 by default, -1 = without bound.
	MovesPerCycle *int32 `json:"movesPerCycle,omitempty"`
}

// MinRuntime protects work that started a short time ago. A queue's own value,
// or the nearest above it, comes before these.
type MinRuntime struct {
	// Preempt is against more important work of the same queue.
	Preempt *metav1.Duration `json:"preempt,omitempty"`
	// Reclaim is against other queues, and against being moved.
	Reclaim *metav1.Duration `json:"reclaim,omitempty"`
}

// BarePods is Never or Evict.
type BarePods string

// What may happen to pods without an owner.
const (
	BarePodsNever BarePods = "Never"
	BarePodsEvict BarePods = "Evict"
)

// OvercommittedQuota is Proportional or FirstCome.
type OvercommittedQuota string

// What happens when queues deserve more than there is.
const (
	Proportional OvercommittedQuota = "Proportional"
	FirstCome    OvercommittedQuota = "FirstCome"
)

// UsageHistory says how past use counts.
type UsageHistory struct {
	// K is how much: a decimal such as "1" or "0.5". A queue that used more than
	// its weight says gets k times the difference less of over-quota.
	K string `json:"k,omitempty"`
	// HalfLife is the age at which use counts half; absent = all of the window counts alike.
	HalfLife *metav1.Duration `json:"halfLife,omitempty"`
	// Window is how far back use counts; 168h by default.
	Window *metav1.Duration `json:"window,omitempty"`
}
