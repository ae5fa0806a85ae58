package snapshot

import "github.com/fairshard/fairshard/classes/quantity"

// Snapshot is everything a cycle decides on, as plain values that can be
// written to a file and read back. Sort brings it into its one order; equal
// clusters give equal snapshots whatever the order of the lists that came in.
// Times are Unix nanoseconds; 0 means unknown.
type Snapshot struct {
	Nodes     []Node
	Queues    []Queue
	Workloads []Workload
	// Constraints are the distinct hard node constraints of podSets, which name
	// one by its position, counted from 1.
	Constraints []Constraint `json:",omitempty"`
	// Usage is what queues used in the past; empty without history.
	Usage []Sample `json:",omitempty"`
}

// Node is one machine of a pool.
type Node struct {
	Name        string
	Pool        string // ResourceFlavor whose node labels match; "" = in no pool
	Hostname    string // value of kubernetes.io/hostname: what a pod is pinned to
	Schedulable bool   // ready and not cordoned
	// Free is what the node can still give beside GPUs: its allocatable less the
	// requests of every pod that is bound to it. nil = without bound.
	Free *Resources `json:",omitempty"`
	GPUs []GPU      // in published order: shares are allocated from the front, whole GPUs from the back
}

// Resources are what a pod takes of a node beside GPUs.
type Resources struct {
	MilliCPU int64
	Memory   quantity.Bytes
	Pods     int64
	Extended []Amount `json:",omitempty"` // by name
}

// Amount is a number of one extended resource.
type Amount struct {
	Name  string
	Value int64
}

// Constraint says where pods may run at all: what node selectors, required
// affinity and untolerated taints leave over.
type Constraint struct {
	Nodes []string // names, sorted
}

// GPU is one physical GPU and what is held of it now, by whomever.
type GPU struct {
	UUID      string
	Usable    quantity.Bytes // capacity of its share device
	Step      quantity.Bytes // requests round up to Min + n*Step
	Min       quantity.Bytes
	Healthy   bool           // no taint that keeps new work away
	NoShares  bool           `json:",omitempty"` // publishes no share device: its node is for MIG
	MIG       bool           `json:",omitempty"` // publishes MIG devices
	WholeUsed bool           `json:",omitempty"` // somebody holds the whole device
	ShareUsed quantity.Bytes `json:",omitempty"` // sum of the shares that are held
	Shares    int            `json:",omitempty"` // number of those shares
	MIGUsed   uint8          `json:",omitempty"` // memory slices that MIG devices hold, bit i = slice i
}

// Queue is a node of the tree: a Cohort, or a ClusterQueue, which is a leaf.
type Queue struct {
	Name   string
	Cohort bool   `json:",omitempty"` // a Cohort; else a ClusterQueue
	Parent string `json:",omitempty"` // name of a Cohort, "" = a root
	Pool   string `json:",omitempty"` // ClusterQueue: its one milligpu flavor. Cohort: that of its queues, left empty
	// Deserved is what the queue is promised; quantity.Unlimited = whatever its
	// level has. SumChildren adds what its children deserve.
	Deserved    quantity.MilliGPU
	SumChildren bool              `json:",omitempty"`
	Limit       quantity.MilliGPU // quantity.Unlimited = none
	Weight      int64             // of over-quota among siblings, in thousandths; 0 = none when others want it
	Priority    int32             // of over-quota among siblings; higher first
	Created     int64
	Strict      bool `json:",omitempty"` // StrictFIFO: the head blocks the rest
	// Demand overrides what the queue asks for; nil = the sum of its workloads.
	Demand *quantity.MilliGPU `json:",omitempty"`
	// Minimum run times of its work, in nanoseconds, against preemption inside
	// the queue and against reclaim by others; nil = that of the parent, in the
	// end that of the policy.
	MinRuntimePreempt *int64 `json:",omitempty"`
	MinRuntimeReclaim *int64 `json:",omitempty"`
}

// Sample is what a queue used on average over some time.
type Sample struct {
	Queue    string            // a ClusterQueue
	From, To int64             // Unix nanoseconds
	Used     quantity.MilliGPU // average over that time
}

// WorkloadState says what Kueue and our check have agreed on so far.
type WorkloadState int

// The states a Workload can be in when a cycle sees it.
const (
	Waiting   WorkloadState = iota // quota reserved, our check Pending
	Started                        // our check is Ready: its pods exist or will
	Returning                      // evicted and not queued again yet: it asks for its devices, and cannot start now
	Ended                          // over, or without a reservation: only what its pods still hold matters
)

// Workload is one Kueue Workload with a quota reservation.
type Workload struct {
	Namespace string
	Name      string
	UID       string
	Queue     string // ClusterQueue
	Priority  int32
	Created   int64 // of its owner: age among equal priorities
	State     WorkloadState
	// NonPreemptible work runs only inside deserved, at every ancestor, and is
	// never a victim.
	NonPreemptible bool `json:",omitempty"`
	// Bare work has no owner that would make its pods again: an eviction ends it.
	Bare bool `json:",omitempty"`
	// Uncharged: it names devices and its demand is unknown, because it was
	// reserved before our webhook saw it. It must not start as if it were free.
	Uncharged bool `json:",omitempty"`
	// MinPods is the gang of an elastic workload of one podSet; 0 = all pods.
	MinPods    int   `json:",omitempty"`
	StartedAt  int64 `json:",omitempty"` // Started: since when
	EvictedAt  int64 `json:",omitempty"` // last eviction
	ShortSince int64 `json:",omitempty"` // Started: since when fewer pods than the gang run; 0 = not short
	// Promise is what an earlier cycle set aside for it.
	Promise *Promise `json:",omitempty"`
	PodSets []PodSet
}

// Promise are the nodes that a workload was planned on when others were
// evicted or moved for it, or when it was moved itself. It goes first there.
type Promise struct {
	Nodes [][]string // per podSet, the node of every pod
	Since int64
	Turn  int // promises of the same time are kept in this order: then all fit
}

// Key returns "namespace/name"; the name alone in a scenario, which has no namespaces.
func (w *Workload) Key() string {
	if w.Namespace == "" {
		return w.Name
	}
	return w.Namespace + "/" + w.Name
}

// PodSet is Count equal pods.
type PodSet struct {
	Name       string
	Count      int
	Requests   []Request         // of one pod
	Charge     quantity.MilliGPU // of one pod, in units of its pool
	Needs      Resources         // of one pod, beside GPUs
	Constraint int               `json:",omitempty"` // position in Snapshot.Constraints, from 1; 0 = none
	// Pods are those that exist and are not finished. Pods of a workload that
	// is not Started are leaving, whatever they say.
	Pods []Pod `json:",omitempty"`
}

// RequestKind is the kind of device a request takes.
type RequestKind int

// The kinds of device.
const (
	Whole RequestKind = iota
	Share
	MIG
)

// Request is one request of a claim: Count distinct GPUs of one node.
type Request struct {
	Kind  RequestKind
	Count int
	Bytes quantity.Bytes `json:",omitempty"` // Share: per GPU; 0 = everything, as the published default says
	// PPM asks for a share as a part of whatever GPU it lands on, in millionths;
	// 0 = by Bytes.
	PPM     int64      `json:",omitempty"`
	Profile MIGProfile `json:",omitzero"`  // MIG
	Apart   int        `json:",omitempty"` // requests of one pod with the same number take distinct GPUs; 0 = may share one
}

// MIGProfile is a size of MIG device.
type MIGProfile struct {
	Name    string // "1g.10gb"
	Compute int    // of 7 compute slices
	Slices  int    // of 8 memory slices
}

// Pod is one existing, unfinished pod.
type Pod struct {
	Name      string
	Node      string // pinned or bound; "" while it is gated
	Gated     bool   `json:",omitempty"` // carries our scheduling gate
	Bound     bool   `json:",omitempty"` // has its node: Node.Free counts its Needs already
	Allocated bool   `json:",omitempty"` // its claims hold Devices, which the GPUs count already
	Leaving   bool   `json:",omitempty"` // is being ended; what it holds will be free
	Devices   []Held `json:",omitempty"`
}

// Held is one device that a pod holds on its node.
type Held struct {
	GPU   int // position in Node.GPUs
	Kind  RequestKind
	Bytes quantity.Bytes `json:",omitempty"` // Share
	Mask  uint8          `json:",omitempty"` // MIG: its memory slices
}
