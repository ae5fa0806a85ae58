package decide

import (
	"time"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
)

// Policy is what an administrator chose, with defaults filled in.
type Policy struct {
	Placement PlacementMode
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
	Start   Kind = iota // set our check Ready: the whole gang fits
	Release             // pin one gated pod to Node and remove its gate
	Hold                // keep waiting, with Reason and Numbers
)

// Decision is one thing to do to one Workload.
type Decision struct {
	Kind      Kind
	Namespace string // of the Workload
	Workload  string
	UID       string // of the Workload it was made for: a recreated one is another
	Pod       string // Release: name of the pod; Hold on a Started workload: the pod that fits nowhere
	Node      string // Release: node name; "" if the pod asks for no device of ours
	Hostname  string // Release: the value to pin; "" = no pin
	// Placement of a Start: for every podSet, the node of every pod.
	Placement [][]string
	Reason    classes.Reason // Hold
	Numbers   Numbers        // Hold
}

// Numbers are the facts a message is made of. Unused ones are zero.
type Numbers struct {
	Pool         string
	Queue        string
	Pods         int            // pods that must start together
	WantGPUs     int            // GPUs (distinct devices) one pod asks for
	Whole        bool           // it asks for whole GPUs, not shares
	WantBytes    quantity.Bytes // per share
	FreeGPUs     int            // in the pool: GPUs that could take one such request now
	TotalGPUs    int            // in the pool: healthy GPUs
	LargestBytes quantity.Bytes // largest usable memory of a GPU of the pool
	MostOnNode   int            // most GPUs of one node that could take the request, were they free
	PlacedPods   int            // pods of the gang that fit before it ran out
	Ahead        string         // BehindHead: the workload in front
}

// CycleFunc is the signature of the planner.
type CycleFunc func(s snapshot.Snapshot, p Policy, now time.Time) []Decision
