package kueue

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
)

// Pool is what one GPU of a pool offers to shares: that of its smallest model.
type Pool struct {
	Name   string
	Usable quantity.Bytes
	Step   quantity.Bytes
	Min    quantity.Bytes
}

// poolOf finds the pool of a Workload's queue. managed is false if the queue
// exists and is none of ours: then the Workload is left alone.
func poolOf(w *kueuev1.Workload, lookup Lookup) (pool Pool, managed bool, refusal *Refusal) {
	door := lookup.LocalQueue(w.Namespace, string(w.Spec.QueueName))
	if door == nil {
		return Pool{}, true, &Refusal{classes.ReasonQueueNotFound, fmt.Sprintf("LocalQueue %s does not exist in namespace %s", w.Spec.QueueName, w.Namespace)}
	}
	queue := lookup.ClusterQueue(string(door.Spec.ClusterQueue))
	if queue == nil {
		return Pool{}, true, &Refusal{classes.ReasonQueueNotFound, fmt.Sprintf("ClusterQueue %s of LocalQueue %s does not exist", door.Spec.ClusterQueue, door.Name)}
	}
	if !Managed(queue, lookup.Ours) {
		return Pool{}, false, nil
	}
	flavors := MilliGPUFlavors(queue)
	if len(flavors) != 1 {
		return Pool{}, true, &Refusal{classes.ReasonQueueMisconfigured, fmt.Sprintf("ClusterQueue %s must name exactly one flavor for %s, it names %d", queue.Name, classes.ResourceMilliGPU, len(flavors))}
	}
	name := string(flavors[0])
	flavor := lookup.Flavor(name)
	if flavor == nil {
		return Pool{}, true, &Refusal{classes.ReasonQueueMisconfigured, fmt.Sprintf("ResourceFlavor %s of ClusterQueue %s does not exist", name, queue.Name)}
	}
	pool, found := smallest(name, flavor, lookup)
	if !found {
		return Pool{}, true, &Refusal{classes.ReasonPoolEmpty, fmt.Sprintf("no node of pool %s has published a GPU", name)}
	}
	return pool, true, nil
}

// Managed reports whether a queue lists a check of ours.
func Managed(queue *kueuev1.ClusterQueue, ours func(kueuev1.AdmissionCheckReference) bool) bool {
	return queue.Spec.AdmissionChecksStrategy != nil &&
		slices.ContainsFunc(queue.Spec.AdmissionChecksStrategy.AdmissionChecks, func(rule kueuev1.AdmissionCheckStrategyRule) bool {
			return ours(rule.Name)
		})
}

// MilliGPUFlavors returns the flavors that a queue has milligpu quota in, sorted.
func MilliGPUFlavors(queue *kueuev1.ClusterQueue) []kueuev1.ResourceFlavorReference {
	found := map[kueuev1.ResourceFlavorReference]bool{}
	for _, group := range queue.Spec.ResourceGroups {
		for _, flavor := range group.Flavors {
			for _, r := range flavor.Resources {
				if r.Name == classes.ResourceMilliGPU {
					found[flavor.Name] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// smallest returns the facts of the pool's smallest share device.
func smallest(name string, flavor *kueuev1.ResourceFlavor, lookup Lookup) (Pool, bool) {
	members := map[string]bool{}
	for _, node := range lookup.Nodes() {
		if matches(&node, flavor) {
			members[node.Name] = true
		}
	}
	best, found := Pool{Name: name}, false
	for _, slice := range current(lookup.Slices()) {
		if slice.Spec.NodeName == nil || !members[*slice.Spec.NodeName] {
			continue
		}
		for i := range slice.Spec.Devices {
			if facts, isShare := shareFacts(&slice.Spec.Devices[i]); isShare && (!found || facts.Usable < best.Usable) {
				facts.Name = name
				best, found = facts, true
			}
		}
	}
	return best, found
}

// shareFacts reads the capacity of a share device.
func shareFacts(device *resourcev1.Device) (Pool, bool) {
	if text(device, classes.AttrType) != classes.DeviceTypeShare {
		return Pool{}, false
	}
	capacity := device.Capacity[classes.CapMemory]
	facts := Pool{Usable: quantity.Bytes(capacity.Value.Value())}
	if policy := capacity.RequestPolicy; policy != nil && policy.ValidRange != nil {
		if policy.ValidRange.Min != nil {
			facts.Min = quantity.Bytes(policy.ValidRange.Min.Value())
		}
		if policy.ValidRange.Step != nil {
			facts.Step = quantity.Bytes(policy.ValidRange.Step.Value())
		}
	} else if policy != nil && len(policy.ValidValues) > 0 { // a GPU below two steps offers all or nothing
		facts.Min = quantity.Bytes(policy.ValidValues[0].Value())
		facts.Step = facts.Min
	}
	return facts, true
}

func text(device *resourcev1.Device, attribute resourcev1.QualifiedName) string {
	if value := device.Attributes[attribute].StringValue; value != nil {
		return *value
	}
	return ""
}

// matches reports whether a node belongs to a flavor: it has all of its labels.
func matches(node *corev1.Node, flavor *kueuev1.ResourceFlavor) bool {
	for key, value := range flavor.Spec.NodeLabels {
		if node.Labels[key] != value {
			return false
		}
	}
	return true
}

// current returns our driver's slices of complete pools, only those of each
// pool's newest generation, sorted by name as the scheduler reads them.
func current(all []resourcev1.ResourceSlice) []*resourcev1.ResourceSlice {
	newest := map[string]int64{}
	for i := range all {
		if spec := &all[i].Spec; spec.Driver == classes.DriverName {
			newest[spec.Pool.Name] = max(newest[spec.Pool.Name], spec.Pool.Generation)
		}
	}
	var found []*resourcev1.ResourceSlice
	count := map[string]int64{}
	for i := range all {
		if spec := &all[i].Spec; spec.Driver == classes.DriverName && spec.Pool.Generation == newest[spec.Pool.Name] {
			found = append(found, &all[i])
			count[spec.Pool.Name]++
		}
	}
	found = slices.DeleteFunc(found, func(s *resourcev1.ResourceSlice) bool {
		return count[s.Spec.Pool.Name] != s.Spec.Pool.ResourceSliceCount
	})
	slices.SortFunc(found, func(a, b *resourcev1.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
	return found
}
