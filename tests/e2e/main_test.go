package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/tests/harness"
)

// cluster is the one cluster that all tests of this package share, in order.
var (
	cluster    *harness.Cluster
	demoOutput string
)

func TestMain(m *testing.M) {
	if os.Getenv("FAIRSHARD_E2E") != "1" {
		fmt.Println("skipped: FAIRSHARD_E2E=1 is not set (make e2e sets it; needs root)")
		return
	}
	os.Exit(runAll(m))
}

// runAll starts the example, runs the tests on its cluster, ends it and checks that nothing is left.
func runAll(m *testing.M) int {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "fairshard-e2e-")
	if err != nil {
		return failed("make a folder", err)
	}
	defer os.RemoveAll(dir)
	before, err := harness.LookAtMachine()
	if err != nil {
		return failed("look at the machine", err)
	}
	if demoOutput, err = demo(ctx, dir); err == nil {
		cluster, err = harness.Connect(ctx, harness.Options{Dir: dir, Log: os.Stderr})
	}
	code := 1
	if err == nil {
		code = m.Run()
	} else {
		failed("start the example", err)
	}
	if code != 0 {
		describeFailure(ctx, dir)
	}
	if _, err := demo(ctx, dir, "-down"); err != nil {
		return failed("end the cluster", err)
	}
	after, err := harness.LookAtMachine()
	if err != nil {
		return failed("look at the machine", err)
	}
	if extra := after.Extra(before); len(extra) > 0 {
		return failed("leave nothing behind", fmt.Errorf("still there:\n%s", strings.Join(extra, "\n")))
	}
	return code
}

// demo runs bin/demo and returns what it printed.
func demo(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "../../bin/demo", append([]string{"-dir", dir}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&out, os.Stderr), os.Stderr
	err := cmd.Run()
	return out.String(), err
}

// describeFailure prints what one would look at first, before the cluster goes.
func describeFailure(ctx context.Context, dir string) {
	c, err := harness.Connect(ctx, harness.Options{Dir: dir, Log: os.Stderr})
	if err != nil {
		failed("connect to describe the failure", err)
		return
	}
	for _, args := range [][]string{
		{"get", "pods,jobs,workloads,resourceclaims", "-A", "-o", "wide"},
		{"get", "events", "-A", "--sort-by=.lastTimestamp"},
		{"describe", "workloads", "-A"},
		{"logs", "-n", "fairshard-system", "-l", "app.kubernetes.io/part-of=fairshard", "--tail=60", "--prefix"},
	} {
		out, err := c.Kubectl(ctx, "", args...)
		fmt.Fprintf(os.Stderr, "\n# kubectl %s (error: %v)\n%s\n", strings.Join(args, " "), err, tail(out, 20000))
	}
}

func tail(text string, n int) string {
	if len(text) > n {
		return "...\n" + text[len(text)-n:]
	}
	return text
}

func failed(what string, err error) int {
	fmt.Fprintf(os.Stderr, "e2e: %s: %v\n", what, err)
	return 1
}

// eventually waits until check returns "" (what is still wrong otherwise).
func eventually(t *testing.T, what string, check func() string) {
	t.Helper()
	if err := harness.Wait(t.Context(), 2*time.Minute, what, func() (bool, string) {
		wrong := check()
		return wrong == "", wrong
	}); err != nil {
		t.Fatal(err)
	}
}

func kubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := cluster.Kubectl(t.Context(), stdin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// workloadOf returns the Workload of a Job, or nil.
func workloadOf(t *testing.T, namespace, job string) *kueuev1.Workload {
	t.Helper()
	var list kueuev1.WorkloadList
	if err := cluster.Client.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for _, w := range list.Items {
		for _, owner := range w.OwnerReferences {
			if owner.Name == job {
				return &w
			}
		}
	}
	return nil
}

// podsOf returns the pods of a Job.
func podsOf(t *testing.T, namespace, job string) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := cluster.Client.List(t.Context(), &list, client.InNamespace(namespace), client.MatchingLabels{"batch.kubernetes.io/job-name": job}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}
