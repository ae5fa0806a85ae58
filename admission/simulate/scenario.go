package simulate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes/quantity"
)

// Scenario is a cluster and what should happen in it.
type Scenario struct {
	Name          string
	About         string
	FairShareOnly bool // divide, and decide nothing
	MaxCycles     int
	Now           int64 // of the first cycle, Unix nanoseconds
	Period        int64 // between cycles, nanoseconds
	Policy        decide.Policy
	Snapshot      snapshot.Snapshot
	QueueOrder    []string // for the output
	WorkloadOrder []string
	// Groups are the GPUs that labels of running work mean: node -> label -> GPU.
	Groups map[string]map[string]int
	Expect *Expect
	// ReleaseCycles is how many cycles an evicted pod holds its devices on.
	ReleaseCycles int
}

// Expect is what should be true at the end. Workloads are named by name, pods by
// name/number.
type Expect struct {
	Starts, KeepsRunning, Evicted, Moved, Waits []string
	Placement                                   map[string][]string
	GPUGroup                                    map[string][]string
	FairShare                                   map[string]quantity.MilliGPU
	Unassigned                                  *quantity.MilliGPU
}

// PodName is the name of pod i of a workload.
func PodName(workload string, i int) string { return workload + "/" + strconv.Itoa(i) }

// CheckName returns an error if no workload or pod has that name.
func (s *Scenario) CheckName(name string) error {
	workload, number, isPod := strings.Cut(name, "/")
	for i := range s.Snapshot.Workloads {
		w := &s.Snapshot.Workloads[i]
		if w.Name != workload {
			continue
		}
		if !isPod {
			return nil
		}
		if n, err := strconv.Atoi(number); err != nil || n < 0 || n >= w.PodSets[0].Count {
			return fmt.Errorf("workload %s has pods 0 to %d, not %q", workload, w.PodSets[0].Count-1, number)
		}
		return nil
	}
	return fmt.Errorf("workload %s does not exist", workload)
}

// Result is what happened.
type Result struct {
	Name       string
	Stable     bool // the last cycle changed nothing
	Cycles     int  // those that changed something
	Mismatches []string
	Queues     []Queue
	Workloads  []Workload
	Decisions  []Recorded
	Final      snapshot.Snapshot
}

// OK reports whether everything was as expected.
func (r *Result) OK() bool { return len(r.Mismatches) == 0 }

// Queue is one queue at the end.
type Queue struct {
	Name               string
	Deserved           quantity.MilliGPU // quantity.Unlimited: whatever its level has
	FairShare          quantity.MilliGPU
	Used               quantity.MilliGPU
	UsedNonPreemptible quantity.MilliGPU
	Limit              quantity.MilliGPU // quantity.Unlimited: none
}

// Workload is one workload at the end.
type Workload struct {
	Name      string
	Running   bool
	Nodes     []string // of its running pods, by number
	GPUs      [][]int  // the same: positions on the node
	Evictions int
	Reasons   []Reason
}

// Reason says why a workload waits.
type Reason struct {
	Code    string
	Message string
}

// Recorded is one decision that changed something.
type Recorded struct {
	Cycle    int
	Kind     string
	Workload string
	Pods     []string
	For      string
	Rule     string
	Message  string
}
