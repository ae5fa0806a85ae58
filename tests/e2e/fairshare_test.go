package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// gpuTemplate is a ResourceClaimTemplate gpus-N for N whole GPUs of one node.
func gpuTemplate(namespace string, n int) string {
	return template(namespace, fmt.Sprintf("gpus-%d", n), fmt.Sprintf(`{deviceClassName: gpu.fairshard.dev, count: %d}`, n))
}

// start creates a job and waits until its pods run.
func start(t *testing.T, j job) {
	t.Helper()
	kubectl(t, j.yaml(), "apply", "--server-side", "-f", "-")
	wantRunning(t, j)
}

func wantRunning(t *testing.T, j job) {
	t.Helper()
	eventually(t, j.name+" to run", func() string { return wantPhase(t, j.namespace, j.name, corev1.PodRunning, max(j.pods, 1)) })
}

// running counts the running pods of a job.
func running(t *testing.T, j job) int {
	t.Helper()
	n := 0
	for _, pod := range podsOf(t, j.namespace, j.name) {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// remove deletes jobs and waits until nothing is held.
func remove(t *testing.T, jobs ...job) {
	t.Helper()
	for _, j := range jobs {
		kubectl(t, "", "delete", "job", "-n", j.namespace, j.name, "--ignore-not-found")
	}
	waitNothingHeld(t)
}

// removeAll removes all jobs, those of the example too.
func removeAll(t *testing.T) {
	t.Helper()
	for _, namespace := range []string{"team-a", "team-b"} {
		kubectl(t, "", "delete", "job", "-n", namespace, "--all")
	}
	waitNothingHeld(t)
}

// wantEvent says what the events with a reason on an object of that kind and
// name prefix say, until one holds all texts.
func wantEvent(t *testing.T, namespace, kind, prefix, reason string, texts ...string) string {
	t.Helper()
	var list eventsv1.EventList
	if err := cluster.Client.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		return err.Error()
	}
	var seen []string
	for _, e := range list.Items {
		if e.Regarding.Kind != kind || !strings.HasPrefix(e.Regarding.Name, prefix) {
			continue
		}
		seen = append(seen, e.Reason+": "+e.Note)
		all := e.Reason == reason
		for _, text := range texts {
			all = all && strings.Contains(e.Note, text)
		}
		if all {
			return ""
		}
	}
	return fmt.Sprintf("no event %s on %s %s with %q; there are:\n%s", reason, kind, prefix, texts, strings.Join(seen, "\n"))
}

// A team that borrows gives back when the deserving team comes: the newest jobs
// that are enough, and no others, and everybody is told who, which rule and the
// numbers.
func TestABorrowingTeamGivesBackWhenTheDeservingTeamComes(t *testing.T) {
	removeAll(t)
	kubectl(t, gpuTemplate("team-a", 2)+gpuTemplate("team-b", 1), "apply", "--server-side", "-f", "-")
	var borrowed []job
	for i := range 6 { // 12 of 16 GPUs; the team deserves 8
		j := job{namespace: "team-a", name: fmt.Sprintf("borrow-%d", i), template: "gpus-2", sleep: "1h"}
		borrowed = append(borrowed, j)
		start(t, j)
	}
	owner := job{namespace: "team-b", name: "owner", template: "gpus-1", pods: 8, sleep: "1h"}
	start(t, owner)
	eventually(t, "four jobs of the borrower to run on", func() string {
		got := ""
		for _, j := range borrowed {
			got += fmt.Sprint(running(t, j))
		}
		if strings.Count(got, "1") == 4 {
			return ""
		}
		return "running: " + got
	})
	victims := 0
	for _, j := range borrowed {
		if running(t, j) == 1 {
			continue
		}
		victims++
		eventually(t, "the victim's events", func() string {
			texts := []string{"team-b/job-owner", "queue team-a uses", "fair share is 8", "asks for 8"}
			if wrong := wantEvent(t, "team-a", "Workload", "job-"+j.name, "ReclaimFairShare", texts...); wrong != "" {
				return wrong
			}
			return wantEvent(t, "team-a", "Job", j.name, "ReclaimFairShare", texts...)
		})
		eventually(t, "the victim to say why it waits", func() string {
			return wantMessage(t, j.namespace, j.name, "uses 8 of its fair share of 8 GPUs")
		})
		eventually(t, "the requester's event about "+j.name, func() string {
			return wantEvent(t, "team-b", "Job", "owner", "ReclaimFairShare", "team-a/job-"+j.name, "gives way")
		})
	}
	if victims != 2 {
		t.Errorf("%d jobs gave way, 2 are enough", victims)
	}
	remove(t, append(borrowed, owner)...)
}

// A gang starts whole or not at all.
func TestAGangStartsWholeOrNotAtAll(t *testing.T) {
	removeAll(t)
	kubectl(t, gpuTemplate("team-a", 1)+gpuTemplate("team-a", 8), "apply", "--server-side", "-f", "-")
	one := job{namespace: "team-a", name: "one", template: "gpus-1", sleep: "1h"}
	start(t, one)
	gang := job{namespace: "team-a", name: "gang", template: "gpus-8", pods: 2, sleep: "1h"}
	kubectl(t, gang.yaml(), "apply", "--server-side", "-f", "-")
	eventually(t, "the gang to wait", func() string { return wantMessage(t, "team-a", "gang", "room for 1 of 2 pods") })
	if pods := podsOf(t, "team-a", "gang"); len(pods) > 0 {
		t.Errorf("a part of the gang exists: %d pods", len(pods))
	}
	never := job{namespace: "team-a", name: "never", template: "gpus-8", pods: 3, sleep: "1h"}
	kubectl(t, never.yaml(), "apply", "--server-side", "-f", "-")
	eventually(t, "what can never fit to say so", func() string { return wantMessage(t, "team-a", "never", "room for 2 such pods, not 3") })
	kubectl(t, "", "delete", "job", "-n", "team-a", "one")
	wantRunning(t, gang)
	remove(t, one, gang, never)
}

// More important work of the same queue makes less important work give way.
func TestMoreImportantWorkPreemptsInsideItsQueue(t *testing.T) {
	removeAll(t)
	kubectl(t, `
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 1000
---
`+gpuTemplate("team-a", 8), "apply", "--server-side", "-f", "-")
	first := job{namespace: "team-a", name: "first", template: "gpus-8", sleep: "1h"}
	second := job{namespace: "team-a", name: "second", template: "gpus-8", sleep: "1h"}
	start(t, first)
	start(t, second)
	urgent := job{namespace: "team-a", name: "urgent", template: "gpus-8", priority: "urgent", sleep: "1h"}
	start(t, urgent)
	eventually(t, "the events of the victim", func() string {
		return wantEvent(t, "team-a", "Job", "", "Preempt", "team-a/job-urgent", "priority 1000 against 0", "asks for 8 GPUs")
	})
	if running(t, first)+running(t, second) != 1 {
		t.Errorf("one of the two should run on, %d and %d pods run", running(t, first), running(t, second))
	}
	remove(t, urgent, first, second)
}

// Two nodes with half of their GPUs used are consolidated for a job that needs
// a whole node, and nobody loses anything but a restart.
func TestFragmentedNodesAreConsolidated(t *testing.T) {
	removeAll(t)
	kubectl(t, gpuTemplate("team-a", 4)+gpuTemplate("team-a", 8), "apply", "--server-side", "-f", "-")
	var jobs []job
	for i := range 4 {
		j := job{namespace: "team-a", name: fmt.Sprintf("half-%d", i), template: "gpus-4", sleep: "1h"}
		jobs = append(jobs, j)
		start(t, j)
	}
	node := func(j job) string { return podsOf(t, j.namespace, j.name)[0].Spec.NodeName }
	other := 0 // a job on another node than the last one
	for i := range jobs {
		if node(jobs[i]) != node(jobs[3]) {
			other = i
		}
	}
	for i := range jobs {
		if i != other && i != 3 {
			kubectl(t, "", "delete", "job", "-n", "team-a", jobs[i].name)
		}
	}
	eventually(t, "one half of each node to be free", func() string {
		for i := range jobs {
			if i != other && i != 3 && len(podsOf(t, "team-a", jobs[i].name)) > 0 {
				return jobs[i].name + " is still there"
			}
		}
		return ""
	})
	big := job{namespace: "team-a", name: "big", template: "gpus-8", sleep: "1h"}
	start(t, big)
	eventually(t, "both halves to run on one node", func() string {
		for _, i := range []int{other, 3} {
			if wrong := wantPhase(t, "team-a", jobs[i].name, corev1.PodRunning, 1); wrong != "" {
				return wrong
			}
		}
		return ""
	})
	eventually(t, "the event of what moved", func() string {
		return wantEvent(t, "team-a", "Job", "half-", "Consolidate", "team-a/job-big", "asks for 8 GPUs", "starts there again")
	})
	remove(t, append(jobs, big)...)
}
