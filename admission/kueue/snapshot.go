package kueue

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
)

// podSetLabel is what Kueue puts on the pods of an admitted Workload, with the name of their podSet.
const podSetLabel = "kueue.x-k8s.io/podset"

// Cluster is the lists that a snapshot is made of.
type Cluster struct {
	Nodes         []corev1.Node
	Slices        []resourcev1.ResourceSlice
	Claims        []resourcev1.ResourceClaim
	Flavors       []kueuev1.ResourceFlavor
	ClusterQueues []kueuev1.ClusterQueue
	Workloads     []kueuev1.Workload
	Pods          []corev1.Pod // of started work; others only matter through their claims
	Ours          func(kueuev1.AdmissionCheckReference) bool
}

// Snapshot translates the cluster to what a cycle decides on, sorted.
func (c Cluster) Snapshot() snapshot.Snapshot {
	var s snapshot.Snapshot
	for i := range c.ClusterQueues {
		if queue := &c.ClusterQueues[i]; Managed(queue, c.Ours) {
			s.Queues = append(s.Queues, queueOf(queue))
		}
	}
	s.Nodes = c.nodes(s.Queues)
	pods := c.pods()
	for i := range c.Workloads {
		if w, included := c.workload(&c.Workloads[i], pods); included {
			s.Workloads = append(s.Workloads, w)
		}
	}
	s.Sort()
	return s
}

func queueOf(queue *kueuev1.ClusterQueue) snapshot.Queue {
	q := snapshot.Queue{
		Name: queue.Name, Cohort: string(queue.Spec.CohortName),
		Strict: queue.Spec.QueueingStrategy == kueuev1.StrictFIFO,
	}
	if flavors := MilliGPUFlavors(queue); len(flavors) == 1 {
		q.Pool = string(flavors[0])
	}
	for _, group := range queue.Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			for _, r := range flavor.Resources {
				if r.Name == classes.ResourceMilliGPU && string(flavor.Name) == q.Pool {
					q.Deserved = quantity.MilliGPU(r.NominalQuota.Value())
				}
			}
		}
	}
	return q
}

// nodes lists the nodes of the queues' pools with their GPUs and what is held of them.
func (c Cluster) nodes(queues []snapshot.Queue) []snapshot.Node {
	flavors := slices.DeleteFunc(slices.Clone(c.Flavors), func(f kueuev1.ResourceFlavor) bool {
		return !slices.ContainsFunc(queues, func(q snapshot.Queue) bool { return q.Pool == f.Name })
	})
	// The flavor with most labels is the most specific one; a node is in one pool.
	slices.SortFunc(flavors, func(a, b kueuev1.ResourceFlavor) int {
		return cmp.Or(cmp.Compare(len(b.Spec.NodeLabels), len(a.Spec.NodeLabels)), strings.Compare(a.Name, b.Name))
	})
	devices := devicesOf(c.Slices)
	devices.hold(c.Claims)
	var nodes []snapshot.Node
	for i := range c.Nodes {
		node := &c.Nodes[i]
		at := slices.IndexFunc(flavors, func(f kueuev1.ResourceFlavor) bool { return matches(node, &f) })
		if at < 0 {
			continue
		}
		nodes = append(nodes, snapshot.Node{
			Name: node.Name, Pool: flavors[at].Name, Hostname: node.Labels[corev1.LabelHostname],
			Schedulable: schedulable(node), GPUs: devices.gpus(node.Name),
		})
	}
	return nodes
}

func schedulable(node *corev1.Node) bool {
	if node.Spec.Unschedulable || node.DeletionTimestamp != nil {
		return false
	}
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// devices joins the share and whole devices of each GPU.
type devices struct {
	byNode map[string][]*snapshot.GPU // in the order of share devices, as published
	byName map[string]*device         // pool/device
}

// device is one published device.
type device struct {
	gpu   *snapshot.GPU
	whole bool
}

func devicesOf(all []resourcev1.ResourceSlice) devices {
	d := devices{byNode: map[string][]*snapshot.GPU{}, byName: map[string]*device{}}
	gpus := map[string]*snapshot.GPU{}
	for _, slice := range current(all) {
		if slice.Spec.NodeName == nil {
			continue
		}
		for i := range slice.Spec.Devices {
			published := &slice.Spec.Devices[i]
			uuid := text(published, classes.AttrUUID)
			gpu := gpus[*slice.Spec.NodeName+"/"+uuid]
			if gpu == nil {
				gpu = &snapshot.GPU{UUID: uuid, Healthy: true}
				gpus[*slice.Spec.NodeName+"/"+uuid] = gpu
				d.byNode[*slice.Spec.NodeName] = append(d.byNode[*slice.Spec.NodeName], gpu)
			}
			gpu.Healthy = gpu.Healthy && !slices.ContainsFunc(published.Taints, keepsAway)
			facts, isShare := shareFacts(published)
			if isShare {
				gpu.Usable, gpu.Step, gpu.Min = facts.Usable, facts.Step, facts.Min
			}
			d.byName[slice.Spec.Pool.Name+"/"+published.Name] = &device{gpu: gpu, whole: !isShare}
		}
	}
	return d
}

func keepsAway(taint resourcev1.DeviceTaint) bool {
	return taint.Effect == resourcev1.DeviceTaintEffectNoSchedule || taint.Effect == resourcev1.DeviceTaintEffectNoExecute
}

// hold marks what allocated claims have; admin access holds nothing.
func (d devices) hold(claims []resourcev1.ResourceClaim) {
	for i := range claims {
		if claims[i].Status.Allocation == nil {
			continue
		}
		for _, result := range claims[i].Status.Allocation.Devices.Results {
			known := d.byName[result.Pool+"/"+result.Device]
			if known == nil || result.Driver != classes.DriverName || result.AdminAccess != nil && *result.AdminAccess {
				continue
			}
			if known.whole {
				known.gpu.WholeUsed = true
				continue
			}
			held := known.gpu.Usable
			if consumed, said := result.ConsumedCapacity[classes.CapMemory]; said {
				held = quantity.Bytes(consumed.Value())
			}
			known.gpu.ShareUsed = known.gpu.ShareUsed.Add(held)
			known.gpu.Shares++
		}
	}
}

func (d devices) gpus(node string) []snapshot.GPU {
	var out []snapshot.GPU
	for _, gpu := range d.byNode[node] {
		out = append(out, *gpu)
	}
	return out
}

// pods is what a snapshot needs to know of all pods.
type pods struct {
	byWorkload map[string][]*corev1.Pod // namespace/Workload -> its unfinished pods
	holders    map[types.UID]bool       // pods whose claims hold devices of ours
	nodes      map[string]string        // hostname label -> node name: a pin names the former
}

func (c Cluster) pods() pods {
	p := pods{byWorkload: map[string][]*corev1.Pod{}, holders: holdersOf(c.Claims), nodes: map[string]string{}}
	for i := range c.Nodes {
		p.nodes[c.Nodes[i].Labels[corev1.LabelHostname]] = c.Nodes[i].Name
	}
	byOwner := map[types.UID]string{}
	for i := range c.Workloads {
		for _, owner := range c.Workloads[i].OwnerReferences {
			byOwner[owner.UID] = c.Workloads[i].Namespace + "/" + c.Workloads[i].Name
		}
	}
	for i := range c.Pods {
		pod := &c.Pods[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if key := workloadOf(pod, byOwner); key != "" {
			p.byWorkload[key] = append(p.byWorkload[key], pod)
		}
	}
	return p
}

// workloadOf returns namespace/name of a pod's Workload: Kueue writes its name
// on the pod; without that, the pod's owner owns the Workload too.
func workloadOf(pod *corev1.Pod, byOwner map[types.UID]string) string {
	if name := pod.Annotations[kueuev1.WorkloadAnnotation]; name != "" {
		return pod.Namespace + "/" + name
	}
	for _, owner := range pod.OwnerReferences {
		if key := byOwner[owner.UID]; key != "" {
			return key
		}
	}
	return ""
}

// workload translates one Workload; false if no cycle has to do with it.
func (c Cluster) workload(w *kueuev1.Workload, all pods) (snapshot.Workload, bool) {
	state, included := c.state(w)
	if !included {
		return snapshot.Workload{}, false
	}
	out := snapshot.Workload{
		Namespace: w.Namespace, Name: w.Name, UID: string(w.UID), Queue: string(w.Status.Admission.ClusterQueue),
		Created: w.CreationTimestamp.UnixNano(), State: state,
	}
	if w.Spec.Priority != nil {
		out.Priority = *w.Spec.Priority
	}
	demand, known := demandOf(w)
	out.Uncharged = !known
	for i := range w.Spec.PodSets {
		set := &w.Spec.PodSets[i]
		wanted := demand.podSet(string(set.Name))
		translated := snapshot.PodSet{Name: string(set.Name), Count: count(w, set), Requests: wanted.values()}
		if state == snapshot.Started {
			translated.Pods = all.of(out.Key(), set, len(w.Spec.PodSets))
		}
		out.PodSets = append(out.PodSets, translated)
	}
	return out, true
}

// demandOf reads what w was charged for. It says false for work that names
// devices and was never charged, or whose demand is damaged: it must not start
// as if it were free.
func demandOf(w *kueuev1.Workload) (Demand, bool) {
	if text := w.Annotations[classes.AnnotationDemand]; text != "" {
		demand, err := DecodeDemand(text)
		return demand, err == nil
	}
	for i := range w.Spec.PodSets {
		if spec := &w.Spec.PodSets[i].Template.Spec; len(spec.ResourceClaims) > 0 || extendedGPUs(spec) > 0 {
			return Demand{}, false
		}
	}
	return Demand{}, true
}

// state says what Kueue and our check agreed on.
func (c Cluster) state(w *kueuev1.Workload) (snapshot.WorkloadState, bool) {
	is := func(condition string) bool { return apimeta.IsStatusConditionTrue(w.Status.Conditions, condition) }
	if w.Status.Admission == nil || !is(kueuev1.WorkloadQuotaReserved) || is(kueuev1.WorkloadEvicted) || is(kueuev1.WorkloadFinished) || w.DeletionTimestamp != nil {
		return snapshot.Waiting, false
	}
	for _, check := range w.Status.AdmissionChecks {
		switch {
		case !c.Ours(check.Name):
		case check.State == kueuev1.CheckStateReady:
			return snapshot.Started, true
		case check.State == kueuev1.CheckStatePending && !is(kueuev1.WorkloadAdmitted):
			return snapshot.Waiting, true
		}
	}
	return snapshot.Waiting, false
}

// count is the number of pods that still need devices: those that finished for good are given back.
func count(w *kueuev1.Workload, set *kueuev1.PodSet) int {
	n := int(set.Count)
	for _, assignment := range w.Status.Admission.PodSetAssignments {
		if assignment.Name == set.Name && assignment.Count != nil {
			n = int(*assignment.Count)
		}
	}
	for _, done := range w.Status.ReclaimablePods {
		if done.Name == set.Name {
			n -= int(done.Count)
		}
	}
	return max(n, 0)
}

// holdersOf returns the UIDs of the pods whose claims hold devices of ours.
func holdersOf(claims []resourcev1.ResourceClaim) map[types.UID]bool {
	holders := map[types.UID]bool{}
	for i := range claims {
		claim := &claims[i]
		if claim.Status.Allocation == nil || !slices.ContainsFunc(claim.Status.Allocation.Devices.Results, func(r resourcev1.DeviceRequestAllocationResult) bool {
			return r.Driver == classes.DriverName
		}) {
			continue
		}
		for _, owner := range claim.OwnerReferences {
			holders[owner.UID] = true
		}
		for _, user := range claim.Status.ReservedFor {
			holders[user.UID] = true
		}
	}
	return holders
}

// of translates the pods of one podSet; a Workload with one podSet needs no label on them.
func (a pods) of(workload string, set *kueuev1.PodSet, sets int) []snapshot.Pod {
	var out []snapshot.Pod
	for _, pod := range a.byWorkload[workload] {
		if sets > 1 && pod.Labels[podSetLabel] != string(set.Name) {
			continue
		}
		p := snapshot.Pod{Name: pod.Name, Node: pod.Spec.NodeName, Allocated: pod.Spec.NodeName != "" || a.holders[pod.UID]}
		p.Gated = slices.ContainsFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == classes.GatePlacement })
		if p.Node == "" && !p.Gated {
			p.Node = a.nodes[pod.Spec.NodeSelector[corev1.LabelHostname]]
		}
		out = append(out, p)
	}
	return out
}
