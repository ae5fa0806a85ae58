package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// claimFiles lists what the plugin keeps per claim on every node: records, limits and CDI files.
func claimFiles(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, node := range cluster.Nodes {
		state := filepath.Join(node.KubeletDir, "plugins", "gpu.fairshard.dev", "claims")
		for _, pattern := range []string{filepath.Join(state, "*"), filepath.Join(node.RunDir, "cdi", "*")} {
			files, err := filepath.Glob(pattern)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, files...)
		}
	}
	return found
}

// plugins finds the running kubelet plugins of this cluster: node -> process.
func plugins() map[string]int {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	found := map[string]int{}
	for _, link := range links {
		exe, err := os.Readlink(link)
		if err != nil || filepath.Base(exe) != "fairshard-kubelet-plugin" {
			continue
		}
		environ, err := os.ReadFile(filepath.Join(filepath.Dir(link), "environ"))
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err != nil {
			continue
		}
		for _, node := range cluster.Nodes {
			if strings.Contains(string(environ), "NODE_NAME="+node.Name+"\x00") {
				found[node.Name] = pid
			}
		}
	}
	return found
}

const killsPerNode = 3

// killDuringPrepare kills the plugin of a node as soon as it has begun to
// prepare claims, a few times per node, until ctx ends. It returns the number of kills.
func killDuringPrepare(ctx context.Context) int {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	kills, seen, victim := map[string]int{}, map[string]int{}, map[string]int{}
	total := 0
	for {
		select {
		case <-ctx.Done():
			return total
		case <-tick.C:
		}
		for _, node := range cluster.Nodes {
			records, _ := filepath.Glob(recordPath(node.KubeletDir, "*"))
			grew := len(records) > seen[node.Name]
			seen[node.Name] = len(records)
			if !grew || kills[node.Name] >= killsPerNode {
				continue
			}
			if pid := plugins()[node.Name]; pid != victim[node.Name] && pid != 0 && syscall.Kill(pid, syscall.SIGKILL) == nil {
				victim[node.Name] = pid
				kills[node.Name]++
				total++
			}
		}
	}
}

// Fifty pods start while the plugins are killed in the middle of preparing
// claims, again and again. Nothing is lost: every pod completes, and every
// claim file and CDI file goes with its pod. It takes some minutes, because the
// kubelet tries a pod again only every minute and a half.
func TestSIGKILLDuringFiftyPodStarts(t *testing.T) {
	storm := job{namespace: "team-a", name: "storm", template: "share-5g", pods: 50, sleep: "3s"}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	killed := make(chan int, 1)
	go func() { killed <- killDuringPrepare(ctx) }()
	kubectl(t, template("team-a", "share-5g", share5G)+storm.yaml(), "apply", "--server-side", "-f", "-")
	if err := waitLong(t, "all fifty pods to complete", func() string { return wantComplete(t, "team-a", "storm") }); err != nil {
		t.Fatal(err)
	}
	stop()
	kills := <-killed
	if kills < killsPerNode {
		t.Errorf("only %d kills happened; the test proved little", kills)
	}
	succeeded := 0
	for _, pod := range podsOf(t, "team-a", "storm") {
		if pod.Status.Phase == corev1.PodSucceeded {
			succeeded++
		}
	}
	if succeeded != 50 {
		t.Errorf("%d pods succeeded, want 50 (none may fail and be replaced)", succeeded)
	}
	kubectl(t, "", "delete", "job", "-n", "team-a", "storm")
	waitNothingHeld(t)
	t.Logf("%d kills", kills)
}

// State files full of rubbish, one of nobody and one of a running pod, are
// moved aside; the plugin starts, serves the rest, and the running pod goes on
// and is released as usual.
func TestACorruptedStateFileDoesNotStopThePlugin(t *testing.T) {
	keep := job{namespace: "team-a", name: "keep", template: "share-5g", sleep: "1h"}
	kubectl(t, template("team-a", "share-5g", share5G)+keep.yaml(), "apply", "--server-side", "-f", "-")
	eventually(t, "a running pod", func() string { return wantPhase(t, "team-a", "keep", corev1.PodRunning, 1) })

	bad := "00000000-dead-beef-0000-000000000000"
	for _, node := range cluster.Nodes {
		path := recordPath(node.KubeletDir, bad)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(`{"version":`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, record := range records(t) {
		if err := os.WriteFile(record, []byte("rubbish"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, pid := range plugins() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	eventually(t, "the bad files to be moved aside", func() string {
		for _, node := range cluster.Nodes {
			if _, err := os.Stat(recordPath(node.KubeletDir, bad)); err == nil {
				return "still in place on " + node.Name
			}
		}
		return ""
	})
	next := job{namespace: "team-a", name: "next", template: "share-5g", sleep: "1s"}
	kubectl(t, next.yaml(), "apply", "--server-side", "-f", "-")
	eventually(t, "a new job to complete", func() string { return wantComplete(t, "team-a", "next") })
	if wrong := wantPhase(t, "team-a", "keep", corev1.PodRunning, 1); wrong != "" {
		t.Error(wrong)
	}
	kubectl(t, "", "delete", "job", "-n", "team-a", "keep", "next")
	removeQuarantine(t)
	waitNothingHeld(t)
}

// waitLong is eventually with the patience that crash back-off needs.
func waitLong(t *testing.T, what string, check func() string) error {
	t.Helper()
	deadline := time.Now().Add(10 * time.Minute)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		wrong := check()
		if wrong == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("wait for %s: last seen: %s", what, strings.TrimSpace(wrong))
		}
		<-tick.C
	}
}
