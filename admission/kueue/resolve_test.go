package kueue

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/fairshard/fairshard/classes"
)

// exactly is a claim of one request.
func exactly(class, rest string) string {
	return "requests: [{name: r, exactly: {deviceClassName: " + class + rest + "}}]"
}

const (
	gpuClass   = classes.DeviceClassGPU
	shareClass = classes.DeviceClassShare
)

func TestWhatAClaimAsksForAndCosts(t *testing.T) {
	const twoShares = `
requests:
- {name: a, exactly: {deviceClassName: gpu-share.fairshard.dev, capacity: {requests: {memory: 20Gi}}}}
- {name: b, exactly: {deviceClassName: gpu-share.fairshard.dev, capacity: {requests: {memory: 40Gi}}}}
constraints: [{requests: [a, b], distinctAttribute: gpu.fairshard.dev/uuid}]
`
	for name, tc := range map[string]struct{ devices, want string }{
		"a whole GPU":                       {exactly(gpuClass, ""), "[{gpu 1 0 0}] 1000"},
		"eight whole GPUs":                  {exactly(gpuClass, ", count: 8"), "[{gpu 8 0 0}] 8000"},
		"half a GPU":                        {exactly(shareClass, ", capacity: {requests: {memory: 40Gi}}"), "[{share 1 42949672960 0}] 500"},
		"a byte more costs the next step":   {exactly(shareClass, ", capacity: {requests: {memory: 42949672961}}"), "[{share 1 42949672961 0}] 504"},
		"the qualified name":                {exactly(shareClass, ", capacity: {requests: {gpu.fairshard.dev/memory: 40Gi}}"), "[{share 1 42949672960 0}] 500"},
		"a shard":                           {exactly(shareClass, ", count: 8, capacity: {requests: {memory: 40Gi}}"), "[{share 8 42949672960 0}] 4000"},
		"no size is everything":             {exactly(shareClass, ""), "[{share 1 0 0}] 1000"},
		"more than any GPU has costs a GPU": {exactly(shareClass, ", capacity: {requests: {memory: 200Gi}}"), "[{share 1 214748364800 0}] 1000"},
		"others' classes are ignored":       {"requests: [{name: n, exactly: {deviceClassName: nic.example.com}}, {name: r, exactly: {deviceClassName: gpu.fairshard.dev}}]", "[{gpu 1 0 0}] 1000"},
		"two shares on distinct GPUs":       {twoShares, "[{share 1 21474836480 1} {share 1 42949672960 1}] 750"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.templates["t"] = tc.devices
			answer := Resolve(workload("t"), w)
			if answer.Refusal != nil || !answer.Ours {
				t.Fatalf("refused: %v", answer.Refusal)
			}
			if got := fmt.Sprintf("%v %d", answer.Demand.PodSets[0].Requests, answer.PerPod[0]); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestRefusalsSayWhatIsMissingOrWrong(t *testing.T) {
	good := exactly(gpuClass, "")
	direct := func(w *world) { w.claims["t"] = good }
	for name, tc := range map[string]struct {
		devices string
		change  func(*world)
		want    string
	}{
		"no template":             {"", nil, "TemplateNotFound: ResourceClaimTemplate t does not exist in namespace team"},
		"no class":                {good, func(w *world) { w.missing[gpuClass] = true }, "ClassNotFound: DeviceClass gpu.fairshard.dev does not exist"},
		"no LocalQueue":           {good, func(w *world) { w.missing["door"] = true }, "QueueNotFound: LocalQueue door does not exist in namespace team"},
		"no ClusterQueue":         {good, func(w *world) { w.queue = nil }, "QueueNotFound: ClusterQueue q of LocalQueue door does not exist"},
		"no flavor":               {good, func(w *world) { w.missing["flavor"] = true }, "QueueMisconfigured: ResourceFlavor h100"},
		"two flavors":             {good, func(w *world) { w.queue = clusterQueue("q", "ours", "a", "b") }, "QueueMisconfigured: ClusterQueue q must name exactly one flavor"},
		"no flavor of milligpu":   {good, func(w *world) { w.queue = clusterQueue("q", "ours") }, "QueueMisconfigured"},
		"no slices":               {good, func(w *world) { w.slices = nil }, "PoolEmpty: no node of pool h100 has published a GPU"},
		"zero":                    {exactly(shareClass, ", capacity: {requests: {memory: 0}}"), nil, "InvalidRequest: claim t"},
		"negative":                {exactly(shareClass, ", capacity: {requests: {memory: -1Gi}}"), nil, "InvalidRequest: claim t"},
		"unknown capacity":        {exactly(shareClass, ", capacity: {requests: {compute: 50}}"), nil, "InvalidRequest: claim t"},
		"opaque parameters":       {good + "\nconfig: [{opaque: {driver: gpu.fairshard.dev, parameters: {kind: Other}}}]", nil, "InvalidRequest: claim t"},
		"two shares anywhere":     {"requests: [{name: a, exactly: {deviceClassName: gpu-share.fairshard.dev}}, {name: b, exactly: {deviceClassName: gpu-share.fairshard.dev}}]", nil, "InvalidRequest: claim t"},
		"more than a claim holds": {exactly(gpuClass, ", count: 33"), nil, "InvalidRequest: claim t asks for 33 devices, a claim holds at most 32"},
		"all devices":             {exactly(gpuClass, ", allocationMode: All"), nil, "UnsupportedRequest: claim t, request r: allocationMode All"},
		"admin access":            {exactly(gpuClass, ", adminAccess: true"), nil, "UnsupportedRequest: claim t, request r: admin access"},
		"a selector":              {exactly(gpuClass, ", selectors: [{cel: {expression: 'true'}}]"), nil, "UnsupportedRequest: claim t, request r: selectors"},
		"firstAvailable":          {"requests: [{name: r, firstAvailable: [{name: a, deviceClassName: gpu.fairshard.dev}]}]", nil, "UnsupportedRequest: claim t, request r: firstAvailable"},
		"a constraint":            {good + "\nconstraints: [{matchAttribute: gpu.fairshard.dev/productName}]", nil, "UnsupportedRequest: claim t: constraints"},
		"one claim for two pods":  {"", direct, "UnsupportedRequest: the 2 pods of podSet main would share ResourceClaim t; use a ResourceClaimTemplate"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			if tc.devices != "" {
				w.templates["t"] = tc.devices
			}
			if tc.change != nil {
				tc.change(w)
			}
			job := workload("t")
			if _, exists := w.claims["t"]; exists {
				name := "t"
				job.Spec.PodSets[0].Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "t", ResourceClaimName: &name}}
			}
			answer := Resolve(job, w)
			if !answer.Ours || answer.Refusal == nil || !strings.HasPrefix(answer.Refusal.String(), tc.want) {
				t.Fatalf("got %v, want %s", answer.Refusal, tc.want)
			}
		})
	}
}

func TestADirectClaimThatDoesNotExistIsNamed(t *testing.T) {
	name := "mine"
	job := workload()
	job.Spec.PodSets[0].Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: &name}}
	answer := Resolve(job, newWorld())
	if answer.Refusal == nil || answer.Refusal.String() != "ClaimNotFound: ResourceClaim mine does not exist in namespace team" {
		t.Fatalf("got %v", answer.Refusal)
	}
}

func TestWorkThatIsNotOursIsLeftAlone(t *testing.T) {
	foreign := newWorld()
	foreign.templates["t"] = exactly("nic.example.com", "")
	unmanaged := newWorld()
	unmanaged.templates["t"] = exactly(gpuClass, "")
	unmanaged.queue = clusterQueue("q", "another", "h100")
	missingElsewhere := newWorld()
	missingElsewhere.queue = unmanaged.queue
	for name, tc := range map[string]*world{
		"only another driver's claim": foreign, "a queue without our check": unmanaged, "a template that does not exist, in a queue without our check": missingElsewhere,
	} {
		job := workload("t")
		before := job.DeepCopy()
		charge(t, job, tc)
		if Resolve(job, tc).Ours || !apiequality.Semantic.DeepEqual(job, before) {
			t.Errorf("%s: changed to %v", name, job)
		}
	}
}

func TestExtendedResourceGPUsCountAsThePodNeedsThem(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	for name, tc := range map[string]struct {
		containers, init []corev1.Container
		want             int
	}{
		"the sum of containers":           {containers: []corev1.Container{{Resources: asksExtended("1")}, {Resources: asksExtended("2")}}, want: 3},
		"an init container, if larger":    {containers: []corev1.Container{{Resources: asksExtended("1")}}, init: []corev1.Container{{Resources: asksExtended("4")}}, want: 4},
		"a sidecar runs beside them":      {containers: []corev1.Container{{Resources: asksExtended("1")}}, init: []corev1.Container{{Resources: asksExtended("2"), RestartPolicy: &always}}, want: 3},
		"none":                            {containers: []corev1.Container{{}}, want: 0},
		"none, spelled out":               {containers: []corev1.Container{{Resources: asksExtended("0")}}, want: 0},
		"beside a claim of another class": {containers: []corev1.Container{{Resources: asksExtended("1")}}, want: 1},
	} {
		w := newWorld()
		w.templates["nic"] = exactly("nic.example.com", "")
		job := workload("nic")
		job.Spec.PodSets[0].Template.Spec.Containers, job.Spec.PodSets[0].Template.Spec.InitContainers = tc.containers, tc.init
		answer := Resolve(job, w)
		got := 0
		if answer.Ours {
			got = answer.Demand.PodSets[0].Requests[0].Count
		}
		if got != tc.want || answer.Refusal != nil {
			t.Errorf("%s: got %d GPUs (%v), want %d", name, got, answer.Refusal, tc.want)
		}
	}
}

func TestMoreExtendedGPUsThanAClaimHoldsAreRefused(t *testing.T) {
	job := workload()
	job.Spec.PodSets[0].Template.Spec.Containers[0].Resources = asksExtended("1000000000000000000")
	answer := Resolve(job, newWorld())
	if answer.Refusal == nil || answer.Refusal.Reason != classes.ReasonInvalidRequest {
		t.Fatalf("got %v, charge %v", answer.Refusal, answer.PerPod)
	}
}

func TestClaimsAndExtendedResourcesAddUp(t *testing.T) {
	w := newWorld()
	w.templates["share"] = exactly(shareClass, ", capacity: {requests: {memory: 40Gi}}")
	job := workload("share", "share")
	job.Spec.PodSets[0].Template.Spec.Containers[0].Resources = asksExtended("2")
	if answer := Resolve(job, w); answer.Refusal != nil || answer.PerPod[0] != 3000 {
		t.Fatalf("got %v, refused: %v", answer.PerPod, answer.Refusal)
	}
}

func TestThePoolIsTheSmallestModelOfItsNodes(t *testing.T) {
	w := newWorld()
	w.nodes = append(w.nodes, readyNode("n1"))
	small := slice("n1", 1, 1, 1)
	half := small.Spec.Devices[0].Capacity[classes.CapMemory]
	half.Value.Set(40 << 30)
	small.Spec.Devices[0].Capacity[classes.CapMemory] = half
	stranger := slice("n2", 1, 1, 1)
	tiny := stranger.Spec.Devices[0].Capacity[classes.CapMemory]
	tiny.Value.Set(1 << 30)
	stranger.Spec.Devices[0].Capacity[classes.CapMemory] = tiny
	w.slices = append(w.slices, small, stranger)
	w.templates["t"] = exactly(shareClass, ", capacity: {requests: {memory: 20Gi}}")
	if answer := Resolve(workload("t"), w); answer.Refusal != nil || answer.PerPod[0] != 500 {
		t.Fatalf("20Gi of a 40Gi GPU: got %v, refused: %v", answer.PerPod, answer.Refusal)
	}
}
