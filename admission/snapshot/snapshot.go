package snapshot

import "github.com/fairshard/fairshard/classes/quantity"

// Snapshot is everything a cycle decides on. Build sorts it; equal clusters
// give equal snapshots whatever the order of the lists that came in.
type Snapshot struct {
	Nodes     []Node
	Queues    []Queue
	Workloads []Workload
}

// Node is one machine of a pool.
type Node struct {
	Name        string
	Pool        string // ResourceFlavor whose node labels match; "" = in no pool
	Hostname    string // value of kubernetes.io/hostname: what a pod is pinned to
	Schedulable bool   // ready and not cordoned
	GPUs        []GPU  // in published order: shares are allocated from the front, whole GPUs from the back
}

// GPU is one physical GPU and what claims hold of it now.
type GPU struct {
	UUID      string
	Usable    quantity.Bytes // capacity of its share device
	Step      quantity.Bytes // requests round up to Min + n*Step
	Min       quantity.Bytes
	Healthy   bool           // no taint that keeps new work away
	WholeUsed bool           // an allocated claim holds the whole device
	ShareUsed quantity.Bytes // sum of the shares that allocated claims hold
	Shares    int            // number of those shares
}

// Queue is a ClusterQueue.
type Queue struct {
	Name     string
	Pool     string            // its one milligpu flavor
	Cohort   string            // parent, "" = none
	Deserved quantity.MilliGPU // nominalQuota
	Strict   bool              // StrictFIFO: the head blocks the rest
}

// WorkloadState says what Kueue and our check have agreed on so far.
type WorkloadState int

// The states a Workload can be in when a cycle sees it.
const (
	Waiting WorkloadState = iota // quota reserved, our check Pending
	Started                      // our check is Ready: its pods exist or will
)

// Workload is one Kueue Workload with a quota reservation.
type Workload struct {
	Namespace string
	Name      string
	UID       string
	Queue     string
	Priority  int32
	Created   int64 // creation time, Unix nanoseconds: age among equal priorities
	State     WorkloadState
	// Uncharged: it names devices and its demand is unknown, because it was
	// reserved before our webhook saw it. It must not start as if it were free.
	Uncharged bool
	PodSets   []PodSet
}

// Key returns "namespace/name".
func (w Workload) Key() string { return w.Namespace + "/" + w.Name }

// PodSet is Count equal pods.
type PodSet struct {
	Name     string
	Count    int
	Requests []Request // of one pod
	Pods     []Pod     // those that exist and are not finished; only of Started workloads
}

// RequestKind is the kind of device a request takes.
type RequestKind int

// The kinds of device.
const (
	Whole RequestKind = iota
	Share
)

// Request is one request of a claim: Count distinct GPUs of one node.
type Request struct {
	Kind  RequestKind
	Count int
	Bytes quantity.Bytes // Share: per GPU; 0 = everything, as the published default says
	Apart int            // requests of one pod with the same number take distinct GPUs; 0 = may share one
}

// Pod is one existing, unfinished pod of a Started workload.
type Pod struct {
	Name      string
	Node      string // pinned or bound; "" while it is gated
	Gated     bool   // carries our scheduling gate
	Allocated bool   // its claims hold devices, which GPU.WholeUsed and ShareUsed already count
}
