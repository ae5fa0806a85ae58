package kueue

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
)

// addNodes lists the nodes of the queues' pools with their GPUs, what is held of
// them, and what they have free beside GPUs.
func (t *translation) addNodes() {
	flavors := slices.DeleteFunc(slices.Clone(t.Flavors), func(f kueuev1.ResourceFlavor) bool {
		return !slices.ContainsFunc(t.s.Queues, func(q snapshot.Queue) bool { return q.Pool == f.Name })
	})
	// The flavor with most labels is the most specific one; a node is in one pool.
	slices.SortFunc(flavors, func(a, b kueuev1.ResourceFlavor) int {
		return cmp.Or(cmp.Compare(len(b.Spec.NodeLabels), len(a.Spec.NodeLabels)), strings.Compare(a.Name, b.Name))
	})
	t.devices = devicesOf(t.Slices)
	t.devices.hold(t.Claims)
	t.byName = map[string]*corev1.Node{}
	free := t.freeOfNodes()
	for i := range t.Nodes {
		node := &t.Nodes[i]
		at := slices.IndexFunc(flavors, func(f kueuev1.ResourceFlavor) bool { return matches(node, &f) })
		if at < 0 {
			continue
		}
		t.byName[node.Name] = node
		t.s.Nodes = append(t.s.Nodes, snapshot.Node{
			Name: node.Name, Pool: flavors[at].Name, Hostname: node.Labels[corev1.LabelHostname],
			Schedulable: schedulable(node) && node.Labels[corev1.LabelHostname] != "", Free: free[node.Name], GPUs: t.devices.gpus(node.Name),
		})
	}
}

// freeOfNodes is what every node can still give: its allocatable less the
// requests of all pods that are bound to it.
func (t *translation) freeOfNodes() map[string]*snapshot.Resources {
	free := make(map[string]*snapshot.Resources, len(t.Nodes))
	for i := range t.Nodes {
		if list := t.Nodes[i].Status.Allocatable; len(list) > 0 {
			r := resources(list)
			free[t.Nodes[i].Name] = &r
		}
	}
	for i := range t.Pods {
		pod := &t.Pods[i]
		if r := free[pod.Spec.NodeName]; r != nil && !finished(pod) {
			subtract(r, podNeeds(&pod.Spec))
		}
	}
	return free
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// podNeeds is what a pod requests beside our devices; it counts as one pod.
func podNeeds(spec *corev1.PodSpec) snapshot.Resources {
	needs := resources(resourcehelper.PodRequests(&corev1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{}))
	needs.Pods = 1
	return needs
}

// resources translates a list; our own resources and storage are left out.
func resources(list corev1.ResourceList) snapshot.Resources {
	var out snapshot.Resources
	for name, amount := range list {
		switch {
		case name == corev1.ResourceCPU:
			out.MilliCPU = amount.MilliValue()
		case name == corev1.ResourceMemory:
			out.Memory = quantity.Bytes(amount.Value())
		case name == corev1.ResourcePods:
			out.Pods = amount.Value()
		case strings.HasPrefix(string(name), classes.Domain+"/"), name == corev1.ResourceEphemeralStorage:
		default:
			out.Extended = append(out.Extended, snapshot.Amount{Name: string(name), Value: amount.Value()})
		}
	}
	slices.SortFunc(out.Extended, func(a, b snapshot.Amount) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func subtract(from *snapshot.Resources, what snapshot.Resources) {
	from.MilliCPU -= what.MilliCPU
	from.Memory -= what.Memory
	from.Pods -= what.Pods
	for _, amount := range what.Extended {
		if at := slices.IndexFunc(from.Extended, func(a snapshot.Amount) bool { return a.Name == amount.Name }); at >= 0 {
			from.Extended[at].Value -= amount.Value
		}
	}
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
	byNode   map[string][]*snapshot.GPU // in the order of share devices, as published
	byName   map[string]*device         // pool/device
	position map[*snapshot.GPU]int      // on its node
}

// device is one published device.
type device struct {
	gpu   *snapshot.GPU
	at    int // position of the GPU on its node
	whole bool
}

func devicesOf(all []resourcev1.ResourceSlice) devices {
	d := devices{byNode: map[string][]*snapshot.GPU{}, byName: map[string]*device{}, position: map[*snapshot.GPU]int{}}
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
				gpu = &snapshot.GPU{UUID: uuid, Healthy: true, NoShares: true}
				gpus[*slice.Spec.NodeName+"/"+uuid] = gpu
				d.position[gpu] = len(d.byNode[*slice.Spec.NodeName])
				d.byNode[*slice.Spec.NodeName] = append(d.byNode[*slice.Spec.NodeName], gpu)
			}
			gpu.Healthy = gpu.Healthy && !slices.ContainsFunc(published.Taints, keepsAway)
			facts, isShare := shareFacts(published)
			if isShare {
				gpu.Usable, gpu.Step, gpu.Min, gpu.NoShares = facts.Usable, facts.Step, facts.Min, false
			}
			d.byName[slice.Spec.Pool.Name+"/"+published.Name] = &device{gpu: gpu, at: d.position[gpu], whole: !isShare}
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
		for _, held := range d.heldBy(&claims[i]) {
			switch held.Kind {
			case snapshot.Whole:
				held.gpu.WholeUsed = true
			default:
				held.gpu.ShareUsed = held.gpu.ShareUsed.Add(held.Bytes)
				held.gpu.Shares++
			}
		}
	}
}

// holding is a device that a claim has.
type holding struct {
	snapshot.Held
	gpu *snapshot.GPU
}

// heldBy lists the devices of ours that a claim has.
func (d devices) heldBy(claim *resourcev1.ResourceClaim) []holding {
	if claim.Status.Allocation == nil {
		return nil
	}
	var out []holding
	for _, result := range claim.Status.Allocation.Devices.Results {
		known := d.byName[result.Pool+"/"+result.Device]
		if known == nil || result.Driver != classes.DriverName || result.AdminAccess != nil && *result.AdminAccess {
			continue
		}
		held := snapshot.Held{GPU: known.at, Kind: snapshot.Whole}
		if !known.whole {
			held.Kind, held.Bytes = snapshot.Share, known.gpu.Usable
			if consumed, said := result.ConsumedCapacity[classes.CapMemory]; said {
				held.Bytes = quantity.Bytes(consumed.Value())
			}
		}
		out = append(out, holding{held, known.gpu})
	}
	return out
}

func (d devices) gpus(node string) []snapshot.GPU {
	var out []snapshot.GPU
	for _, gpu := range d.byNode[node] {
		out = append(out, *gpu)
	}
	return out
}
