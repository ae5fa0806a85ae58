package webhook

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/classes"
)

// keepRuntimeOverhead adds the overhead of the RuntimeClass to podSets that
// carry our charge. Kueue adds it too, but only where there is no overhead at
// all. A class that does not exist is left to whoever creates the pods.
func keepRuntimeOverhead(ctx context.Context, reader client.Reader, workload *kueuev1.Workload) error {
	for i := range workload.Spec.PodSets {
		spec := &workload.Spec.PodSets[i].Template.Spec
		if spec.RuntimeClassName == nil || !onlyOurCharge(spec.Overhead) {
			continue
		}
		var class nodev1.RuntimeClass
		err := reader.Get(ctx, types.NamespacedName{Name: *spec.RuntimeClassName}, &class)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read RuntimeClass %s: %w", *spec.RuntimeClassName, err)
		}
		if class.Overhead == nil {
			continue
		}
		for name, amount := range class.Overhead.PodFixed {
			spec.Overhead[name] = amount.DeepCopy()
		}
	}
	return nil
}

// onlyOurCharge reports whether milligpu is there and nothing else.
func onlyOurCharge(overhead corev1.ResourceList) bool {
	_, charged := overhead[classes.ResourceMilliGPU]
	return charged && len(overhead) == 1
}
