package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fairshard/fairshard/tests/cluster/daemon"
	"github.com/fairshard/fairshard/tests/cluster/namespace"
	"github.com/fairshard/fairshard/tests/cluster/state"
)

// stopGrace is how long a daemon may take to end before it is killed.
const stopGrace = 30 * time.Second

// Stop ends one daemon with the signal; it stays down until Restart or Up.
func (t Tool) Stop(dir, kind, node string, signal syscall.Signal) error {
	_, name, err := findDaemon(dir, kind, node)
	if err != nil {
		return err
	}
	running, err := daemon.Find(dir)
	if err != nil {
		return err
	}
	pid, ok := running[name]
	if !ok {
		return nil
	}
	return daemon.Stop(pid, signal, stopGrace)
}

// Restart ends one daemon with the signal, starts it again and waits until it is ready.
func (t Tool) Restart(ctx context.Context, dir, kind, node string, signal syscall.Signal) error {
	st, _, err := findDaemon(dir, kind, node)
	if err != nil {
		return err
	}
	release, err := state.Lock(dir, t.waitMessage(dir))
	if err != nil {
		return err
	}
	defer release()
	if err := t.Stop(dir, kind, node, signal); err != nil {
		return err
	}
	r, err := t.attach(st)
	if err != nil {
		return err
	}
	switch kind {
	case Etcd:
		return r.etcd(ctx)
	case APIServer:
		return r.apiServer(ctx)
	case ControllerManager:
		return r.controllerManager(ctx)
	case Scheduler:
		return r.scheduler(ctx)
	case Kueue:
		return r.kueue(ctx)
	case Containerd:
		return r.containerd(ctx, node)
	default:
		return r.kubelet(ctx, node)
	}
}

// findDaemon turns a kind and a node into a daemon's name.
func findDaemon(dir, kind, node string) (st *state.State, name string, err error) {
	if st, err = state.Load(dir); err != nil {
		return nil, "", err
	}
	switch kind {
	case Etcd, APIServer, ControllerManager, Scheduler, Kueue:
		return st, kind, nil
	case Containerd, Kubelet:
		if !st.HasNode(node) {
			return nil, "", fmt.Errorf("find node %q: the cluster has %v, choose one with --node", node, st.Nodes)
		}
		return st, nodeDaemon(kind, node), nil
	default:
		return nil, "", fmt.Errorf("find daemon %q: choose one of %v", kind,
			[]string{Etcd, APIServer, ControllerManager, Scheduler, Kueue, Containerd, Kubelet})
	}
}

// Load loads image files on the nodes, on all when none is named.
func (t Tool) Load(ctx context.Context, dir string, files, nodes []string) error {
	st, err := state.Load(dir)
	if err != nil {
		return err
	}
	if len(nodes) == 0 {
		nodes = st.Nodes
	}
	for _, node := range nodes {
		if !st.HasNode(node) {
			return fmt.Errorf("find node %q: the cluster has %v", node, st.Nodes)
		}
	}
	absolute := make([]string, len(files))
	for i, file := range files {
		if absolute[i], err = filepath.Abs(file); err != nil {
			return fmt.Errorf("find image file: %w", err)
		}
		if _, err := os.Stat(absolute[i]); err != nil {
			return fmt.Errorf("find image file: %w", err)
		}
	}
	r, err := t.attach(st)
	if err != nil {
		return err
	}
	return r.load(ctx, absolute, nodes)
}

// Enter replaces this process by argv in the node's mount namespace.
func Enter(dir, node string, argv []string) error {
	st, err := state.Load(dir)
	if err != nil {
		return err
	}
	if !st.HasNode(node) {
		return fmt.Errorf("find node %q: the cluster has %v", node, st.Nodes)
	}
	running, err := daemon.Find(dir)
	if err != nil {
		return err
	}
	pid, ok := running[nodeDaemon(Namespace, node)]
	if !ok {
		return fmt.Errorf("enter %s: it is not running, run `up` first", node)
	}
	// A program that is left behind in the node must not outlive the cluster.
	err1 := os.Setenv(daemon.EnvCluster, dir)
	err2 := os.Setenv("PATH", st.BinDir()+":"+os.Getenv("PATH"))
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("prepare environment: %w", err)
	}
	return namespace.ExecIn(pid, argv)
}
