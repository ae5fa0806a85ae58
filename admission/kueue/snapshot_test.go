package kueue

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
)

func small() Cluster {
	return Cluster{
		Nodes: []corev1.Node{readyNode("n0"), readyNode("n1")}, Slices: []resourcev1.ResourceSlice{slice("n0", 2, 1, 1), slice("n1", 1, 1, 1)},
		Flavors:       []kueuev1.ResourceFlavor{{ObjectMeta: metav1.ObjectMeta{Name: "h100"}}},
		ClusterQueues: []kueuev1.ClusterQueue{*clusterQueue("q", "ours", "h100")},
		Ours:          func(check kueuev1.AdmissionCheckReference) bool { return check == "ours" },
	}
}

func snap(c Cluster) snapshot.Snapshot {
	s, _ := c.Snapshot()
	return s
}

func result(node, device, bytes string) resourcev1.ResourceClaim {
	r := resourcev1.DeviceRequestAllocationResult{Driver: classes.DriverName, Pool: node, Device: device}
	if bytes != "" {
		r.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{classes.CapMemory: resource.MustParse(bytes)}
	}
	return resourcev1.ResourceClaim{Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{r}},
	}}}
}

func TestGPUsJoinSlicesAndClaims(t *testing.T) {
	c := small()
	c.Slices[0].Spec.Devices[1].Taints = []resourcev1.DeviceTaint{{Key: "sick", Effect: resourcev1.DeviceTaintEffectNoExecute}}
	admin := result("n1", "gpu-0", "")
	admin.Status.Allocation.Devices.Results[0].AdminAccess = new(true)
	other := result("n1", "gpu-0", "")
	other.Status.Allocation.Devices.Results[0].Driver = "gpu.example.com"
	c.Claims = []resourcev1.ResourceClaim{result("n0", "gpu-0-share", "10Gi"), result("n0", "gpu-0-share", "20Gi"), result("n0", "gpu-1", ""), admin, other, {}}
	s := snap(c)
	gpu := snapshot.GPU{UUID: "GPU-0", Usable: 80 * quantity.GiB, Step: 256 * quantity.MiB, Min: 256 * quantity.MiB, Healthy: true}
	shared, sick := gpu, gpu
	shared.ShareUsed, shared.Shares = 30*quantity.GiB, 2
	sick.UUID, sick.Healthy, sick.WholeUsed = "GPU-1", false, true
	want := []snapshot.Node{
		{Name: "n0", Pool: "h100", Hostname: "n0.host", Schedulable: true, GPUs: []snapshot.GPU{shared, sick}},
		{Name: "n1", Pool: "h100", Hostname: "n1.host", Schedulable: true, GPUs: []snapshot.GPU{gpu}},
	}
	if !reflect.DeepEqual(s.Nodes, want) {
		t.Errorf("got  %+v\nwant %+v", s.Nodes, want)
	}
	if q := (snapshot.Queue{Name: "q", Pool: "h100", Deserved: 8000, Limit: quantity.Unlimited, Weight: 1000, Priority: 100, Created: s.Queues[0].Created}); s.Queues[0] != q {
		t.Errorf("got %+v, want %+v", s.Queues[0], q)
	}
}

func TestOnlyTheNewestCompleteGenerationCounts(t *testing.T) {
	newer := slice("n0", 1, 2, 1)
	newer.Name = "n0-new"
	incomplete := slice("n0", 1, 2, 2)
	incomplete.Name = "n0-new"
	foreign := slice("n0", 8, 9, 1)
	foreign.Spec.Driver = "gpu.example.com"
	for name, tc := range map[string]struct {
		slices []resourcev1.ResourceSlice
		want   int
	}{
		"one generation":          {[]resourcev1.ResourceSlice{slice("n0", 2, 1, 1)}, 2},
		"the newer one":           {[]resourcev1.ResourceSlice{slice("n0", 2, 1, 1), newer}, 1},
		"a newer, incomplete one": {[]resourcev1.ResourceSlice{slice("n0", 2, 1, 1), incomplete}, 0},
		"another driver's":        {[]resourcev1.ResourceSlice{slice("n0", 2, 1, 1), foreign}, 2},
	} {
		c := small()
		c.Slices = tc.slices
		if got := len(snap(c).Nodes[0].GPUs); got != tc.want {
			t.Errorf("%s: %d GPUs, want %d", name, got, tc.want)
		}
	}
}

func TestWhichNodesArePartOfAPool(t *testing.T) {
	c := small()
	c.Nodes[0].Labels["model"], c.Nodes[0].Labels["zone"] = "h100", "a"
	c.Nodes[1].Labels["model"] = "h100"
	c.Nodes = append(c.Nodes, readyNode("n2"), readyNode("n3"))
	c.Nodes[1].Spec.Unschedulable = true
	c.Nodes[2].Labels["model"] = "a100"
	c.Nodes[3].Labels["model"] = "h100"
	c.Nodes[3].Status.Conditions[0].Status = corev1.ConditionUnknown
	c.Flavors[0].Spec.NodeLabels = map[string]string{"model": "h100"}
	special := kueuev1.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: "zone-a"}}
	special.Spec.NodeLabels = map[string]string{"model": "h100", "zone": "a"}
	c.Flavors = append(c.Flavors, special)
	c.ClusterQueues = append(c.ClusterQueues, *clusterQueue("special", "ours", "zone-a"), *clusterQueue("other", "another", "a100"))
	got := ""
	for _, n := range snap(c).Nodes {
		got += fmt.Sprintf("%s %s %t; ", n.Name, n.Pool, n.Schedulable)
	}
	if want := "n0 zone-a true; n1 h100 false; n3 h100 false; "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// reserved is a Workload that Kueue reserved and our check has this state.
func reserved(t *testing.T, state kueuev1.CheckState) kueuev1.Workload {
	t.Helper()
	w := workload("t")
	charge(t, w, halfWorld())
	w.CreationTimestamp = metav1.NewTime(time.Unix(7, 0))
	w.Spec.Priority = new(int32(3))
	w.Status.Admission = &kueuev1.Admission{ClusterQueue: "q"}
	w.Status.Conditions = []metav1.Condition{{Type: kueuev1.WorkloadQuotaReserved, Status: metav1.ConditionTrue}}
	w.Status.AdmissionChecks = []kueuev1.AdmissionCheckState{{Name: "another", State: kueuev1.CheckStatePending}, {Name: "ours", State: state}}
	return *w
}

func TestWhichWorkloadsACycleSees(t *testing.T) {
	condition := func(kind string) func(*kueuev1.Workload) {
		return func(w *kueuev1.Workload) {
			w.Status.Conditions = append(w.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue})
		}
	}
	for name, tc := range map[string]struct {
		state  kueuev1.CheckState
		change func(*kueuev1.Workload)
		want   string
	}{
		"reserved, pending":     {kueuev1.CheckStatePending, nil, "waiting"},
		"ready":                 {kueuev1.CheckStateReady, nil, "started"},
		"ready and admitted":    {kueuev1.CheckStateReady, condition(kueuev1.WorkloadAdmitted), "started"},
		"being retried":         {kueuev1.CheckStateRetry, nil, "returning"},
		"evicted":               {kueuev1.CheckStateReady, condition(kueuev1.WorkloadEvicted), "returning"},
		"finished":              {kueuev1.CheckStateReady, condition(kueuev1.WorkloadFinished), ""},
		"without a reservation": {kueuev1.CheckStatePending, func(w *kueuev1.Workload) { w.Status.Conditions = nil }, ""},
		"without our check": {kueuev1.CheckStatePending, func(w *kueuev1.Workload) {
			w.Status.AdmissionChecks = w.Status.AdmissionChecks[:1]
		}, ""},
	} {
		c, w := small(), reserved(t, tc.state)
		if tc.change != nil {
			tc.change(&w)
		}
		c.Workloads = []kueuev1.Workload{w}
		got := ""
		for _, seen := range snap(c).Workloads {
			got += map[snapshot.WorkloadState]string{snapshot.Waiting: "waiting", snapshot.Started: "started", snapshot.Returning: "returning", snapshot.Ended: "ended"}[seen.State]
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestAWorkloadIsTranslated(t *testing.T) {
	c, w := small(), reserved(t, kueuev1.CheckStatePending)
	w.Status.ReclaimablePods = []kueuev1.ReclaimablePod{{Name: "main", Count: 1}}
	c.Workloads = []kueuev1.Workload{w}
	want := snapshot.Workload{
		Namespace: "team", Name: "job", UID: "job", Queue: "q", Priority: 3, Created: 7e9, State: snapshot.Waiting, Bare: true,
		PodSets: []snapshot.PodSet{{
			Name: "main", Count: 1, Charge: 500, Needs: snapshot.Resources{Pods: 1},
			Requests: []snapshot.Request{{Kind: snapshot.Share, Count: 1, Bytes: 40 * quantity.GiB}},
		}},
	}
	if got := snap(c).Workloads[0]; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func pod(name string, change func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: name, UID: types.UID(name),
		Annotations: map[string]string{kueuev1.WorkloadAnnotation: "job"}, Labels: map[string]string{podSetLabel: "main", classes.LabelPlacement: "true"},
	}}
	change(&p)
	return p
}

func TestPodsOfStartedWork(t *testing.T) {
	pin := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "n1.host"} }
	held := result("n1", "gpu-0-share", "40Gi")
	held.OwnerReferences = []metav1.OwnerReference{{UID: "allocated"}}
	c, w := small(), reserved(t, kueuev1.CheckStateReady)
	w.OwnerReferences = []metav1.OwnerReference{{UID: "the-job"}}
	c.Workloads, c.Claims = []kueuev1.Workload{w}, []resourcev1.ResourceClaim{held}
	c.Pods = []corev1.Pod{
		pod("gated", func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: classes.GatePlacement}}
		}),
		pod("pinned", pin), pod("allocated", pin),
		pod("bound", func(p *corev1.Pod) { p.Spec.NodeName = "n1" }),
		pod("by-owner", func(p *corev1.Pod) {
			p.Annotations, p.OwnerReferences = nil, []metav1.OwnerReference{{UID: "the-job"}}
		}),
		pod("done", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		pod("failed", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
		pod("stranger", func(p *corev1.Pod) { p.Annotations = nil }),
		pod("elsewhere", func(p *corev1.Pod) { p.Namespace = "other" }),
	}
	want := []snapshot.Pod{
		{Name: "bound", Node: "n1", Bound: true, Allocated: true},
		{Name: "gated", Gated: true},
		{Name: "pinned", Node: "n1"},
		{Name: "by-owner"},
		{Name: "allocated", Node: "n1", Allocated: true, Devices: []snapshot.Held{{GPU: 0, Kind: snapshot.Share, Bytes: 40 * quantity.GiB}}},
	}
	if got := snap(c).Workloads[0].PodSets[0].Pods; !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestPodsOfSeveralPodSetsAreToldApartByLabel(t *testing.T) {
	c, w := small(), reserved(t, kueuev1.CheckStateReady)
	w.Spec.PodSets = append(w.Spec.PodSets, kueuev1.PodSet{Name: "driver", Count: 1})
	c.Workloads = []kueuev1.Workload{w}
	c.Pods = []corev1.Pod{pod("a", func(*corev1.Pod) {}), pod("b", func(p *corev1.Pod) { p.Labels[podSetLabel] = "driver" })}
	sets := snap(c).Workloads[0].PodSets
	if len(sets[0].Pods) != 1 || sets[0].Pods[0].Name != "a" || len(sets[1].Pods) != 1 || sets[1].Pods[0].Name != "b" {
		t.Errorf("got %+v", sets)
	}
}

func TestEqualClustersGiveEqualSnapshots(t *testing.T) {
	c, w := small(), reserved(t, kueuev1.CheckStateReady)
	second := w
	second.Name, second.UID = "job2", "job2"
	c.Workloads = []kueuev1.Workload{w, second}
	c.Pods = []corev1.Pod{pod("a", func(*corev1.Pod) {}), pod("b", func(*corev1.Pod) {})}
	want := snap(c)
	for _, reverse := range []func(){
		func() { slices.Reverse(c.Nodes) }, func() { slices.Reverse(c.Slices) }, func() { slices.Reverse(c.Workloads) }, func() { slices.Reverse(c.Pods) },
	} {
		reverse()
		if got := snap(c); !reflect.DeepEqual(got, want) {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	}
}
