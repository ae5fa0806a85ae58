package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
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

// pluginPIDs finds the running kubelet plugins of this cluster.
func pluginPIDs() []int {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	var pids []int
	for _, link := range links {
		exe, err := os.Readlink(link)
		if err != nil || filepath.Base(exe) != "fairshard-kubelet-plugin" {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Fifty pods start while the plugins are killed again and again. Nothing is
// lost: every pod completes, and every claim file and CDI file goes with its pod.
func TestSIGKILLDuringFiftyPodStarts(t *testing.T) {
	storm := job{namespace: "team-a", name: "storm", template: "share-5g", pods: 50, sleep: "3s"}
	ctx, stop := context.WithCancel(t.Context())
	var kills int
	var wait sync.WaitGroup
	kubectl(t, template("team-a", "share-5g", share5G)+storm.yaml(), "apply", "--server-side", "-f", "-")
	wait.Go(func() {
		tick := time.NewTicker(700 * time.Millisecond)
		defer tick.Stop()
		for kills < 12 {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			for _, pid := range pluginPIDs() {
				if syscall.Kill(pid, syscall.SIGKILL) == nil {
					kills++
				}
			}
		}
	})
	defer wait.Wait()
	defer stop()
	if err := waitLong(t, "all fifty pods to complete", func() string { return wantComplete(t, "team-a", "storm") }); err != nil {
		t.Fatal(err)
	}
	stop()
	wait.Wait()
	if kills < 4 {
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

// A state file full of rubbish is moved aside; the plugin starts and serves the rest.
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
	for _, pid := range pluginPIDs() {
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
	deadline := time.Now().Add(6 * time.Minute)
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
