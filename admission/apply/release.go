package apply

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/classes"
)

// release pins one gated pod to its node and removes our gate, in one patch.
// A pod without devices of ours is released without a pin. A pod that is already released, or that its template pins elsewhere, is
// left alone.
func (a *Applier) release(ctx context.Context, seen Seen, d decide.Decision, result *Result) error {
	pod := seen.Pod(d.Namespace, d.Pod)
	if pod == nil || !pod.DeletionTimestamp.IsZero() || !gated(pod) {
		result.Skipped++
		return nil
	}
	pinned := pod.Spec.NodeSelector[corev1.LabelHostname]
	if pinned != "" && d.Hostname != "" && pinned != d.Hostname {
		return fmt.Errorf("release pod %s/%s to %s: its node selector already asks for %s", d.Namespace, d.Pod, d.Hostname, pinned)
	}
	released := pod.DeepCopy()
	released.Spec.SchedulingGates = slices.DeleteFunc(released.Spec.SchedulingGates, isOurs)
	if d.Hostname != "" {
		if released.Spec.NodeSelector == nil {
			released.Spec.NodeSelector = map[string]string{}
		}
		released.Spec.NodeSelector[corev1.LabelHostname] = d.Hostname
	}
	if err := a.Writer.PatchPod(ctx, released, pod); err != nil {
		return fmt.Errorf("release pod %s/%s to %s: %w", d.Namespace, d.Pod, d.Hostname, err)
	}
	a.noteWrite(object{pod: true, namespace: pod.Namespace, name: pod.Name}, pod.ResourceVersion, released.ResourceVersion)
	delete(a.told, pod.UID)
	result.Released++
	return nil
}

func gated(pod *corev1.Pod) bool { return slices.ContainsFunc(pod.Spec.SchedulingGates, isOurs) }

func isOurs(gate corev1.PodSchedulingGate) bool { return gate.Name == classes.GatePlacement }
