package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What is wrong in a claim is said when it is created.
func TestABadClaimIsRefusedWithAMessage(t *testing.T) {
	share := func(capacity string) string {
		return `{deviceClassName: gpu-share.fairshard.dev, capacity: {requests: ` + capacity + `}}`
	}
	for name, tc := range map[string]struct{ manifest, want string }{
		"zero capacity":     {template("team-a", "bad", share(`{memory: "0"}`)), "positive"},
		"negative capacity": {template("team-a", "bad", share(`{memory: "-5Gi"}`)), "positive"},
		"unknown capacity":  {template("team-a", "bad", share(`{cores: "5"}`)), "memory"},
		"unknown opaque parameters": {`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: bad, namespace: team-a}
spec:
  spec:
    devices:
      requests: [{name: gpu, exactly: {deviceClassName: gpu-share.fairshard.dev}}]
      config:
      - opaque:
          driver: gpu.fairshard.dev
          parameters: {apiVersion: gpu.fairshard.dev/v1alpha1, kind: ShareConfig, colour: green}
`, "colour"},
		"two share requests on one GPU": {`
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: bad, namespace: team-a}
spec:
  devices:
    requests:
    - {name: a, exactly: {deviceClassName: gpu-share.fairshard.dev, capacity: {requests: {memory: 5Gi}}}}
    - {name: b, exactly: {deviceClassName: gpu-share.fairshard.dev, capacity: {requests: {memory: 5Gi}}}}
`, "distinctAttribute"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := cluster.Kubectl(t.Context(), tc.manifest, "create", "-f", "-")
			if err == nil {
				t.Fatalf("it was accepted: %s", out)
			}
			if !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the message is %q, want %q in it", err, tc.want)
			}
		})
	}
}

// What only the cluster's state shows is said on the Workload; nobody else is disturbed.
func TestBadWorkWaitsWithAMessageAndDisturbsNobody(t *testing.T) {
	huge := template("team-a", "huge", `{deviceClassName: gpu-share.fairshard.dev, capacity: {requests: {memory: 200Gi}}}`) +
		job{namespace: "team-a", name: "huge", template: "huge"}.yaml()
	nine := template("team-a", "nine", `{deviceClassName: gpu.fairshard.dev, count: 9}`) +
		job{namespace: "team-a", name: "nine", template: "nine"}.yaml()
	early := job{namespace: "team-a", name: "early", template: "not-there-yet"}.yaml()
	lost := job{namespace: "team-a", name: "lost", queue: "no-such-queue", template: "one-gpu"}.yaml()
	good := template("team-a", "one-gpu", wholeGPU) + job{namespace: "team-a", name: "good", template: "one-gpu"}.yaml()
	plain := job{namespace: "team-b", name: "plain", noQueue: true}.yaml()
	kubectl(t, huge+nine+early+lost+good+plain, "apply", "--server-side", "-f", "-")

	eventually(t, "the good job", func() string { return wantComplete(t, "team-a", "good") })
	eventually(t, "the plain job", func() string { return wantComplete(t, "team-b", "plain") })
	eventually(t, "more memory than any GPU has", func() string { return wantMessage(t, "team-a", "huge", "200Gi") })
	eventually(t, "more GPUs than any node has", func() string { return wantMessage(t, "team-a", "nine", "9") })
	eventually(t, "a template that does not exist", func() string { return wantSaid(t, "early", "not-there-yet") })
	eventually(t, "a queue that does not exist", func() string { return wantSaid(t, "lost", "no-such-queue") })

	kubectl(t, template("team-a", "not-there-yet", wholeGPU), "apply", "--server-side", "-f", "-")
	eventually(t, "the early job once its template exists", func() string { return wantComplete(t, "team-a", "early") })
	kubectl(t, "", "delete", "job", "-n", "team-a", "huge", "nine", "early", "lost", "good")
	kubectl(t, "", "delete", "job", "-n", "team-b", "plain")
	waitNothingHeld(t)
}

// wantSaid looks where the owner of a Workload looks: `kubectl describe`, with conditions, checks and events.
func wantSaid(t *testing.T, name, text string) string {
	t.Helper()
	w := workloadOf(t, "team-a", name)
	if w == nil {
		return "no Workload"
	}
	out := kubectl(t, "", "describe", "workload", "-n", "team-a", w.Name)
	for line := range strings.SplitSeq(out, "\n") {
		isSpec := strings.Contains(line, "Queue Name") || strings.Contains(line, "Template Name")
		if strings.Contains(line, text) && !isSpec && strings.Contains(out[strings.Index(out, "Status:"):], line) {
			return ""
		}
	}
	return out
}

// A claim that only Prepare can judge (a pod outside Kueue, policies switched off) ends in an event on the pod.
func TestPrepareRefusesWithAnEventOnThePod(t *testing.T) {
	kubectl(t, "", "delete", "validatingwebhookconfiguration", "fairshard-admission")
	defer func() {
		if err := cluster.Deploy(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	kubectl(t, `
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: colourful, namespace: team-a}
spec:
  spec:
    devices:
      requests: [{name: gpu, exactly: {deviceClassName: gpu-share.fairshard.dev}}]
      config:
      - opaque:
          driver: gpu.fairshard.dev
          parameters: {apiVersion: gpu.fairshard.dev/v1alpha1, kind: ShareConfig, colour: green}
---
`+job{namespace: "team-a", name: "colourful", template: "colourful", noQueue: true}.yaml(), "create", "-f", "-")
	eventually(t, "an event on the pod", func() string {
		pods := podsOf(t, "team-a", "colourful")
		if len(pods) == 0 {
			return "no pod"
		}
		if pods[0].Status.Phase != corev1.PodPending {
			return "the pod is " + string(pods[0].Status.Phase)
		}
		out := kubectl(t, "", "describe", "pod", "-n", "team-a", pods[0].Name)
		if strings.Contains(out, "colour") && strings.Contains(out, "FailedPrepareDynamicResources") {
			return ""
		}
		return out
	})
	kubectl(t, "", "delete", "job", "-n", "team-a", "colourful")
	kubectl(t, "", "delete", "resourceclaimtemplate", "-n", "team-a", "colourful")
	waitNothingHeld(t)
}
