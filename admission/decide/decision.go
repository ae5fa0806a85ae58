package decide

import (
	"time"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
)

// Policy is what an administrator chose, with defaults filled in.
type Policy struct {
	Placement PlacementMode            // of pools that are not named in Pools
	Pools     map[string]PlacementMode // by pool
	// FirstCome: when the deserved of a level adds up to more than it has, each
	// keeps its full promise and who comes first is served. Else all are scaled.
	FirstCome bool
	// Moves is the most workloads that one cycle moves to make room; 0 = none, -1 = without bound.
	Moves int
	// Evictions is the most workloads that one cycle evicts, moves not counted; -1 = without bound.
	Evictions         int
	MinRuntimePreempt time.Duration // no victim of its own queue before it has run so long
	MinRuntimeReclaim time.Duration // no victim of other queues, and not moved
	PreemptionDelay   time.Duration // after creation or eviction, before it makes others give way
	StaleGangGrace    time.Duration // how long a gang may run short of its minimum; negative = for ever
	PromiseTimeout    time.Duration // how long devices are kept for the workload they were freed for
	EvictBare         bool          // work without an owner may be a victim although its eviction ends it
	// History: how much past use counts against a queue. HistoryK in thousandths, 0 = not at all.
	HistoryK        int64
	HistoryHalfLife time.Duration // 0 = every sample of the window counts alike
	HistoryWindow   time.Duration
}

// Defaults is the policy of an empty FairSharePolicy.
func Defaults() Policy {
	return Policy{
		Moves: 16, Evictions: -1, StaleGangGrace: time.Minute, PromiseTimeout: 5 * time.Minute,
		HistoryWindow: 7 * 24 * time.Hour,
	}
}

// PlacementMode orders the nodes a pod is tried on.
type PlacementMode int

// The placement modes.
const (
	BinPack PlacementMode = iota // fullest node that fits first (default)
	Spread                       // emptiest node first
)

// Kind says what a Decision does.
type Kind int

// The kinds of decision.
const (
	Start   Kind = iota // set our check Ready: the gang fits
	Release             // pin one gated pod to Node and remove its gate
	Hold                // keep waiting, with Reason and Numbers
	Evict               // take the workload, or the surplus pods named in Pods, away from its devices
)

// Rule says why somebody may be evicted.
type Rule string

// The rules of eviction.
const (
	RuleReclaimFairShare Rule = "ReclaimFairShare" // its queue is above its fair share
	RuleReclaimDeserved  Rule = "ReclaimDeserved"  // its queue is above what it deserves, and another is not
	RulePreempt          Rule = "Preempt"          // more important work of its own queue
	RuleConsolidate      Rule = "Consolidate"      // it fits elsewhere, and another fits where it was
	RuleStaleGang        Rule = "StaleGang"        // it ran short of its minimum for too long
)

// Ref names a workload.
type Ref struct {
	Namespace, Name, UID, Queue string
}

// Key returns "namespace/name"; the name alone in a scenario, which has no namespaces.
func (r Ref) Key() string {
	if r.Namespace == "" {
		return r.Name
	}
	return r.Namespace + "/" + r.Name
}

// Decision is one thing to do to one Workload. The decisions of a plan stand
// together: first the Hold of the one that gets the room, with its Promise,
// then an Evict for each of its Victims.
type Decision struct {
	Kind      Kind
	Namespace string // of the Workload
	Workload  string
	UID       string // of the Workload it was made for: a recreated one is another
	Queue     string
	Pod       string   // Release: name of the pod; Hold on a Started workload: the pod that fits nowhere
	Pods      []string // Evict: names of the surplus pods to take; empty = the whole workload
	Node      string   // Release: node name; "" if the pod asks for no device of ours
	Hostname  string   // Release: the value to pin; "" = no pin
	// Placement of a Start: for every podSet, the node of every pod that is released.
	Placement [][]string
	// Turns of a Start, beside Placement, and of a Release: all pods of the cycle
	// fit if their devices are allocated in this order.
	Turns   [][]int
	Reason  classes.Reason    // Hold
	Rule    Rule              // Evict
	For     Ref               // Evict: who gets the room; zero for a stale gang
	Victims []Ref             // Hold: who was told to leave for it
	Promise *snapshot.Promise // Hold, Evict: to be remembered and handed back in the next snapshot
	Numbers Numbers           // Hold, Evict, Start
}

// Ref names the workload of d.
func (d Decision) Ref() Ref { return Ref{d.Namespace, d.Workload, d.UID, d.Queue} }

// Numbers are the facts a message is made of. Unused ones are zero.
type Numbers struct {
	Pool         string
	Queue        string
	Pods         int            // pods that must start together
	WantGPUs     int            // GPUs (distinct devices) one pod asks for
	Whole        bool           // it asks for whole GPUs, not shares
	Profile      string         // it asks for MIG devices of this profile
	WantBytes    quantity.Bytes // per share
	WantPPM      int64          // per share, as a part of a GPU in millionths
	FreeGPUs     int            // in the pool: GPUs that could take one such request now
	TotalGPUs    int            // in the pool: healthy GPUs
	LargestBytes quantity.Bytes // largest usable memory of a GPU of the pool
	MostOnNode   int            // most GPUs of one node that could take the request, were they free
	PlacedPods   int            // pods of the gang that fit before it ran out
	FitNodes     int            // nodes with GPUs for one such pod now that CPU, memory, taints or selectors rule out
	GangFits     int            // pods of the gang that the pool's hardware could ever hold
	Ahead        string         // BehindHead: the workload in front

	At       string            // the queue of the path that stops it, or whose numbers these are
	Deserved quantity.MilliGPU // of At
	Share    quantity.MilliGPU // fair share of At
	Used     quantity.MilliGPU // by At now; non-preemptible work alone where the reason is about that
	Limit    quantity.MilliGPU // of At
	Want     quantity.MilliGPU // what the requester asks for in all
	Freed    quantity.MilliGPU // what the victims of a plan hold
	Victims  int               // how many workloads a plan evicts
	Wait     time.Duration     // how long until the reason may be over

	// The other side of an eviction: the requester's queue in an Evict.
	OtherAt       string
	OtherDeserved quantity.MilliGPU
	OtherShare    quantity.MilliGPU
	OtherUsed     quantity.MilliGPU
	Priority      int32 // Preempt: of the victim
	OtherPriority int32 // Preempt: of the requester
}

// CycleFunc is the signature of the planner.
type CycleFunc func(s snapshot.Snapshot, p Policy, now time.Time) []Decision
