package allocator_test

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"pgregory.net/rapid"

	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
	"github.com/fairshard/fairshard/driver/partition"
	"github.com/fairshard/fairshard/kubeletplugin/wire"
)

const nodeName = "node-1"

// scheduler is the upstream allocator with a memory of what it allocated.
type scheduler struct {
	slices []*resourcev1.ResourceSlice
	state  structured.AllocatedState
	cache  *cel.Cache
	shares int
}

// newScheduler publishes layout on one node; tainted are UUIDs of GPUs that take no new work.
func newScheduler(layout partition.Layout, tainted map[string]bool, cache *cel.Cache) *scheduler {
	s := &scheduler{cache: cache, state: structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}}
	pool := wire.PoolOf(layout)
	for i, slice := range pool.Slices {
		for at := range slice.Devices {
			if uuid := slice.Devices[at].Attributes[classes.AttrUUID].StringValue; uuid != nil && tainted[*uuid] {
				slice.Devices[at].Taints = []resourcev1.DeviceTaint{{Key: "sick", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
			}
		}
		node := nodeName
		s.slices = append(s.slices, &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%05x-%s-%s-x", i, classes.DriverName, nodeName)},
			Spec: resourcev1.ResourceSliceSpec{
				Driver: classes.DriverName, NodeName: &node, Devices: slice.Devices, SharedCounters: slice.Counters,
				Pool: resourcev1.ResourcePool{Name: nodeName, Generation: 1, ResourceSliceCount: int64(len(pool.Slices))},
			},
		})
	}
	return s
}

// List is not used by the allocator.
func (s *scheduler) List() ([]*resourcev1.DeviceClass, error) { return nil, errors.New("not used") }

// Get serves our device classes.
func (s *scheduler) Get(name string) (*resourcev1.DeviceClass, error) {
	kind := classes.DeviceTypeGPU
	if name == classes.DeviceClassShare {
		kind = classes.DeviceTypeShare
	}
	expression := fmt.Sprintf("device.driver == %q && device.attributes[%q].type == %q", classes.DriverName, classes.DriverName, kind)
	return &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}},
	}, nil
}

// place allocates the claims of one pod and remembers it; false means that they do not fit.
func (s *scheduler) place(t *rapid.T, claims []*resourcev1.ResourceClaim) ([]resourcev1.DeviceRequestAllocationResult, bool) {
	t.Helper()
	features := structured.Features{ConsumableCapacity: true, PartitionableDevices: true, DeviceTaints: true, PrioritizedList: true, AdminAccess: true}
	allocator, err := structured.NewAllocator(t.Context(), features, s.state, s, s.slices, s.cache)
	if err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	found, err := allocator.Allocate(t.Context(), node, claims)
	if err != nil && !errors.Is(err, structured.ErrFailedAllocationOnNode) {
		t.Fatal(err)
	}
	var all []resourcev1.DeviceRequestAllocationResult
	for _, claim := range found {
		all = append(all, claim.Devices.Results...)
	}
	for _, result := range all {
		if result.ShareID == nil {
			s.holdWhole(result.Device)
		} else {
			s.state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(deviceID(result.Device), result.ShareID))
			s.state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(deviceID(result.Device), result.ConsumedCapacity))
		}
	}
	return all, len(found) > 0
}

func deviceID(name string) structured.DeviceID {
	return structured.MakeDeviceID(classes.DriverName, nodeName, name)
}

func (s *scheduler) holdWhole(device string) { s.state.AllocatedDevices.Insert(deviceID(device)) }

func (s *scheduler) holdShare(device string, size quantity.Bytes) {
	s.shares++
	uid := shareUID(s.shares)
	s.state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(deviceID(device), &uid))
	s.state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(deviceID(device), map[resourcev1.QualifiedName]resource.Quantity{
		classes.CapMemory: *resource.NewQuantity(int64(size), resource.BinarySI),
	}))
}
