package kubeletplugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	drapbv1 "k8s.io/kubelet/pkg/apis/dra/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
	"github.com/fairshard/fairshard/driver/inventory"
	"github.com/fairshard/fairshard/driver/nvml/fakenvml"
)

const nodeName = "node-1"

// eightH100 is a node like those of the example.
func eightH100() inventory.Inventory {
	var gpus []inventory.GPU
	for i := range 8 {
		gpus = append(gpus, inventory.GPU{
			UUID: fmt.Sprintf("GPU-%08d-ce1e-3b6e-6cc1-6d52e80cdb86", i), PCIBusID: fmt.Sprintf("0000:%02x:00.0", 0x17+i), Minor: i,
			ProductName: "NVIDIA H100 80GB HBM3", Architecture: "Hopper", ComputeCapability: "9.0", NUMANode: i / 4,
			Total: 81559 * quantity.MiB, Reserved: 551 * quantity.MiB, MIGCapable: true,
		})
	}
	return inventory.New("580.65.6", gpus)
}

// library is a driver library that can be absent, or have one GPU that cannot be read.
type library struct {
	absent, partial atomic.Bool
	opened          atomic.Int32
}

func (l *library) open(string) (Library, error) {
	l.opened.Add(1)
	if l.absent.Load() {
		return nil, errors.New("no libnvidia-ml.so.1 below the driver root")
	}
	all := eightH100()
	if !l.partial.Load() {
		return fakenvml.New(all.DriverVersion, all.GPUs...), nil
	}
	part := fakenvml.New(all.DriverVersion, all.GPUs[:7]...)
	part.Fail(errors.New("read GPU 7: the GPU is lost"))
	return part, nil
}

// testNode is the folders and the API of one node; they outlive its plugin.
type testNode struct {
	t       testing.TB
	dir     string
	client  *fake.Clientset
	library library
}

func newNode(tb testing.TB) *testNode {
	tb.Helper()
	t := tb
	dir, err := os.MkdirTemp("", "fsp") //nolint:usetesting // tb.TempDir's long path does not fit into a socket address
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, UID: "node-uid"}}
	n := &testNode{t: t, dir: dir, client: fake.NewClientset(node)}
	var names atomic.Int32
	n.client.PrependReactor("create", "resourceslices", func(action clienttesting.Action) (bool, runtime.Object, error) {
		// The fake API does not know generateName.
		slice := action.(clienttesting.CreateAction).GetObject().(*resourcev1.ResourceSlice)
		slice.Name = fmt.Sprintf("%s%d", slice.GenerateName, names.Add(1))
		return false, nil, nil
	})
	if err := os.MkdirAll(filepath.Join(dir, "driver", "dev"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nvidiactl", "nvidia-uvm", "nvidia0"} {
		if err := os.WriteFile(filepath.Join(dir, "driver", "dev", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// published counts the devices of all slices.
func (n *testNode) published() int {
	devices := 0
	for _, slice := range n.slices() {
		devices += len(slice.Spec.Devices)
	}
	return devices
}

func (n *testNode) config() Config {
	return Config{
		NodeName: nodeName, Client: n.client, Open: n.library.open,
		DriverRoot: filepath.Join(n.dir, "driver"), HostDriverRoot: "/run/nvidia/driver",
		PluginsDir: filepath.Join(n.dir, "p"), RegistryDir: filepath.Join(n.dir, "r"), CDIDir: filepath.Join(n.dir, "cdi"),
		RetryPeriod: 10 * time.Millisecond, CollectPeriod: 20 * time.Millisecond, CollectGrace: time.Hour,
	}
}

// running is a plugin that runs, and its kubelet.
type running struct {
	n       *testNode
	kubelet drapbv1.DRAPluginClient
	stop    func()
}

// start runs a plugin and waits until it answers.
func (n *testNode) start(config Config) *running {
	n.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, config) }()
	conn := n.dial(filepath.Join(config.DataDir(), "dra.sock"))
	r := &running{n: n, kubelet: drapbv1.NewDRAPluginClient(conn)}
	var stopped atomic.Bool
	r.stop = func() {
		if stopped.Swap(true) {
			return
		}
		cancel()
		_ = conn.Close()
		if err := <-done; err != nil {
			n.t.Errorf("plugin ended with %v", err)
		}
	}
	n.t.Cleanup(r.stop)
	n.eventually("the plugin serves", func() bool {
		_, err := r.kubelet.NodeUnprepareResources(ctx, &drapbv1.NodeUnprepareResourcesRequest{})
		return err == nil
	})
	return r
}

// startReady also waits until the GPUs are published.
func (n *testNode) startReady() *running {
	n.t.Helper()
	r := n.start(n.config())
	n.eventually("slices are published", func() bool { return len(n.slices()) == 3 })
	probe := shareOf("probe", 1, 0)
	probe.Status.Allocation.Devices.Results[0].Device = "none"
	_ = n.client.Tracker().Add(probe)
	n.eventually("the GPUs are known", func() bool {
		_, err := r.prepare(probe)
		return err != nil && strings.Contains(err.Error(), "device none is not on this node")
	})
	return r
}

func (n *testNode) dial(socket string) *grpc.ClientConn {
	n.t.Helper()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		n.t.Fatal(err)
	}
	return conn
}

func (n *testNode) slices() []resourcev1.ResourceSlice {
	list, err := n.client.ResourceV1().ResourceSlices().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	return list.Items
}

func (n *testNode) eventually(what string, ok func() bool) {
	n.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			n.t.Fatalf("waited in vain: %s", what)
		}
	}
}

// register does what a kubelet does when it finds the plugin.
func (n *testNode) register() {
	n.t.Helper()
	conn := n.dial(filepath.Join(n.dir, "r", classes.DriverName+"-reg.sock"))
	defer conn.Close()
	client := registerapi.NewRegistrationClient(conn)
	if _, err := client.GetInfo(context.Background(), &registerapi.InfoRequest{}); err != nil {
		n.t.Fatal(err)
	}
	if _, err := client.NotifyRegistrationStatus(context.Background(), &registerapi.RegistrationStatus{PluginRegistered: true}); err != nil {
		n.t.Fatal(err)
	}
}

// shareOf is an allocated claim for bytes of each of the given GPUs (0 to 7).
func shareOf(uid string, bytes int64, gpus ...int) *resourcev1.ResourceClaim {
	c := allocatedClaim(uid)
	for _, gpu := range gpus {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Request: "gpu", Driver: classes.DriverName, Pool: nodeName, Device: deviceName(gpu) + "-share",
			ShareID:          ptr.To(types.UID(fmt.Sprintf("s-%s-%d", uid, gpu))),
			ConsumedCapacity: map[resourcev1.QualifiedName]resource.Quantity{classes.CapMemory: *resource.NewQuantity(bytes, resource.BinarySI)},
		})
	}
	return c
}

func wholeGPU(uid string, gpu int) *resourcev1.ResourceClaim {
	c := allocatedClaim(uid)
	c.Status.Allocation.Devices.Results = []resourcev1.DeviceRequestAllocationResult{{
		Request: "gpu", Driver: classes.DriverName, Pool: nodeName, Device: deviceName(gpu),
	}}
	return c
}

func allocatedClaim(uid string) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "claim-" + uid, UID: types.UID(uid)},
		Status:     resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{}},
	}
}

func deviceName(gpu int) string { return eightH100().GPUs[gpu].DeviceBase() }

func (n *testNode) create(claims ...*resourcev1.ResourceClaim) {
	n.t.Helper()
	for _, c := range claims {
		if err := n.client.Tracker().Add(c); err != nil {
			n.t.Fatal(err)
		}
	}
}

func (r *running) prepare(c *resourcev1.ResourceClaim) (*drapbv1.NodePrepareResourceResponse, error) {
	response, err := r.kubelet.NodePrepareResources(context.Background(), &drapbv1.NodePrepareResourcesRequest{
		Claims: []*drapbv1.Claim{{Uid: string(c.UID), Namespace: c.Namespace, Name: c.Name}},
	})
	if err != nil {
		return nil, err
	}
	answer := response.Claims[string(c.UID)]
	if answer.Error != "" {
		return nil, errors.New(answer.Error)
	}
	return answer, nil
}

func (r *running) mustPrepare(c *resourcev1.ResourceClaim) *drapbv1.NodePrepareResourceResponse {
	r.n.t.Helper()
	answer, err := r.prepare(c)
	if err != nil {
		r.n.t.Fatalf("prepare %s: %v", c.UID, err)
	}
	return answer
}

func (r *running) unprepare(c *resourcev1.ResourceClaim) error {
	response, err := r.kubelet.NodeUnprepareResources(context.Background(), &drapbv1.NodeUnprepareResourcesRequest{
		Claims: []*drapbv1.Claim{{Uid: string(c.UID), Namespace: c.Namespace, Name: c.Name}},
	})
	if err != nil {
		return err
	}
	if text := response.Claims[string(c.UID)].Error; text != "" {
		return errors.New(text)
	}
	return nil
}

// claimFiles is every file that the plugin keeps per claim, relative to the node's folder.
func (n *testNode) claimFiles() []string {
	var files []string
	for _, pattern := range []string{"cdi/*", "p/gpu.fairshard.dev/claims/*", "p/gpu.fairshard.dev/claims/*/*"} {
		found, err := filepath.Glob(filepath.Join(n.dir, pattern))
		if err != nil {
			n.t.Fatal(err)
		}
		for _, path := range found {
			if info, err := os.Stat(path); err == nil && !info.IsDir() {
				relative, _ := filepath.Rel(n.dir, path)
				files = append(files, relative)
			}
		}
	}
	return files
}
