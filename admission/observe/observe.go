package observe

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/classes"
)

// View is everything one cycle knows of the cluster.
type View struct {
	Pods           []corev1.Pod // all, without what nobody here reads
	Nodes          []corev1.Node
	Claims         []resourcev1.ResourceClaim
	Templates      []resourcev1.ResourceClaimTemplate
	Slices         []resourcev1.ResourceSlice
	DeviceClasses  []resourcev1.DeviceClass
	Workloads      []kueuev1.Workload
	ClusterQueues  []kueuev1.ClusterQueue
	LocalQueues    []kueuev1.LocalQueue
	Cohorts        []kueuev1.Cohort
	Flavors        []kueuev1.ResourceFlavor
	Priorities     []kueuev1.WorkloadPriorityClass
	Checks         []kueuev1.AdmissionCheck // only those that are ours
	byKeyWorkloads map[types.NamespacedName]*kueuev1.Workload
	byKeyPods      map[types.NamespacedName]*corev1.Pod
	ours           map[kueuev1.AdmissionCheckReference]bool
}

// Workload returns the Workload of that name, or nil.
func (v *View) Workload(namespace, name string) *kueuev1.Workload {
	return v.byKeyWorkloads[types.NamespacedName{Namespace: namespace, Name: name}]
}

// Pod returns the pod of that name, or nil.
func (v *View) Pod(namespace, name string) *corev1.Pod {
	return v.byKeyPods[types.NamespacedName{Namespace: namespace, Name: name}]
}

// Ours reports whether this controller answers the check.
func (v *View) Ours(check kueuev1.AdmissionCheckReference) bool { return v.ours[check] }

// Read makes a View. The lists are read one after the other, so they may be
// of slightly different times; writes carry the resourceVersion seen here and
// fail when that mattered.
func Read(ctx context.Context, reader client.Reader) (*View, error) {
	var lists lists
	for _, list := range lists.all() {
		if err := reader.List(ctx, list); err != nil {
			return nil, fmt.Errorf("read %T from the cache: %w", list, err)
		}
	}
	return lists.view(), nil
}

// lists are the API's list types of a View.
type lists struct {
	pods          corev1.PodList
	nodes         corev1.NodeList
	claims        resourcev1.ResourceClaimList
	templates     resourcev1.ResourceClaimTemplateList
	slices        resourcev1.ResourceSliceList
	classes       resourcev1.DeviceClassList
	workloads     kueuev1.WorkloadList
	clusterQueues kueuev1.ClusterQueueList
	localQueues   kueuev1.LocalQueueList
	cohorts       kueuev1.CohortList
	flavors       kueuev1.ResourceFlavorList
	priorities    kueuev1.WorkloadPriorityClassList
	checks        kueuev1.AdmissionCheckList
}

// all lists the pods first and the claims later: a claim is allocated before
// its pod is seen as bound, so a bound pod never lacks its allocation.
func (l *lists) all() []client.ObjectList {
	return []client.ObjectList{
		&l.pods, &l.claims, &l.nodes, &l.templates, &l.slices, &l.classes,
		&l.workloads, &l.clusterQueues, &l.localQueues, &l.cohorts, &l.flavors, &l.priorities, &l.checks,
	}
}

func (l *lists) view() *View {
	v := &View{
		Pods: l.pods.Items, Nodes: l.nodes.Items, Claims: l.claims.Items, Templates: l.templates.Items,
		Slices: l.slices.Items, DeviceClasses: l.classes.Items, Workloads: l.workloads.Items,
		ClusterQueues: l.clusterQueues.Items, LocalQueues: l.localQueues.Items, Cohorts: l.cohorts.Items, Flavors: l.flavors.Items, Priorities: l.priorities.Items,
		byKeyWorkloads: make(map[types.NamespacedName]*kueuev1.Workload, len(l.workloads.Items)),
		byKeyPods:      make(map[types.NamespacedName]*corev1.Pod, len(l.pods.Items)),
		ours:           map[kueuev1.AdmissionCheckReference]bool{},
	}
	for i := range v.Workloads {
		v.byKeyWorkloads[client.ObjectKeyFromObject(&v.Workloads[i])] = &v.Workloads[i]
	}
	for i := range v.Pods {
		if v.Pods[i].Labels[classes.LabelPlacement] != "true" {
			continue
		}
		v.byKeyPods[client.ObjectKeyFromObject(&v.Pods[i])] = &v.Pods[i]
	}
	for _, check := range l.checks.Items {
		if check.Spec.ControllerName == classes.AdmissionControllerName {
			v.Checks = append(v.Checks, check)
			v.ours[kueuev1.AdmissionCheckReference(check.Name)] = true
		}
	}
	return v
}

// CacheOptions keep the cache small.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: slim}},
	}
}

// Watch starts an informer for everything that Read reads, and calls changed
// after every change. It must not block.
func Watch(ctx context.Context, informers cache.Informers, changed func()) error {
	handler := toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() },
		UpdateFunc: func(before, after any) {
			if relevant(before, after) {
				changed()
			}
		},
		DeleteFunc: func(any) { changed() },
	}
	for _, object := range watched() {
		informer, err := informers.GetInformer(ctx, object)
		if err != nil {
			return fmt.Errorf("watch %T: %w", object, err)
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("watch %T: %w", object, err)
		}
	}
	return nil
}

func watched() []client.Object {
	return []client.Object{
		&corev1.Pod{}, &corev1.Node{}, &resourcev1.ResourceClaim{}, &resourcev1.ResourceClaimTemplate{},
		&resourcev1.ResourceSlice{}, &resourcev1.DeviceClass{}, &kueuev1.Workload{}, &kueuev1.ClusterQueue{},
		&kueuev1.LocalQueue{}, &kueuev1.Cohort{}, &kueuev1.ResourceFlavor{}, &kueuev1.WorkloadPriorityClass{}, &kueuev1.AdmissionCheck{},
	}
}

// relevant drops resyncs, and the heartbeats of nodes, which come every few
// minutes from each of thousands.
func relevant(before, after any) bool {
	old, okOld := before.(client.Object)
	now, okNow := after.(client.Object)
	if !okOld || !okNow {
		return true
	}
	if old.GetResourceVersion() == now.GetResourceVersion() {
		return false
	}
	if oldPod, isPod := before.(*corev1.Pod); isPod {
		newPod, _ := after.(*corev1.Pod)
		return podChanged(oldPod, newPod)
	}
	oldNode, okOld := before.(*corev1.Node)
	newNode, okNew := after.(*corev1.Node)
	return !okOld || !okNew || nodeChanged(oldNode, newNode)
}

func nodeChanged(before, after *corev1.Node) bool {
	return before.Spec.Unschedulable != after.Spec.Unschedulable ||
		!labels.Equals(before.Labels, after.Labels) ||
		!slices.EqualFunc(before.Spec.Taints, after.Spec.Taints, func(a, b corev1.Taint) bool { return a.MatchTaint(&b) && a.Value == b.Value }) ||
		!apiequality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable) ||
		ready(before) != ready(after)
}

func ready(node *corev1.Node) corev1.ConditionStatus {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status
		}
	}
	return corev1.ConditionUnknown
}
