package webhook

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/kueue"
	"github.com/fairshard/fairshard/classes"
)

var _ kueue.Lookup = (*lookup)(nil)

// lookup finds objects in the caches for one review. What does not exist is
// nil; err is the first thing that could not be read, and makes all answers void.
type lookup struct {
	ctx    context.Context //nolint:containedctx // of one review; kueue.Lookup knows no context
	reader client.Reader
	err    error
}

// find reads into object and reports whether it exists.
func (l *lookup) find(namespace, name string, object client.Object) bool {
	if l.err != nil || name == "" {
		return false
	}
	err := l.reader.Get(l.ctx, types.NamespacedName{Namespace: namespace, Name: name}, object)
	if client.IgnoreNotFound(err) != nil {
		l.err = fmt.Errorf("read %T %s: %w", object, name, err)
	}
	return err == nil
}

// list reads objects without copying them: the answers are only read.
func (l *lookup) list(list client.ObjectList) {
	if l.err != nil {
		return
	}
	if err := l.reader.List(l.ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		l.err = fmt.Errorf("read %T: %w", list, err)
	}
}

func (l *lookup) Template(namespace, name string) *resourcev1.ResourceClaimTemplate {
	var template resourcev1.ResourceClaimTemplate
	if !l.find(namespace, name, &template) {
		return nil
	}
	return &template
}

func (l *lookup) Claim(namespace, name string) *resourcev1.ResourceClaim {
	var claim resourcev1.ResourceClaim
	if !l.find(namespace, name, &claim) {
		return nil
	}
	return &claim
}

func (l *lookup) Class(name string) *resourcev1.DeviceClass {
	var class resourcev1.DeviceClass
	if !l.find("", name, &class) {
		return nil
	}
	return &class
}

func (l *lookup) LocalQueue(namespace, name string) *kueuev1.LocalQueue {
	var queue kueuev1.LocalQueue
	if !l.find(namespace, name, &queue) {
		return nil
	}
	return &queue
}

func (l *lookup) ClusterQueue(name string) *kueuev1.ClusterQueue {
	var queue kueuev1.ClusterQueue
	if !l.find("", name, &queue) {
		return nil
	}
	return &queue
}

func (l *lookup) Flavor(name string) *kueuev1.ResourceFlavor {
	var flavor kueuev1.ResourceFlavor
	if !l.find("", name, &flavor) {
		return nil
	}
	return &flavor
}

func (l *lookup) Ours(check kueuev1.AdmissionCheckReference) bool {
	var object kueuev1.AdmissionCheck
	return l.find("", string(check), &object) && object.Spec.ControllerName == classes.AdmissionControllerName
}

func (l *lookup) Nodes() []corev1.Node {
	var nodes corev1.NodeList
	l.list(&nodes)
	return nodes.Items
}

func (l *lookup) Slices() []resourcev1.ResourceSlice {
	var slices resourcev1.ResourceSliceList
	l.list(&slices)
	return slices.Items
}
