package controller

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/kueue"
	"github.com/fairshard/fairshard/classes"
)

// tree is what the quota of a Cohort depends on.
type tree struct {
	cohorts []kueuev1.Cohort
	queues  []kueuev1.ClusterQueue
	ours    func(kueuev1.AdmissionCheckReference) bool
}

// wantedQuota is the quota of a managed root Cohort: headroom in the flavor
// of every queue below it that lists our check. It says false for a Cohort
// that is not ours to write.
func wantedQuota(tree tree, cohort *kueuev1.Cohort) ([]kueuev1.ResourceGroup, bool) {
	if cohort.Labels[classes.LabelManaged] != "true" || cohort.Spec.ParentName != "" {
		return nil, false
	}
	parents := make(map[kueuev1.CohortReference]kueuev1.CohortReference, len(tree.cohorts))
	for i := range tree.cohorts {
		parents[kueuev1.CohortReference(tree.cohorts[i].Name)] = tree.cohorts[i].Spec.ParentName
	}
	pools := map[kueuev1.ResourceFlavorReference]bool{}
	for i := range tree.queues {
		queue := &tree.queues[i]
		if rootOf(queue.Spec.CohortName, parents) == kueuev1.CohortReference(cohort.Name) && kueue.Managed(queue, tree.ours) {
			for _, pool := range kueue.MilliGPUFlavors(queue) {
				pools[pool] = true
			}
		}
	}
	if len(pools) == 0 {
		return nil, true
	}
	group := kueuev1.ResourceGroup{CoveredResources: []corev1.ResourceName{classes.ResourceMilliGPU}}
	for _, pool := range slices.Sorted(maps.Keys(pools)) {
		group.Flavors = append(group.Flavors, kueuev1.FlavorQuotas{
			Name: pool,
			Resources: []kueuev1.ResourceQuota{{
				Name: classes.ResourceMilliGPU, NominalQuota: *resource.NewQuantity(classes.HeadroomMilliGPU, resource.DecimalSI),
			}},
		})
	}
	return []kueuev1.ResourceGroup{group}, true
}

// rootOf follows parents upwards; a cycle, which Kueue disables, has no root.
func rootOf(cohort kueuev1.CohortReference, parents map[kueuev1.CohortReference]kueuev1.CohortReference) kueuev1.CohortReference {
	for range len(parents) + 1 {
		parent := parents[cohort]
		if parent == "" {
			return cohort
		}
		cohort = parent
	}
	return ""
}
