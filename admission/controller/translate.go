package controller

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/explain"
	"github.com/fairshard/fairshard/admission/kueue"
	"github.com/fairshard/fairshard/admission/observe"
	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
)

// translate makes the planner's snapshot of a View, and says what is wrong with
// objects of the administrator.
func translate(view *observe.View) (snapshot.Snapshot, []string) {
	return kueue.Cluster{
		Nodes: view.Nodes, Slices: view.Slices, Claims: view.Claims, Flavors: view.Flavors,
		ClusterQueues: view.ClusterQueues, Cohorts: view.Cohorts, LocalQueues: view.LocalQueues, Workloads: view.Workloads,
		PriorityClasses: view.Priorities, Pods: view.Pods, Ours: view.Ours,
	}.Snapshot()
}

// unresolvedText splits the annotation that the webhook wrote into its reason
// and the sentence for the Workload's owner.
func unresolvedText(workload *kueuev1.Workload) (classes.Reason, string) {
	reason, detail, _ := strings.Cut(workload.Annotations[classes.AnnotationUnresolved], ": ")
	return classes.Reason(reason), explain.Unresolved(classes.Reason(reason), detail)
}

// answerChanged reports whether the webhook would now write something else
// than the refusal that the Workload carries.
func answerChanged(workload *kueuev1.Workload, lookup kueue.Lookup) bool {
	answer := kueue.Resolve(workload, lookup)
	return answer.Refusal == nil || answer.Refusal.String() != workload.Annotations[classes.AnnotationUnresolved]
}

// viewLookup finds objects of a View; its indexes are made when first used.
type viewLookup struct {
	view      *observe.View
	templates map[types.NamespacedName]*resourcev1.ResourceClaimTemplate
	claims    map[types.NamespacedName]*resourcev1.ResourceClaim
	doors     map[types.NamespacedName]*kueuev1.LocalQueue
	classes   map[types.NamespacedName]*resourcev1.DeviceClass
	queues    map[types.NamespacedName]*kueuev1.ClusterQueue
	flavors   map[types.NamespacedName]*kueuev1.ResourceFlavor
}

var _ kueue.Lookup = (*viewLookup)(nil)

// pointerTo is a pointer to T that is an API object.
type pointerTo[T any] interface {
	*T
	client.Object
}

// found looks name up in items, by an index that it keeps in *index.
func found[T any, P pointerTo[T]](index *map[types.NamespacedName]P, items []T, namespace, name string) P {
	if *index == nil {
		*index = make(map[types.NamespacedName]P, len(items))
		for i := range items {
			object := P(&items[i])
			(*index)[client.ObjectKeyFromObject(object)] = object
		}
	}
	return (*index)[types.NamespacedName{Namespace: namespace, Name: name}]
}

func (l *viewLookup) Template(namespace, name string) *resourcev1.ResourceClaimTemplate {
	return found(&l.templates, l.view.Templates, namespace, name)
}

func (l *viewLookup) Claim(namespace, name string) *resourcev1.ResourceClaim {
	return found(&l.claims, l.view.Claims, namespace, name)
}

func (l *viewLookup) Class(name string) *resourcev1.DeviceClass {
	return found(&l.classes, l.view.DeviceClasses, "", name)
}

func (l *viewLookup) LocalQueue(namespace, name string) *kueuev1.LocalQueue {
	return found(&l.doors, l.view.LocalQueues, namespace, name)
}

func (l *viewLookup) ClusterQueue(name string) *kueuev1.ClusterQueue {
	return found(&l.queues, l.view.ClusterQueues, "", name)
}

func (l *viewLookup) Flavor(name string) *kueuev1.ResourceFlavor {
	return found(&l.flavors, l.view.Flavors, "", name)
}

func (l *viewLookup) Ours(check kueuev1.AdmissionCheckReference) bool { return l.view.Ours(check) }

func (l *viewLookup) Nodes() []corev1.Node { return l.view.Nodes }

func (l *viewLookup) Slices() []resourcev1.ResourceSlice { return l.view.Slices }
