package allocator_test

import (
	"fmt"
	"slices"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/cel"
	"pgregory.net/rapid"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
	"github.com/fairshard/fairshard/driver/inventory"
	"github.com/fairshard/fairshard/driver/partition"
)

func shareUID(n int) types.UID { return types.UID(fmt.Sprint("share-", n)) }

// step is large, so that few sizes exist and GPUs fill up.
const step = 8 * quantity.GiB

// node is one node in both worlds.
type node struct {
	scheduler *scheduler
	room      *snapshot.Room
	layout    partition.Layout
}

// randomNode has a few GPUs, some of them sick, some held whole or in shares.
func randomNode(t *rapid.T, cache *cel.Cache) node {
	var found []inventory.GPU
	for i := range rapid.IntRange(1, 7).Draw(t, "gpus") {
		steps := rapid.SampledFrom([]int64{1, 3, 4, 4, 6, 6}).Draw(t, "size")
		found = append(found, inventory.GPU{
			UUID: fmt.Sprintf("GPU-%d", i), PCIBusID: fmt.Sprintf("0000:%02x:00.0", 0x10+i), Minor: i, NUMANode: -1,
			ProductName: "NVIDIA H100 80GB HBM3", Architecture: "Hopper", ComputeCapability: "9.0",
			Total: step*quantity.Bytes(steps) + quantity.Bytes(rapid.Int64Range(0, 3).Draw(t, "odd"))*quantity.GiB,
		})
	}
	layout := partition.Build(inventory.New("580.65.06", found), partition.Config{Step: step})
	tainted := map[string]bool{}
	for _, gpu := range found {
		tainted[gpu.UUID] = rapid.IntRange(0, 7).Draw(t, "sick") == 0
	}
	n := node{scheduler: newScheduler(layout, tainted, cache), layout: layout}
	s := &snapshot.Snapshot{Nodes: []snapshot.Node{{Name: nodeName, Schedulable: true}}}
	for i := range layout.Shares {
		gpu := published(layout.Shares[i])
		gpu.Healthy = !tainted[gpu.UUID]
		n.hold(t, &gpu, layout.Shares[i])
		s.Nodes[0].GPUs = append(s.Nodes[0].GPUs, gpu)
	}
	n.room = snapshot.NewRoom(s)
	return n
}

// published is what the planner knows of a GPU from its share device. One of
// less than two steps is published with its whole memory as the only size.
func published(offer partition.Offer) snapshot.GPU {
	gpu := snapshot.GPU{UUID: offer.GPU.UUID, Usable: offer.Memory, Step: offer.Step, Min: offer.Step}
	if offer.Memory < 2*offer.Step {
		gpu.Min = offer.Memory
	}
	return gpu
}

// hold gives a GPU random holders in both worlds.
func (n *node) hold(t *rapid.T, gpu *snapshot.GPU, offer partition.Offer) {
	switch rapid.IntRange(0, 4).Draw(t, "held") {
	case 0:
		gpu.WholeUsed = true
		n.scheduler.holdWhole(offer.CounterSet)
	case 1:
		for range rapid.IntRange(1, 2).Draw(t, "shares") {
			size := gpu.Charge(quantity.Bytes(rapid.Int64Range(1, 2).Draw(t, "steps")) * step)
			if gpu.ShareUsed+size <= gpu.Usable {
				gpu.ShareUsed += size
				gpu.Shares++
				n.scheduler.holdShare(offer.Name, size)
			}
		}
	}
}

// What pods ask for: more often little, so that about half of them fit, and
// sizes beside the steps; 0 names no size.
var (
	kinds = []snapshot.RequestKind{snapshot.Whole, snapshot.Share, snapshot.Share, snapshot.Share}
	sizes = []int64{0, 1, 8, 8, 9, 15, 16, 16, 24, 25, 32, 50}
)

// randomPod is the claims of a pod and what the planner makes of them.
func randomPod(t *rapid.T) ([]*resourcev1.ResourceClaim, *snapshot.PodSet) {
	var claims []*resourcev1.ResourceClaim
	set := &snapshot.PodSet{Count: 1}
	for i := range rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "claims") {
		name := fmt.Sprint("claim-", i)
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name)}}
		spread := rapid.Bool().Draw(t, "spread")
		var shares []string
		for at := range rapid.SampledFrom([]int{1, 2, 2, 3}).Draw(t, "requests") {
			request := snapshot.Request{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Count: rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "count")}
			exactly := &resourcev1.ExactDeviceRequest{
				DeviceClassName: classes.DeviceClassGPU, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(request.Count),
			}
			api := resourcev1.DeviceRequest{Name: fmt.Sprint("r-", at), Exactly: exactly}
			if request.Kind == snapshot.Share {
				exactly.DeviceClassName = classes.DeviceClassShare
				request.Bytes = quantity.Bytes(rapid.SampledFrom(sizes).Draw(t, "memory")) * quantity.GiB
				if request.Bytes > 0 {
					exactly.Capacity = memory(request.Bytes)
				}
				if spread {
					request.Apart = i + 1
				}
				shares = append(shares, api.Name)
			}
			claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, api)
			set.Requests = append(set.Requests, request)
		}
		if spread && len(shares) > 0 {
			uuid := resourcev1.FullyQualifiedName(classes.DriverName + "/" + classes.AttrUUID)
			claim.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{{Requests: shares, DistinctAttribute: &uuid}}
		}
		claims = append(claims, claim)
	}
	return claims, set
}

func memory(size quantity.Bytes) *resourcev1.CapacityRequirements {
	return &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{
		classes.CapMemory: *resource.NewQuantity(int64(size), resource.BinarySI),
	}}
}

// held is what the allocator chose, in the planner's words.
func (n *node) held(t *rapid.T, results []resourcev1.DeviceRequestAllocationResult) []snapshot.Held {
	var out []snapshot.Held
	for _, result := range results {
		for i, offer := range n.layout.Shares {
			switch result.Device {
			case offer.CounterSet:
				out = append(out, snapshot.Held{GPU: i, Kind: snapshot.Whole})
			case offer.Name:
				consumed := result.ConsumedCapacity[classes.CapMemory]
				out = append(out, snapshot.Held{GPU: i, Kind: snapshot.Share, Bytes: quantity.Bytes(consumed.Value())})
			}
		}
	}
	if len(out) != len(results) {
		t.Fatalf("unknown devices in %v", results)
	}
	return out
}

func TestThePlannerPlacesAPodWhereTheAllocatorDoes(t *testing.T) {
	cache := cel.NewCache(10, cel.Features{EnableConsumableCapacity: true})
	rapid.Check(t, func(t *rapid.T) {
		n := randomNode(t, cache)
		for range rapid.IntRange(1, 3).Draw(t, "pods") {
			claims, set := randomPod(t)
			results, fits := n.scheduler.place(t, claims)
			before := fmt.Sprintf("%+v", n.room.GPUs(0))
			got, ok := n.room.Take(0, set)
			if want := n.held(t, results); ok != fits || !slices.Equal(got, want) {
				t.Fatalf("on %s\nfor %+v\nwe take   %t %+v\nallocator %t %+v", before, set.Requests, ok, got, fits, want)
			}
		}
	})
}
