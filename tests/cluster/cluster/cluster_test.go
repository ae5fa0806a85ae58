package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairshard/fairshard/tests/cluster/cluster"
	"github.com/fairshard/fairshard/tests/cluster/daemon"
	"github.com/fairshard/fairshard/tests/cluster/leftover"
	"github.com/fairshard/fairshard/tests/cluster/state"
)

// harness is a built fairshard-cluster and the directory of one cluster.
type harness struct {
	t       *testing.T
	program string
	dir     string
	// podCIDR is remembered by down, for the check that no interface is left.
	podCIDR string
}

const probeImage = "localhost/fairshard-probe:dev"

// newHarness skips unless the caller asked for tests that need root and the
// programs of a cluster.
func newHarness(t *testing.T) *harness {
	t.Helper()
	if os.Getenv("FAIRSHARD_CLUSTER_TEST") != "1" {
		t.Skip("starts a real cluster as root: set FAIRSHARD_CLUSTER_TEST=1 to run it")
	}
	h := &harness{t: t, program: filepath.Join(t.TempDir(), "fairshard-cluster"), dir: filepath.Join(t.TempDir(), "c")}
	h.must("go", "build", "-o", h.program, "github.com/fairshard/fairshard/tests/cluster/cmd/fairshard-cluster")
	t.Cleanup(func() {
		if out, err := exec.Command(h.program, "down", "--dir", h.dir).CombinedOutput(); err != nil {
			t.Errorf("down at the end: %v\n%s", err, out)
		}
	})
	return h
}

// must runs a command and returns its standard output.
func (h *harness) must(name string, args ...string) string {
	h.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+h.dir+"/kubeconfig", "PATH="+h.dir+"/bin:"+os.Getenv("PATH"))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		h.t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, stderr.String())
	}
	return string(out)
}

// cluster runs a command of fairshard-cluster.
func (h *harness) cluster(args ...string) string {
	h.t.Helper()
	return h.must(h.program, append(args, "--dir", h.dir)...)
}

func (h *harness) status() cluster.Report {
	h.t.Helper()
	var report cluster.Report
	if err := json.Unmarshal([]byte(h.cluster("status", "-o", "json")), &report); err != nil {
		h.t.Fatalf("decode status: %v", err)
	}
	return report
}

// pids are the daemons of the cluster by name.
func (h *harness) pids() map[string]int {
	h.t.Helper()
	pids, err := daemon.Find(h.dir)
	if err != nil {
		h.t.Fatal(err)
	}
	return pids
}

// down takes the cluster down.
func (h *harness) down() {
	h.t.Helper()
	if st, err := state.Load(h.dir); err == nil {
		h.podCIDR = st.PodCIDR
	}
	h.cluster("down")
}

// mustBeGone fails when the machine still has anything of the cluster, or has
// more mounts, cgroups or processes than before.
func (h *harness) mustBeGone(before machine) {
	h.t.Helper()
	found, err := leftover.Cluster{Dir: h.dir, PodCIDR: h.podCIDR}.Find()
	if err != nil {
		h.t.Fatal(err)
	}
	if !found.Empty() {
		h.t.Errorf("left behind: %+v", found)
	}
	if _, err := os.Stat(h.dir); !os.IsNotExist(err) {
		h.t.Errorf("directory %s: %v, want it removed", h.dir, err)
	}
	if after := look(h.t, h.dir); !maps.Equal(before, after) {
		h.t.Errorf("on the machine before: %v\nafter: %v", before, after)
	}
}

// machine counts what a cluster could leave on it.
type machine map[string]int

// look counts mounts, interfaces, network namespaces that are mounted, cgroups
// with our name and our processes. Other clusters may come and go meanwhile, so
// what is counted by name is only this cluster's.
func look(t *testing.T, dir string) machine {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	cgroups, err := leftover.Cgroups(state.CgroupRoot(dir))
	if err != nil {
		t.Fatal(err)
	}
	marked, err := daemon.Marked()
	if err != nil {
		t.Fatal(err)
	}
	mine := 0
	for _, p := range marked {
		if p.Cluster == dir {
			mine++
		}
	}
	return machine{
		"mounts": strings.Count(string(mounts), "\n"), "cgroups": len(cgroups), "processes": mine, "probes": probes(t),
	}
}

// probes counts the containers of the test by their program's name, independent
// of how `down` finds them.
func probes(t *testing.T) int {
	t.Helper()
	pids, err := daemon.PIDs()
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, pid := range pids {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err == nil && string(comm) == "fs-probe\n" && daemon.Alive(pid) {
			count++
		}
	}
	return count
}

// probeTar builds the image of a pod that says hello and waits.
func (h *harness) probeTar() string {
	h.t.Helper()
	dir := h.t.TempDir()
	probe, tar := filepath.Join(dir, "fs-probe"), filepath.Join(dir, "probe.tar")
	cmd := exec.Command("go", "build", "-o", probe, "./testdata/probe")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		h.t.Fatalf("build probe: %v\n%s", err, out)
	}
	h.must(h.program, "image", "--out", tar, "--name", probeImage, "--add", probe+":/fs-probe", "--entrypoint", "/fs-probe")
	return tar
}

// runPod creates a pod and waits until it runs.
func (h *harness) runPod(name string) {
	h.t.Helper()
	manifest := filepath.Join(h.t.TempDir(), name+".yaml")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q}, "spec": {"containers": [{
		"name": "c", "image": %q, "imagePullPolicy": "Never", "resources": {"limits": {"cpu": "100m", "memory": "64Mi"}}}]}}`, name, probeImage)
	if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	h.must("kubectl", "apply", "-f", manifest)
	h.must("kubectl", "wait", "--for=condition=Ready", "pod/"+name, "--timeout=60s")
}

// eventually polls a condition; the message says what was waited for.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("waited a minute: %s", what)
}

func TestClusterRunsPodsRepairsItselfAndLeavesNothing(t *testing.T) {
	h := newHarness(t)
	before := look(t, h.dir)
	h.cluster("up", "--nodes", "1", "--images", h.probeTar())
	h.runPod("first")
	if logs := h.must("kubectl", "logs", "first"); !strings.Contains(logs, "hello") {
		t.Errorf("logs of the pod: %q, want a hello", logs)
	}
	if out := h.must("kubectl", "exec", "first", "--", "/fs-probe", "once"); !strings.Contains(out, "hello") {
		t.Errorf("exec in the pod: %q, want a hello", out)
	}
	running := h.pids()

	h.cluster("up")
	if again := h.pids(); !maps.Equal(running, again) {
		t.Errorf("second up changed the daemons from %v to %v", running, again)
	}
	report := h.status()
	if len(report.Nodes) != 1 || len(report.Dead()) != 0 || report.Leftover.Empty() {
		t.Errorf("status: %+v", report)
	}
	if got := strings.TrimSpace(h.cluster("enter", "--node", "node-1", "ls", "/run/containerd/containerd.sock")); got == "" {
		t.Error("enter: the node does not see its containerd socket")
	}

	for _, name := range []string{"kubelet-node-1", "namespace-node-1", "kueue", "kube-scheduler"} {
		if err := syscall.Kill(running[name], syscall.SIGKILL); err != nil {
			t.Fatalf("kill %s: %v", name, err)
		}
	}
	eventually(t, "status notices dead daemons", func() bool {
		out, err := exec.Command(h.program, "status", "--dir", h.dir).CombinedOutput()
		return err != nil && strings.Contains(string(out), "NOT RUNNING")
	})
	h.cluster("up")
	h.cluster("restart", "containerd", "--node", "node-1")
	h.cluster("restart", "kubelet", "--node", "node-1", "--kill")
	h.runPod("second")

	killed := slices.Sorted(maps.Values(h.pids()))
	for _, pid := range killed[:len(killed)/2] {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatalf("kill %d: %v", pid, err)
		}
	}
	h.down()
	h.mustBeGone(before)
	h.down()
	h.mustBeGone(before)
}

func TestDownCleansUpAfterAKilledUp(t *testing.T) {
	h := newHarness(t)
	before := look(t, h.dir)
	// Each round lets `up` live until one more daemon runs.
	for _, last := range []string{"etcd", "kube-apiserver", "namespace-node-1", "containerd-node-1", "kubelet-node-1"} {
		ctx, cancel := context.WithCancel(t.Context())
		cmd := exec.CommandContext(ctx, h.program, "up", "--nodes", "1", "--dir", h.dir) // Cancel sends SIGKILL.
		var output strings.Builder
		cmd.Stdout, cmd.Stderr = &output, &output
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		eventually(t, last+" runs", func() bool { return h.pids()[last] != 0 || len(ended) > 0 })
		cancel()
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("up ended by itself before it was killed at %s: %v\n%s", last, err, output.String())
		}
		h.down()
		h.mustBeGone(before)
	}
}

func TestTwoClustersSideBySide(t *testing.T) {
	one, two := newHarness(t), newHarness(t)
	one.cluster("up", "--nodes", "1", "--kueue=false")
	two.cluster("up", "--nodes", "1", "--kueue=false")
	a, b := one.status(), two.status()
	if a.PodCIDR == b.PodCIDR || a.Server == b.Server {
		t.Errorf("the clusters share %s or %s", a.PodCIDR, a.Server)
	}
	one.cluster("down")
	if got := two.status(); len(got.Dead()) != 0 {
		t.Errorf("down of the first cluster hurt the second: %+v", got.Dead())
	}
}
