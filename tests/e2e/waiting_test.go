package e2e

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// All 16 GPUs are taken by the same team; one more of its jobs waits, says why,
// and starts by itself when one ends.
func TestAJobBeyondTheLastGPUWaitsAndStartsByItself(t *testing.T) {
	fill := job{namespace: "team-a", name: "fill", template: "one-gpu", pods: 16, sleep: "1h"}
	late := job{namespace: "team-a", name: "late", template: "one-gpu", sleep: "1s"}
	kubectl(t, template("team-a", "one-gpu", wholeGPU)+fill.yaml(), "apply", "--server-side", "-f", "-")
	eventually(t, "16 running pods", func() string { return wantPhase(t, "team-a", "fill", corev1.PodRunning, 16) })

	kubectl(t, late.yaml(), "apply", "--server-side", "-f", "-")
	reason := regexp.MustCompile(`(?s)Name:\s+fairshard\n.*?Message:\s+[^\n]*0 of 16`)
	alt := regexp.MustCompile(`(?s)Message:\s+[^\n]*0 of 16[^\n]*\n.*?Name:\s+fairshard\n`)
	eventually(t, "a reason with numbers on the Workload", func() string {
		out := kubectl(t, "", "describe", "workload", "-n", "team-a")
		if reason.MatchString(out) || alt.MatchString(out) {
			return ""
		}
		return out
	})
	if pods := podsOf(t, "team-a", "late"); len(pods) != 0 {
		t.Errorf("the waiting job has %d pods", len(pods))
	}
	kubectl(t, "", "delete", "pod", "-n", "team-a", podsOf(t, "team-a", "fill")[0].Name, "--wait=false")
	// The deleted pod's replacement belongs to a started workload and comes first; the job's end frees all.
	kubectl(t, "", "delete", "job", "-n", "team-a", "fill")
	eventually(t, "the waiting job to complete", func() string { return wantComplete(t, "team-a", "late") })
	kubectl(t, "", "delete", "job", "-n", "team-a", "late")
	waitNothingHeld(t)
}

// A pod that fails is replaced; the replacement is born gated and released like the first one.
func TestAReplacementPodIsReleasedToo(t *testing.T) {
	again := job{namespace: "team-a", name: "again", template: "one-gpu", sleep: "1h"}
	kubectl(t, template("team-a", "one-gpu", wholeGPU)+again.yaml(), "apply", "--server-side", "-f", "-")
	eventually(t, "a running pod", func() string { return wantPhase(t, "team-a", "again", corev1.PodRunning, 1) })
	first := podsOf(t, "team-a", "again")[0].Name
	kubectl(t, "", "delete", "pod", "-n", "team-a", first)
	eventually(t, "another running pod", func() string {
		for _, pod := range podsOf(t, "team-a", "again") {
			if pod.Name != first && pod.Status.Phase == corev1.PodRunning {
				return ""
			}
		}
		return "only the first pod"
	})
	kubectl(t, "", "delete", "job", "-n", "team-a", "again")
	waitNothingHeld(t)
}

// Without any claim: two GPUs as an extended resource, through the queue.
func TestExtendedResource(t *testing.T) {
	j := job{namespace: "team-a", name: "extended", extended: 2, sleep: "1s"}
	kubectl(t, j.yaml(), "apply", "--server-side", "-f", "-")
	eventually(t, "the job to complete", func() string { return wantComplete(t, "team-a", "extended") })
	kubectl(t, "", "delete", "job", "-n", "team-a", "extended")
	waitNothingHeld(t)
}

// Work outside Kueue runs on free devices, and the planner sees them as used.
func TestWorkOutsideKueueCountsAsUsed(t *testing.T) {
	outside := job{namespace: "team-a", name: "outside", template: "all-of-a-node", sleep: "1h", noQueue: true}
	kubectl(t, template("team-a", "all-of-a-node", `{deviceClassName: gpu.fairshard.dev, count: 8}`)+outside.yaml(), "apply", "--server-side", "-f", "-")
	eventually(t, "the pod outside Kueue", func() string { return wantPhase(t, "team-a", "outside", corev1.PodRunning, 1) })
	inside := job{namespace: "team-b", name: "inside", template: "all-of-a-node", pods: 2, sleep: "1s"}
	kubectl(t, template("team-b", "all-of-a-node", `{deviceClassName: gpu.fairshard.dev, count: 8}`)+inside.yaml(), "apply", "--server-side", "-f", "-")
	eventually(t, "the gang of two nodes to wait", func() string { return wantMessage(t, "team-b", "inside", "8 of 16") })
	kubectl(t, "", "delete", "job", "-n", "team-a", "outside")
	eventually(t, "the gang to complete", func() string { return wantComplete(t, "team-b", "inside") })
	kubectl(t, "", "delete", "job", "-n", "team-b", "inside")
	waitNothingHeld(t)
}

// wantPhase says what is missing until n pods of a job are in a phase.
func wantPhase(t *testing.T, namespace, name string, phase corev1.PodPhase, n int) string {
	t.Helper()
	count, seen := 0, []string{}
	for _, pod := range podsOf(t, namespace, name) {
		if pod.Status.Phase == phase && pod.DeletionTimestamp == nil {
			count++
		}
		seen = append(seen, fmt.Sprintf("%s %s", pod.Name, pod.Status.Phase))
	}
	if count == n {
		return ""
	}
	return fmt.Sprintf("%d of %d pods are %s: %v", count, n, phase, seen)
}

func wantComplete(t *testing.T, namespace, name string) string {
	t.Helper()
	var j batchv1.Job
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &j); err != nil {
		return err.Error()
	}
	for _, c := range j.Status.Conditions {
		if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue {
			return ""
		}
	}
	return fmt.Sprintf("job %s: active %d, succeeded %d, failed %d; %s", name, j.Status.Active, j.Status.Succeeded, j.Status.Failed, messageOf(t, namespace, name))
}

// wantMessage says what the check of a job's Workload says until that contains text.
func wantMessage(t *testing.T, namespace, name, text string) string {
	t.Helper()
	message := messageOf(t, namespace, name)
	if strings.Contains(message, text) {
		return ""
	}
	return fmt.Sprintf("the message of %s is %q, want %q in it", name, message, text)
}

func messageOf(t *testing.T, namespace, name string) string {
	t.Helper()
	w := workloadOf(t, namespace, name)
	if w == nil {
		return "no Workload"
	}
	for _, check := range w.Status.AdmissionChecks {
		if check.Name == "fairshard" {
			return check.Message
		}
	}
	return "no check on the Workload"
}

// waitNothingHeld waits until no claim holds a device and no claim file is left on any node.
func waitNothingHeld(t *testing.T) {
	t.Helper()
	eventually(t, "all claims to be gone", func() string {
		var claims resourcev1.ResourceClaimList
		if err := cluster.Client.List(t.Context(), &claims); err != nil {
			return err.Error()
		}
		if len(claims.Items) > 0 {
			return fmt.Sprintf("%d claims, for example %s", len(claims.Items), claims.Items[0].Name)
		}
		return ""
	})
	eventually(t, "all claim files to be gone", func() string { return strings.Join(claimFiles(t), "\n") })
}
