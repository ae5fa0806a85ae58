package wire

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/fairshard/fairshard/classes/quantity"
	"github.com/fairshard/fairshard/driver/inventory"
	"github.com/fairshard/fairshard/driver/partition"
)

func h100(count int) partition.Layout {
	var gpus []inventory.GPU
	for i := range count {
		gpus = append(gpus, inventory.GPU{
			UUID: fmt.Sprintf("GPU-%08d-ce1e-3b6e-6cc1-6d52e80cdb86", i), PCIBusID: fmt.Sprintf("0000:%02x:00.0", 0x10+i), Minor: i,
			ProductName: "NVIDIA H100 80GB HBM3", Architecture: "Hopper", ComputeCapability: "9.0", NUMANode: i / 4,
			Total: 81559 * quantity.MiB, Reserved: 551 * quantity.MiB,
		})
	}
	return partition.Build(inventory.New("580.65.06", gpus), partition.Default())
}

func TestSlicesGolden(t *testing.T) {
	golden(t, "slices.json", PoolOf(h100(2)))
	golden(t, "facts.json", FactsOfLayout(h100(2)))
	if pool := PoolOf(partition.Layout{}); len(pool.Slices) != 1 {
		t.Errorf("a node that offers nothing needs one empty slice, got %+v", pool)
	}
	for i, s := range PoolOf(h100(130)).Slices {
		if len(s.Devices) > 64 || len(s.Counters) > 8 || len(s.Devices) > 0 && len(s.Counters) > 0 {
			t.Errorf("slice %d breaks the limits of the API: %d devices, %d counter sets", i, len(s.Devices), len(s.Counters))
		}
	}
}

func TestSemver(t *testing.T) {
	for in, want := range map[string]string{
		"9.0": "9.0.0", "580.65.06": "580.65.6", "12": "12.0.0", "1.2.3.4": "1.2.3", "": "", "x": "", "1.x": "", "-1.0": "",
	} {
		if got, ok := semver(in); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// scheduler is the upstream allocator with a memory.
type scheduler struct {
	t       *testing.T
	slices  []*resourcev1.ResourceSlice
	state   structured.AllocatedState
	classes map[string]*resourcev1.DeviceClass
	shares  int
}

func newScheduler(t *testing.T, layout partition.Layout) *scheduler {
	t.Helper()
	s := &scheduler{t: t, classes: map[string]*resourcev1.DeviceClass{}}
	pool := PoolOf(layout)
	for i, slice := range pool.Slices {
		node := "node-1"
		s.slices = append(s.slices, &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%05x-gpu.fairshard.dev-node-1-x", i)},
			Spec: resourcev1.ResourceSliceSpec{
				Driver: "gpu.fairshard.dev", NodeName: &node, Devices: slice.Devices, SharedCounters: slice.Counters,
				Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: int64(len(pool.Slices))},
			},
		})
	}
	for name, kind := range map[string]string{"gpu.fairshard.dev": "gpu", "gpu-share.fairshard.dev": "share"} {
		expression := fmt.Sprintf(`device.driver == "gpu.fairshard.dev" && device.attributes["gpu.fairshard.dev"].type == %q`, kind)
		s.classes[name] = &resourcev1.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}},
		}
	}
	s.state = structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	return s
}

// List and Get serve the device classes.
func (s *scheduler) List() ([]*resourcev1.DeviceClass, error) { return nil, errors.New("not used") }

func (s *scheduler) Get(name string) (*resourcev1.DeviceClass, error) { return s.classes[name], nil }

// place allocates one claim and remembers it; nil means that it does not fit.
func (s *scheduler) place(class string, count int64, memory string) []resourcev1.DeviceRequestAllocationResult {
	s.t.Helper()
	exactly := &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}
	if memory != "" {
		exactly.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(memory)}}
	}
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", UID: types.UID(fmt.Sprint("uid-", s.shares))},
		Spec:       resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: exactly}}}},
	}
	features := structured.Features{ConsumableCapacity: true, PartitionableDevices: true, DeviceTaints: true, PrioritizedList: true, AdminAccess: true}
	allocator, err := structured.NewAllocator(s.t.Context(), features, s.state, s, s.slices, cel.NewCache(10, cel.Features{EnableConsumableCapacity: true}))
	if err != nil {
		s.t.Fatal(err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	found, err := allocator.Allocate(s.t.Context(), node, []*resourcev1.ResourceClaim{claim})
	if err != nil && !errors.Is(err, structured.ErrFailedAllocationOnNode) {
		s.t.Fatal(err)
	}
	if len(found) == 0 {
		return nil
	}
	s.remember(found[0].Devices.Results)
	return found[0].Devices.Results
}

func (s *scheduler) remember(results []resourcev1.DeviceRequestAllocationResult) {
	for _, r := range results {
		id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
		if r.ShareID == nil {
			s.state.AllocatedDevices.Insert(id)
			continue
		}
		s.shares++
		s.state.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, r.ShareID))
		s.state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
	}
}

func names(results []resourcev1.DeviceRequestAllocationResult) []string {
	var devices []string
	for _, r := range results {
		devices = append(devices, r.Device)
	}
	return devices
}

const (
	shareClass = "gpu-share.fairshard.dev"
	wholeClass = "gpu.fairshard.dev"
)

func TestTwoSharesOf40GFitOneGPUAnd40GiDoNot(t *testing.T) {
	s := newScheduler(t, h100(1))
	first := s.place(shareClass, 1, "40e9")
	if first == nil || s.place(shareClass, 1, "40e9") == nil {
		t.Fatal("two shares of 40e9 bytes do not fit")
	}
	claim, err := Claim(allocated(first...), "node-1", FactsOfLayout(h100(1)))
	if err != nil || claim.Devices[0].Bytes != 38400*quantity.MiB {
		t.Errorf("40e9 is charged as %v, %v; want it rounded up to 38400Mi", claim.Devices, err)
	}
	if third := s.place(shareClass, 1, "40e9"); third != nil {
		t.Errorf("a third one was placed: %v", names(third))
	}
	s = newScheduler(t, h100(1))
	if s.place(shareClass, 1, "40Gi") == nil || s.place(shareClass, 1, "40Gi") != nil {
		t.Error("want exactly one share of 40Gi on a GPU")
	}
	s = newScheduler(t, h100(1))
	if s.place(shareClass, 1, "") == nil || s.place(shareClass, 1, "256Mi") != nil {
		t.Error("a share without a number must take everything")
	}
	if s = newScheduler(t, h100(1)); s.place(shareClass, 1, "80Gi") != nil {
		t.Error("more than a GPU has was placed")
	}
}

func TestWholeAndShareExcludeEachOther(t *testing.T) {
	s := newScheduler(t, h100(1))
	if s.place(shareClass, 1, "1Gi") == nil || s.place(wholeClass, 1, "") != nil {
		t.Error("a whole GPU was placed beside a share")
	}
	s = newScheduler(t, h100(1))
	if s.place(wholeClass, 1, "") == nil || s.place(shareClass, 1, "1Gi") != nil {
		t.Error("a share was placed beside a whole GPU")
	}
}

func TestShardsLandOnDistinctGPUsTwice(t *testing.T) {
	s := newScheduler(t, h100(8))
	for range 2 {
		got := names(s.place(shareClass, 8, "40G"))
		if distinct := len(slices.Compact(slices.Sorted(slices.Values(got)))); distinct != 8 {
			t.Fatalf("want 8 distinct GPUs, got %v", got)
		}
	}
	if s.place(shareClass, 1, "5G") != nil {
		t.Error("all GPUs are full")
	}
	if s = newScheduler(t, h100(8)); s.place(shareClass, 9, "1G") != nil {
		t.Error("nine distinct GPUs of eight")
	}
}

func TestSharesAndWholesPackFromOppositeEnds(t *testing.T) {
	s := newScheduler(t, h100(4))
	var got []string
	for _, class := range []string{shareClass, wholeClass, shareClass, wholeClass, shareClass} {
		memory := ""
		if class == shareClass {
			memory = "40G"
		}
		got = append(got, names(s.place(class, 1, memory))...)
	}
	want := []string{"gpu-0000-10-00-0-share", "gpu-0000-13-00-0", "gpu-0000-10-00-0-share", "gpu-0000-12-00-0", "gpu-0000-11-00-0-share"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
