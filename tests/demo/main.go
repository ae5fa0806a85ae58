// Command demo runs the example of the README on a real one-machine cluster:
// two teams, whole GPUs, shares and multi-GPU shards on simulated H100, in
// real containers. It prints who holds what and what each pod was told, and
// leaves the cluster running.
package main

import (
	"context"
	"embed"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairshard/fairshard/tests/harness"
)

//go:embed manifests/*.yaml
var manifests embed.FS

func main() {
	dir := flag.String("dir", "", "state folder of the cluster (default: below the user cache folder)")
	down := flag.Bool("down", false, "end the cluster instead")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *dir, *down)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string, down bool) error {
	options := harness.Options{Dir: dir, Nodes: 2, Log: os.Stderr}
	if down {
		return harness.Down(ctx, options)
	}
	start := time.Now()
	cluster, err := harness.Up(ctx, options)
	if err != nil {
		return err
	}
	if err := cluster.Install(ctx); err != nil {
		return err
	}
	// The shards go first: each needs a node on which all eight GPUs have room.
	var pods []corev1.Pod
	for _, step := range []struct {
		file string
		pods int // that run afterwards
	}{{"queues.yaml", 0}, {"shards.yaml", 2}, {"jobs.yaml", 6}} {
		text, err := manifests.ReadFile("manifests/" + step.file)
		if err != nil {
			return fmt.Errorf("read %s: %w", step.file, err)
		}
		if err := cluster.Apply(ctx, string(text)); err != nil {
			return err
		}
		if pods, err = waitForPods(ctx, cluster, step.pods); err != nil {
			return err
		}
	}
	if err := printTables(ctx, cluster, pods, os.Stdout); err != nil {
		return err
	}
	printNext(cluster, time.Since(start))
	return nil
}

func printNext(cluster *harness.Cluster, took time.Duration) {
	fmt.Printf(`
Ready after %.0f s. The cluster stays up. Next, for example:

  export KUBECONFIG=%s
  export PATH=%s:$PATH
  kubectl get pods -A -o wide
  kubectl describe resourceclaim -n team-b            # driver, device and consumed capacity of a share
  kubectl get workloads -A                            # who is reserved and admitted
  kubectl apply -f tests/demo/manifests/too-many.yaml # asks for more than is free ...
  kubectl describe workload -n team-a                 # ... and says why it waits
  make demo-down                                      # ends everything
`, took.Seconds(), cluster.Kubeconfig, cluster.BinDir())
}
