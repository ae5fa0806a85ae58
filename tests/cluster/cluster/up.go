package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/fairshard/fairshard/tests/cluster/pki"
	"github.com/fairshard/fairshard/tests/cluster/programs"
	"github.com/fairshard/fairshard/tests/cluster/state"
)

// Wish is what the caller of Up asks for.
type Wish struct {
	state.Desired
	// Images are image files to load on every node.
	Images []string
	// Timings is a file for the seconds that each program took to build; may be empty.
	Timings string
}

// Up brings the cluster up, or completes and repairs it, and returns when it is
// ready for pods.
func (t Tool) Up(ctx context.Context, w Wish) (*state.State, error) {
	if err := state.CheckDir(w.Dir); err != nil {
		return nil, err
	}
	if err := CheckRights(); err != nil {
		return nil, err
	}
	for _, image := range w.Images {
		if _, err := os.Stat(image); err != nil {
			return nil, fmt.Errorf("find image file: %w", err)
		}
	}
	release, err := state.Lock(w.Dir, t.waitMessage(w.Dir))
	if err != nil {
		return nil, err
	}
	defer release()
	st, err := plan(w.Desired)
	if err != nil {
		return nil, err
	}
	if err := t.prepare(ctx, st, w.Timings); err != nil {
		return nil, err
	}
	r, err := t.attach(st)
	if err != nil {
		return nil, err
	}
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	return st, r.load(ctx, w.Images, st.Nodes)
}

func (t Tool) waitMessage(dir string) func() {
	return func() {
		_, _ = fmt.Fprintf(t.Log, "another command works on %s, waiting for it\n", dir)
	}
}

// plan completes the state of the cluster and saves it before anything starts.
func plan(want state.Desired) (*state.State, error) {
	old, err := state.LoadIfPresent(want.Dir)
	if err != nil {
		return nil, err
	}
	taken, err := lookAround(want.Dir)
	if err != nil {
		return nil, err
	}
	st, err := state.Plan(old, want, taken)
	if err != nil {
		return nil, err
	}
	if old != nil {
		st.Programs = maps.Clone(old.Programs)
	}
	return st, st.Save()
}

// prepare builds what is missing and links it into the cluster's bin folder.
func (t Tool) prepare(ctx context.Context, st *state.State, timings string) error {
	b := *t.Builder
	b.Env = append(slices.Clone(b.Env), "FAIRSHARD_CLUSTER="+st.Dir)
	result, err := b.Build(ctx, wanted(st))
	if err != nil {
		return err
	}
	if timings != "" {
		if err := programs.WriteTimings(timings, result.Timings); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(st.BinDir(), 0o755); err != nil {
		return fmt.Errorf("create bin folder: %w", err)
	}
	for name, file := range result.Paths {
		if err := link(file, filepath.Join(st.BinDir(), name)); err != nil {
			return err
		}
	}
	st.Programs = result.Paths
	return st.Save()
}

// wanted leaves out the programs of nodes and of Kueue when there are none.
func wanted(st *state.State) []programs.Module {
	return slices.DeleteFunc(programs.All(), func(m programs.Module) bool {
		switch m.Name {
		case "pause", "cni", "runc", "containerd":
			return len(st.Nodes) == 0
		case "kueue":
			return !st.Kueue
		default:
			return false
		}
	})
}

// link replaces the link in one step: a running `up` never sees it missing.
func link(target, name string) error {
	if now, err := os.Readlink(name); err == nil && now == target {
		return nil
	}
	tmp := name + ".tmp"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("link %s: %w", name, err)
	}
	if err := os.Symlink(target, tmp); err != nil {
		return fmt.Errorf("link %s: %w", name, err)
	}
	if err := os.Rename(tmp, name); err != nil {
		return fmt.Errorf("link %s: %w", name, err)
	}
	return nil
}

// ensureCertificates makes the certificates of all servers and clients.
func (r *run) ensureCertificates() error {
	ip, err := machineIP()
	if err != nil {
		return err
	}
	r.nodeIP = ip
	requests := []pki.Request{
		{Name: "admin", User: "fairshard-admin", Groups: []string{"system:masters"}},
		{Name: "kube-apiserver", User: "kube-apiserver", Hosts: []string{
			"127.0.0.1", "localhost", "kubernetes.default.svc", "10.96.0.1",
		}},
		{Name: "kubelet-client", User: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}},
		{Name: ControllerManager, User: "system:kube-controller-manager"},
		{Name: Scheduler, User: "system:kube-scheduler"},
		kueueCertificate(),
	}
	for _, node := range r.st.Nodes {
		requests = append(requests, pki.Request{
			Name: nodeDaemon(Kubelet, node), User: "system:node:" + node, Groups: []string{"system:nodes"},
			Hosts: []string{ip, node},
		})
	}
	for _, request := range requests {
		if err := r.store.Ensure(request); err != nil {
			return err
		}
	}
	return nil
}

// machineIP is an address of this machine that a Node object may carry: the
// kubelet refuses loopback addresses.
func machineIP() (string, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("list addresses of this machine: %w", err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() && !isPodAddress(n.IP) {
			return n.IP.String(), nil
		}
	}
	return "", errors.New("find an address for the nodes: this machine has no IPv4 address but loopback; " +
		"add one, for example: ip link add dummy0 type dummy && ip addr add 192.0.2.1/32 dev dummy0 && ip link set dummy0 up")
}

// writeKubeconfig writes the kubeconfig of one client certificate.
func (r *run) writeKubeconfig(certificate, path string) error {
	data, err := r.store.Kubeconfig(certificate, r.st.APIServerURL())
	if err != nil {
		return err
	}
	_, err = r.write(path, data)
	return err
}

// start starts what does not run, in order, and waits until all is ready.
func (r *run) start(ctx context.Context) error {
	if err := r.etcd(ctx); err != nil {
		return err
	}
	if err := r.apiServer(ctx); err != nil {
		return err
	}
	parts := []func(context.Context) error{r.controllerManager, r.scheduler}
	if r.st.Kueue {
		parts = append(parts, r.kueue)
	}
	for _, node := range r.st.Nodes {
		parts = append(parts, func(ctx context.Context) error { return r.node(ctx, node) })
	}
	if err := parallel(ctx, parts...); err != nil {
		return err
	}
	return r.writeKubeconfig("admin", r.st.Kubeconfig())
}

// Summary tells a person what to do with the cluster.
func Summary(w io.Writer, st *state.State) {
	_, _ = fmt.Fprintf(w, "cluster in %s is ready: %d nodes, API server %s\n  export KUBECONFIG=%s\n  export PATH=%s:$PATH\n",
		st.Dir, len(st.Nodes), st.APIServerURL(), st.Kubeconfig(), st.BinDir())
}
