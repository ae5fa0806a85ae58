package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairshard/fairshard/tests/harness"
)

// These tests run first, on the example as the demo left it.

func TestDemoPrintsWhoHoldsWhat(t *testing.T) {
	for _, want := range []string{
		`team-a/whole-gpu \S+`,
		`team-b/half-gpu 37\.5Gi`,
		`team-a/small-share 18\.75Gi, team-b/small-share|team-b/small-share 18\.75Gi, team-a/small-share|team-[ab]/small-share 18\.75Gi`,
		`team-a/shard 37\.5Gi, team-b/shard 37\.5Gi|team-b/shard 37\.5Gi, team-a/shard 37\.5Gi`,
		`TOLD, NOT YET ENFORCED`,
		`8 GPU nodes; memory 37\.5Gi on 8 GPUs`,
		`1 GPU nodes; memory 37\.5Gi on 1 GPU`,
		`export KUBECONFIG=`,
	} {
		if !regexp.MustCompile(want).MatchString(demoOutput) {
			t.Errorf("the demo printed no %q:\n%s", want, demoOutput)
		}
	}
	shardRows := regexp.MustCompile(`(?m)^\S+\s+gpu-\S+ .*team-a/shard 37\.5Gi.*$`).FindAllString(demoOutput, -1)
	if len(shardRows) != 8 {
		t.Errorf("team-a/shard holds %d GPUs, want 8", len(shardRows))
	}
	for _, row := range shardRows {
		if !strings.Contains(row, "team-b/shard 37.5Gi") {
			t.Errorf("the two shards do not share this GPU: %s", row)
		}
	}
}

func TestDescribeShowsTheShare(t *testing.T) {
	out := kubectl(t, "", "describe", "resourceclaim", "-n", "team-b")
	for _, want := range []string{"gpu.fairshard.dev", "-share", "Consumed Capacity", "Memory"} {
		if !strings.Contains(strings.ToLower(out), strings.ToLower(want)) {
			t.Errorf("kubectl describe resourceclaim shows no %q:\n%s", want, out)
		}
	}
}

// Each container is told exactly the bytes that its claim consumed, and sees the device nodes of its GPUs only.
func TestAPodIsToldItsShare(t *testing.T) {
	for _, pod := range podsOf(t, "team-b", "half-gpu") {
		log, err := cluster.PodLog(t.Context(), pod)
		if err != nil {
			t.Fatal(err)
		}
		var report struct {
			Devices []string
			Limits  map[string]string
			Env     map[string]string
		}
		if err := json.Unmarshal([]byte(strings.SplitN(log, "\n", 2)[0]), &report); err != nil {
			t.Fatalf("read report %q: %v", log, err)
		}
		if len(report.Devices) != 1 || len(report.Limits) != 1 {
			t.Fatalf("want one device node and one limits file, got %s", log)
		}
		for _, content := range report.Limits {
			limits, err := harness.ParseLimits(content)
			if err != nil {
				t.Fatal(err)
			}
			if len(limits) != 1 || limits[0] != 38400<<20 {
				t.Errorf("told %v bytes, want 40G rounded up to 256Mi: %d", limits, 38400<<20)
			}
		}
		if report.Env["NVIDIA_VISIBLE_DEVICES"] != "void" {
			t.Errorf("NVIDIA_VISIBLE_DEVICES is %q, want void: no other runtime may add GPUs", report.Env["NVIDIA_VISIBLE_DEVICES"])
		}
	}
}

// The pods were born gated and released with a node pinned: they carry the pin and no gate.
func TestPodsArePinned(t *testing.T) {
	for _, pod := range podsOf(t, "team-a", "shard") {
		if pod.Spec.NodeSelector["kubernetes.io/hostname"] == "" || len(pod.Spec.SchedulingGates) > 0 {
			t.Errorf("pod %s: nodeSelector %v, gates %v", pod.Name, pod.Spec.NodeSelector, pod.Spec.SchedulingGates)
		}
	}
}

// A second run on the running cluster changes nothing and is quick (the figure goes to tests/BUDGET.md).
func TestASecondDemoIsHarmless(t *testing.T) {
	before := podNames(t)
	start := time.Now()
	if _, err := demo(t.Context(), cluster.Dir); err != nil {
		t.Fatal(err)
	}
	t.Logf("second demo: %.1f s", time.Since(start).Seconds())
	if after := podNames(t); after != before {
		t.Errorf("pods changed from\n%s\nto\n%s", before, after)
	}
	if _, err := cluster.Kubectl(t.Context(), "", "delete", "jobs", "--all", "-n", "team-a"); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Kubectl(t.Context(), "", "delete", "jobs", "--all", "-n", "team-b"); err != nil {
		t.Fatal(err)
	}
	waitNothingHeld(t)
}

func podNames(t *testing.T) string {
	t.Helper()
	var list corev1.PodList
	if err := cluster.Client.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pod := range list.Items {
		if strings.HasPrefix(pod.Namespace, "team-") {
			names = append(names, fmt.Sprintf("%s/%s", pod.Namespace, pod.Name))
		}
	}
	return strings.Join(names, "\n")
}
