package kueue

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/fairshard/fairshard/classes"
)

// world is a Lookup over maps; what is not in them does not exist.
type world struct {
	templates map[string]string // name -> spec of the claim's devices, as YAML
	claims    map[string]string
	missing   map[string]bool // DeviceClasses and queue objects that do not exist
	queue     *kueuev1.ClusterQueue
	nodes     []corev1.Node
	slices    []resourcev1.ResourceSlice
}

// newWorld has queue "q" with our check and pool "h100", and one node of one 80Gi GPU.
func newWorld() *world {
	return &world{
		templates: map[string]string{}, claims: map[string]string{}, missing: map[string]bool{},
		queue: clusterQueue("q", "ours", "h100"), nodes: []corev1.Node{readyNode("n0")}, slices: []resourcev1.ResourceSlice{slice("n0", 1, 1, 1)},
	}
}

func claimSpec(devices string) resourcev1.ResourceClaimSpec {
	var spec resourcev1.ResourceClaimSpec
	if err := yaml.UnmarshalStrict([]byte(devices), &spec.Devices); err != nil {
		panic(err)
	}
	return spec
}

func (w *world) Template(_, name string) *resourcev1.ResourceClaimTemplate {
	devices, known := w.templates[name]
	if !known {
		return nil
	}
	return &resourcev1.ResourceClaimTemplate{Spec: resourcev1.ResourceClaimTemplateSpec{Spec: claimSpec(devices)}}
}

func (w *world) Claim(_, name string) *resourcev1.ResourceClaim {
	devices, known := w.claims[name]
	if !known {
		return nil
	}
	return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: claimSpec(devices)}
}

func (w *world) Class(name string) *resourcev1.DeviceClass {
	if w.missing[name] {
		return nil
	}
	return &resourcev1.DeviceClass{}
}

func (w *world) LocalQueue(_, name string) *kueuev1.LocalQueue {
	if w.missing["door"] {
		return nil
	}
	return &kueuev1.LocalQueue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: kueuev1.LocalQueueSpec{ClusterQueue: "q"}}
}

func (w *world) ClusterQueue(string) *kueuev1.ClusterQueue { return w.queue }

func (w *world) Flavor(name string) *kueuev1.ResourceFlavor {
	if w.missing["flavor"] {
		return nil
	}
	return &kueuev1.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (w *world) Ours(check kueuev1.AdmissionCheckReference) bool { return check == "ours" }
func (w *world) Nodes() []corev1.Node                            { return w.nodes }
func (w *world) Slices() []resourcev1.ResourceSlice              { return w.slices }

func clusterQueue(name, check string, flavors ...string) *kueuev1.ClusterQueue {
	q := &kueuev1.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: name}}
	q.Spec.AdmissionChecksStrategy = &kueuev1.AdmissionChecksStrategy{
		AdmissionChecks: []kueuev1.AdmissionCheckStrategyRule{{Name: kueuev1.AdmissionCheckReference(check)}},
	}
	group := kueuev1.ResourceGroup{CoveredResources: []corev1.ResourceName{classes.ResourceMilliGPU}}
	for _, flavor := range flavors {
		group.Flavors = append(group.Flavors, kueuev1.FlavorQuotas{
			Name:      kueuev1.ResourceFlavorReference(flavor),
			Resources: []kueuev1.ResourceQuota{{Name: classes.ResourceMilliGPU, NominalQuota: resource.MustParse("8k")}},
		})
	}
	q.Spec.ResourceGroups = []kueuev1.ResourceGroup{group}
	return q
}

func readyNode(name string) corev1.Node {
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name + ".host"}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

// slice publishes n GPUs of 80Gi on a node, each as share and whole device.
func slice(node string, n int, generation, count int64) resourcev1.ResourceSlice {
	out := resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourcev1.ResourceSliceSpec{
		Driver: classes.DriverName, NodeName: &node,
		Pool: resourcev1.ResourcePool{Name: node, Generation: generation, ResourceSliceCount: count},
	}}
	step := resource.MustParse("256Mi")
	policy := &resourcev1.CapacityRequestPolicy{ValidRange: &resourcev1.CapacityRequestPolicyRange{Min: &step, Step: &step}}
	for i := range n {
		out.Spec.Devices = append(out.Spec.Devices, published(i, classes.DeviceTypeShare, policy))
	}
	for i := range n {
		out.Spec.Devices = append(out.Spec.Devices, published(n-1-i, classes.DeviceTypeGPU, nil))
	}
	return out
}

func published(i int, kind string, policy *resourcev1.CapacityRequestPolicy) resourcev1.Device {
	uuid := "GPU-" + string(rune('0'+i))
	name := "gpu-" + string(rune('0'+i))
	if kind == classes.DeviceTypeShare {
		name += "-share"
	}
	return resourcev1.Device{
		Name: name,
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			classes.AttrType: {StringValue: &kind}, classes.AttrUUID: {StringValue: &uuid},
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
			classes.CapMemory: {Value: resource.MustParse("80Gi"), RequestPolicy: policy},
		},
	}
}

// workload has one podSet of two pods that name claims of these templates.
func workload(templates ...string) *kueuev1.Workload {
	w := &kueuev1.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "job", UID: "job"}}
	w.Spec.QueueName = "door"
	w.Spec.PodSets = []kueuev1.PodSet{{Name: "main", Count: 2}}
	spec := &w.Spec.PodSets[0].Template.Spec
	spec.Containers = []corev1.Container{{Name: "c"}}
	for _, name := range templates {
		spec.ResourceClaims = append(spec.ResourceClaims, corev1.PodResourceClaim{Name: name, ResourceClaimTemplateName: &name})
	}
	return w
}

func asksExtended(amount string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Limits:   corev1.ResourceList{classes.ExtendedResourceGPU: resource.MustParse(amount)},
		Requests: corev1.ResourceList{classes.ExtendedResourceGPU: resource.MustParse(amount)},
	}
}

func charge(t *testing.T, w *kueuev1.Workload, lookup Lookup) {
	t.Helper()
	if err := Charge(w, Resolve(w, lookup)); err != nil {
		t.Fatal(err)
	}
}
