package scenario

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fairshard/fairshard/admission/simulate"
	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/admission/tree"
	"github.com/fairshard/fairshard/classes/quantity"
)

// Bounds of a file: a typing error should not take all memory.
const (
	maxGPUsPerNode = 1024
	maxGPUsDivided = 100_000 // where nothing is placed
	maxPods        = 100_000
)

const (
	defaultPool     = "default"
	defaultMemory   = 80 * quantity.GiB
	step            = 256 * quantity.MiB
	defaultPriority = 100
)

// builder makes a snapshot of a document.
type builder struct {
	file      *file
	scenario  *simulate.Scenario
	nodes     map[string]int
	parents   map[string]bool // queues with children
	pools     map[string]string
	workloads map[string]int
}

func (b *builder) build() error {
	for _, do := range []func() error{b.addNodes, b.addQueues, b.addWorkloads, b.addConstraints} {
		if err := do(); err != nil {
			return err
		}
	}
	b.scenario.Snapshot.Sort()
	return b.place()
}

func (b *builder) addNodes() error {
	b.nodes = map[string]int{}
	for i, n := range b.file.Spec.Nodes {
		if n.Name == "" {
			return fmt.Errorf("nodes[%d]: name is missing", i)
		}
		if _, twice := b.nodes[n.Name]; twice {
			return fmt.Errorf("node %s: there are two of this name", n.Name)
		}
		most := maxGPUsPerNode
		if b.scenario.FairShareOnly {
			most = maxGPUsDivided
		}
		if n.GPUs < 0 || n.GPUs > most {
			return fmt.Errorf("node %s: gpus %d must be 0 to %d", n.Name, n.GPUs, most)
		}
		b.nodes[n.Name] = i
		out, err := n.node()
		if err != nil {
			return err
		}
		b.scenario.Snapshot.Nodes = append(b.scenario.Snapshot.Nodes, out)
	}
	return nil
}

func (n *node) node() (snapshot.Node, error) {
	out := snapshot.Node{Name: n.Name, Hostname: n.Name, Pool: cmp.Or(n.Pool, defaultPool), Schedulable: !n.Cordoned, Free: n.free()}
	usable := cmp.Or(quantity.Bytes(n.GPUMemory), defaultMemory)
	for g := range n.GPUs {
		out.GPUs = append(out.GPUs, snapshot.GPU{
			UUID: fmt.Sprintf("%s-gpu-%d", n.Name, g), Usable: usable, Step: min(step, usable), Min: min(step, usable),
			Healthy: !slices.Contains(n.UnhealthyGPUs, g), MIG: true,
		})
	}
	for _, g := range n.UnhealthyGPUs {
		if g < 0 || g >= n.GPUs {
			return out, fmt.Errorf("node %s: unhealthyGPUs names GPU %d, it has 0 to %d", n.Name, g, n.GPUs-1)
		}
	}
	for _, f := range n.Foreign {
		if f.GPU < 0 || f.GPU >= n.GPUs {
			return out, fmt.Errorf("node %s: foreign names GPU %d, it has 0 to %d", n.Name, f.GPU, n.GPUs-1)
		}
		gpu := &out.GPUs[f.GPU]
		if f.Whole == (f.Memory > 0) || gpu.WholeUsed || f.Whole && gpu.Shares > 0 || gpu.ShareUsed.Add(quantity.Bytes(f.Memory)) > usable {
			return out, fmt.Errorf("node %s: foreign on GPU %d: give whole: true or a memory that it has", n.Name, f.GPU)
		}
		gpu.WholeUsed = f.Whole
		if !f.Whole {
			gpu.ShareUsed, gpu.Shares = gpu.ShareUsed.Add(quantity.Bytes(f.Memory)), gpu.Shares+1
		}
	}
	return out, nil
}

// free is what a node has beside GPUs; what is not said is without bound.
func (n *node) free() *snapshot.Resources {
	if n.CPU == 0 && n.Memory == 0 && n.Pods == nil && len(n.Extended) == 0 {
		return nil
	}
	const plenty = 1 << 60
	free := &snapshot.Resources{MilliCPU: plenty, Memory: plenty, Pods: plenty, Extended: amounts(n.Extended)}
	if n.CPU > 0 {
		free.MilliCPU = int64(n.CPU)
	}
	if n.Memory > 0 {
		free.Memory = quantity.Bytes(n.Memory)
	}
	if n.Pods != nil {
		free.Pods = *n.Pods
	}
	return free
}

func amounts(m map[string]int64) []snapshot.Amount {
	var out []snapshot.Amount
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, snapshot.Amount{Name: name, Value: m[name]})
	}
	return out
}

func (b *builder) addQueues() error {
	b.parents, b.pools = map[string]bool{}, map[string]string{}
	known := map[string]bool{}
	for i, q := range b.file.Spec.Queues {
		if q.Name == "" {
			return fmt.Errorf("queues[%d]: name is missing", i)
		}
		if known[q.Name] {
			return fmt.Errorf("queue %s: there are two of this name", q.Name)
		}
		known[q.Name], b.parents[q.Parent] = true, true
	}
	b.choosePools()
	for i, q := range b.file.Spec.Queues {
		if q.Parent != "" && !known[q.Parent] {
			return fmt.Errorf("queue %s: parent %s does not exist", q.Name, q.Parent)
		}
		b.addQueue(i, q)
	}
	if _, problems := tree.Build(b.scenario.Snapshot.Queues); len(problems) > 0 {
		return fmt.Errorf("queue %s: %s", problems[0].Queue, problems[0].What)
	}
	return nil
}

// choosePools gives every queue a pool: its own, that of a queue above it, the
// only one that nodes have, or the default.
func (b *builder) choosePools() {
	pool := defaultPool
	for i, n := range b.scenario.Snapshot.Nodes {
		switch {
		case i == 0:
			pool = n.Pool
		case pool != n.Pool:
			pool = defaultPool
		}
	}
	parent, own := map[string]string{}, map[string]string{}
	for _, q := range b.file.Spec.Queues {
		parent[q.Name], own[q.Name] = q.Parent, q.Pool
	}
	for _, q := range b.file.Spec.Queues {
		b.pools[q.Name] = pool
		at := q.Name
		for range b.file.Spec.Queues {
			if own[at] != "" {
				b.pools[q.Name] = own[at]
				break
			}
			at = parent[at]
		}
	}
}

func (b *builder) addQueue(i int, q queue) {
	out := snapshot.Queue{
		Name: q.Name, Parent: q.Parent, Cohort: b.parents[q.Name], Limit: quantity.Unlimited, Weight: 1000,
		Priority: defaultPriority, Created: int64(i + 1), Strict: q.Strict,
	}
	if !out.Cohort {
		out.Pool = b.pools[q.Name]
	}
	out.SumChildren = out.Cohort && q.Deserved == nil
	if q.Deserved != nil {
		out.Deserved = quantity.MilliGPU(*q.Deserved)
	}
	if q.Limit != nil {
		out.Limit = quantity.MilliGPU(*q.Limit)
	}
	if q.Weight != nil {
		out.Weight = int64(*q.Weight)
	}
	if q.Priority != nil {
		out.Priority = *q.Priority
	}
	if q.Demand != nil && b.scenario.FairShareOnly {
		demand := quantity.MilliGPU(*q.Demand)
		out.Demand = &demand
	}
	if q.MinRuntime != nil {
		out.MinRuntimePreempt, out.MinRuntimeReclaim = q.MinRuntime.Preempt.nanoseconds(), q.MinRuntime.Reclaim.nanoseconds()
	}
	if q.Usage != nil {
		window := int64(b.scenario.Policy.HistoryWindow)
		b.scenario.Snapshot.Usage = append(b.scenario.Snapshot.Usage, snapshot.Sample{Queue: q.Name, From: Now - window, To: Now, Used: quantity.MilliGPU(*q.Usage)})
	}
	b.scenario.Snapshot.Queues = append(b.scenario.Snapshot.Queues, out)
	b.scenario.QueueOrder = append(b.scenario.QueueOrder, q.Name)
}

func (d *duration) nanoseconds() *int64 {
	if d == nil {
		return nil
	}
	n := int64(*d)
	return &n
}

func (b *builder) addWorkloads() error {
	b.workloads = map[string]int{}
	for i := range b.file.Spec.Workloads {
		w := &b.file.Spec.Workloads[i]
		if w.Name == "" || strings.Contains(w.Name, "/") {
			return fmt.Errorf("workloads[%d]: name %q must be there and hold no slash", i, w.Name)
		}
		if _, twice := b.workloads[w.Name]; twice {
			return fmt.Errorf("workload %s: there are two of this name", w.Name)
		}
		b.workloads[w.Name] = i
		out, err := b.workload(i, w)
		if err != nil {
			return fmt.Errorf("workload %s: %w", w.Name, err)
		}
		b.scenario.Snapshot.Workloads = append(b.scenario.Snapshot.Workloads, out)
		b.scenario.WorkloadOrder = append(b.scenario.WorkloadOrder, w.Name)
	}
	return nil
}

func (b *builder) workload(i int, w *workload) (snapshot.Workload, error) {
	out := snapshot.Workload{
		Name: w.Name, UID: w.Name, Queue: w.Queue, Priority: 50, Created: Now - int64(w.WaitingFor) - int64(len(b.file.Spec.Workloads)-i),
		NonPreemptible: w.Preemptible != nil && !*w.Preemptible, Bare: w.Bare,
	}
	if w.Priority != nil {
		out.Priority = *w.Priority
	}
	if pool, known := b.pools[w.Queue]; !known || pool == "" {
		return out, fmt.Errorf("queue %q does not exist", w.Queue)
	}
	if b.parents[w.Queue] {
		return out, fmt.Errorf("queue %s has children: work belongs in a queue without", w.Queue)
	}
	set, err := b.podSet(w)
	if err != nil {
		return out, err
	}
	if w.MinPods != nil && (*w.MinPods < 1 || *w.MinPods > set.Count) {
		return out, fmt.Errorf("minPods %d must be 1 to pods, which is %d", *w.MinPods, set.Count)
	}
	if w.MinPods != nil && *w.MinPods < set.Count {
		out.MinPods = *w.MinPods
	}
	if w.EvictedAgo > 0 {
		out.EvictedAt = Now - int64(w.EvictedAgo)
	}
	out.PodSets = []snapshot.PodSet{set}
	return out, b.state(w, &out)
}

// state reads whether the workload runs, and which of its pods.
func (b *builder) state(w *workload, out *snapshot.Workload) error {
	set := &out.PodSets[0]
	switch w.State {
	case "", "Pending":
		if len(w.Nodes) > 0 || w.PendingPods > 0 || len(w.GPUGroup) > 0 {
			return fmt.Errorf("it is Pending: nodes, gpuGroup and pendingPods are for Running work")
		}
		return nil
	case "Running":
	default:
		return fmt.Errorf("state %q is not known: write Running or Pending", w.State)
	}
	if len(w.Nodes) == 0 || len(w.Nodes)+w.PendingPods > set.Count || w.PendingPods < 0 {
		return fmt.Errorf("it is Running with %d nodes and %d pendingPods of %d pods: name the node of every running pod", len(w.Nodes), w.PendingPods, set.Count)
	}
	if len(w.GPUGroup) > 0 && len(w.GPUGroup) != len(w.Nodes) {
		return fmt.Errorf("gpuGroup has %d labels for %d running pods", len(w.GPUGroup), len(w.Nodes))
	}
	out.State, out.StartedAt = snapshot.Started, Now-int64(w.RunningFor)
	if w.BelowMinimumFor > 0 {
		out.ShortSince = Now - int64(w.BelowMinimumFor)
	}
	for i := range set.Count {
		pod := snapshot.Pod{Name: simulate.PodName(w.Name, i), Gated: true}
		if i < len(w.Nodes) {
			if _, known := b.nodes[w.Nodes[i]]; !known {
				return fmt.Errorf("node %s does not exist", w.Nodes[i])
			}
			pod = snapshot.Pod{Name: pod.Name, Node: w.Nodes[i], Bound: true, Allocated: true}
		}
		set.Pods = append(set.Pods, pod)
	}
	return nil
}
