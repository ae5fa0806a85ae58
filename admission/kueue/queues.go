package kueue

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
)

// defaultPriority is that of a queue without the annotation.
const defaultPriority = 100

// addQueues lists the ClusterQueues with our check and all Cohorts above them.
func (t *translation) addQueues() {
	t.problems = map[string]bool{}
	wanted := map[string]bool{}
	for i := range t.ClusterQueues {
		if queue := &t.ClusterQueues[i]; Managed(queue, t.Ours) {
			t.s.Queues = append(t.s.Queues, t.queue(queue))
			wanted[string(queue.Spec.CohortName)] = true
		}
	}
	cohorts := map[string]*kueuev1.Cohort{}
	for i := range t.Cohorts {
		cohorts[t.Cohorts[i].Name] = &t.Cohorts[i]
	}
	for len(wanted) > 0 { // every turn adds Cohorts that were not there: at most one per Cohort
		next := map[string]bool{}
		for _, name := range slices.Sorted(maps.Keys(wanted)) {
			if name == "" || t.hasCohort(name) {
				continue
			}
			q := t.cohort(name, cohorts[name])
			t.s.Queues = append(t.s.Queues, q)
			next[q.Parent] = true
		}
		wanted = next
	}
	t.queueOf = make(map[string]string, len(t.LocalQueues))
	for i := range t.LocalQueues {
		t.queueOf[t.LocalQueues[i].Namespace+"/"+t.LocalQueues[i].Name] = string(t.LocalQueues[i].Spec.ClusterQueue)
	}
}

func (t *translation) hasCohort(name string) bool {
	return slices.ContainsFunc(t.s.Queues, func(q snapshot.Queue) bool { return q.Cohort && q.Name == name })
}

func (t *translation) queue(queue *kueuev1.ClusterQueue) snapshot.Queue {
	q := snapshot.Queue{
		Name: queue.Name, Parent: string(queue.Spec.CohortName), Created: queue.CreationTimestamp.UnixNano(),
		Strict: queue.Spec.QueueingStrategy == kueuev1.StrictFIFO, Weight: weight(queue.Spec.FairSharing),
	}
	if flavors := MilliGPUFlavors(queue); len(flavors) == 1 {
		q.Pool = string(flavors[0])
	}
	q.Deserved = nominal(queue.Spec.ResourceGroups, q.Pool)
	t.annotations(&q, &queue.ObjectMeta)
	return q
}

// cohort translates a Cohort; object is nil for one that exists as a name only.
// It deserves what its annotation says, else its own quota and what its
// children deserve; a managed root, whose quota is our headroom, deserves
// whatever there is.
func (t *translation) cohort(name string, object *kueuev1.Cohort) snapshot.Queue {
	q := snapshot.Queue{Name: name, Cohort: true, Weight: 1000, SumChildren: true}
	if object == nil {
		t.annotations(&q, &metav1.ObjectMeta{})
		return q
	}
	q.Parent, q.Created, q.Weight = string(object.Spec.ParentName), object.CreationTimestamp.UnixNano(), weight(object.Spec.FairSharing)
	if object.Labels[classes.LabelManaged] == "true" && q.Parent == "" {
		q.Deserved, q.SumChildren = quantity.Unlimited, false
	} else {
		q.Deserved = nominal(object.Spec.ResourceGroups, "")
	}
	t.annotations(&q, &object.ObjectMeta)
	return q
}

// nominal sums the milligpu quota of one flavor, or of all if pool is empty.
func nominal(groups []kueuev1.ResourceGroup, pool string) quantity.MilliGPU {
	var sum quantity.MilliGPU
	for _, group := range groups {
		for _, flavor := range group.Flavors {
			for _, r := range flavor.Resources {
				if r.Name == classes.ResourceMilliGPU && (pool == "" || string(flavor.Name) == pool) {
					sum = sum.Add(quantity.MilliGPU(r.NominalQuota.Value()))
				}
			}
		}
	}
	return sum
}

// weight is in thousandths; 1 without one.
func weight(sharing *kueuev1.FairSharing) int64 {
	if sharing == nil || sharing.Weight == nil {
		return 1000
	}
	w := sharing.Weight.DeepCopy() // reading it as a number would change it
	return w.MilliValue()
}

// annotations reads what Kueue has no field for. What cannot be read is left
// out and told.
func (t *translation) annotations(q *snapshot.Queue, meta *metav1.ObjectMeta) {
	q.Limit, q.Priority = quantity.Unlimited, defaultPriority
	if amount, said := t.amount(meta, classes.AnnotationDeserved); said && q.Cohort {
		q.Deserved, q.SumChildren = amount, false
	}
	if amount, said := t.amount(meta, classes.AnnotationLimit); said {
		q.Limit = amount
	}
	if text, said := meta.Annotations[classes.AnnotationPriority]; said {
		if _, err := fmt.Sscanf(text+"\n", "%d\n", &q.Priority); err != nil {
			q.Priority = defaultPriority
			t.problem("%s: annotation %s is %q: write a whole number", meta.Name, classes.AnnotationPriority, text)
		}
	}
	q.MinRuntimePreempt = t.duration(meta, classes.AnnotationMinRuntimePreempt)
	q.MinRuntimeReclaim = t.duration(meta, classes.AnnotationMinRuntimeReclaim)
}

func (t *translation) amount(meta *metav1.ObjectMeta, name string) (quantity.MilliGPU, bool) {
	text, said := meta.Annotations[name]
	if !said {
		return 0, false
	}
	if text == "unlimited" {
		return quantity.Unlimited, true
	}
	q, err := resource.ParseQuantity(text)
	if err != nil || q.Sign() < 0 {
		t.problem("%s: annotation %s is %q: write an amount of milligpu, as 8k for 8 GPUs, or unlimited", meta.Name, name, text)
		return 0, false
	}
	return quantity.MilliGPU(q.Value()), true
}

func (t *translation) duration(meta *metav1.ObjectMeta, name string) *int64 {
	text, said := meta.Annotations[name]
	if !said {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		t.problem("%s: annotation %s is %q: write a time span, as 10m", meta.Name, name, text)
		return nil
	}
	n := int64(d)
	return &n
}

func (t *translation) problem(format string, args ...any) {
	t.problems[fmt.Sprintf(format, args...)] = true
}

func (t *translation) sortedProblems() []string { return slices.Sorted(maps.Keys(t.problems)) }
