package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fairshard/fairshard/tests/cluster/api"
	"github.com/fairshard/fairshard/tests/cluster/daemon"
	"github.com/fairshard/fairshard/tests/cluster/image"
	"github.com/fairshard/fairshard/tests/cluster/leftover"
	"github.com/fairshard/fairshard/tests/cluster/namespace"
	"github.com/fairshard/fairshard/tests/cluster/render"
	"github.com/fairshard/fairshard/tests/cluster/state"
)

// node brings one node up: its view of the file system, its containers, its kubelet.
func (r *run) node(ctx context.Context, node string) error {
	if err := r.nodeFiles(node); err != nil {
		return err
	}
	if err := r.nodeNamespace(ctx, node); err != nil {
		return err
	}
	if err := r.containerd(ctx, node); err != nil {
		return err
	}
	return r.kubelet(ctx, node)
}

// nodeFiles writes everything that a node's daemons read.
func (r *run) nodeFiles(node string) error {
	// The host's file may be a link into /run, which the node does not see.
	resolv, err := os.ReadFile("/etc/resolv.conf")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read resolver configuration: %w", err)
	}
	facts, err := r.nodeFacts(node, string(resolv))
	if err != nil {
		return err
	}
	subnet, err := r.st.NodeSubnet(node)
	if err != nil {
		return err
	}
	kubelet, err1 := render.KubeletConfig(r.st, facts)
	cni, err2 := render.CNIConfig(r.st, facts, subnet)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("render configuration of %s: %w", node, err)
	}
	dir := r.st.NodeDir(node)
	if err := r.writeAll(map[string][]byte{
		dir + "/kubelet.yaml":              kubelet,
		dir + "/containerd.toml":           render.ContainerdConfig(r.st, facts),
		dir + "/cni/10-fairshard.conflist": cni,
		dir + "/resolv.conf":               resolv,
	}); err != nil {
		return err
	}
	return r.writeKubeconfig(nodeDaemon(Kubelet, node), dir+"/kubelet.kubeconfig")
}

// nodeFacts are the values that a node's files depend on.
func (r *run) nodeFacts(node, resolv string) (render.Node, error) {
	v1, err := leftover.HasCgroupV1()
	if err != nil {
		return render.Node{}, err
	}
	snapshotter, err := snapshotterFor(r.st.Dir)
	if err != nil {
		return render.Node{}, err
	}
	return render.Node{
		Name: node, IP: r.nodeIP, CgroupV1: v1, Snapshotter: snapshotter,
		Runc: r.program("runc"), CNIDir: r.st.BinDir(), DNS: nameservers(resolv),
	}, nil
}

// nameservers reads a resolv.conf.
func nameservers(resolv string) []string {
	var servers []string
	for line := range strings.Lines(resolv) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "nameserver" && net.ParseIP(f[1]) != nil {
			servers = append(servers, f[1])
		}
	}
	return servers
}

// snapshotterFor avoids overlay on overlay, as in a container without a volume.
func snapshotterFor(dir string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", fmt.Errorf("look at the file system of %s: %w", dir, err)
	}
	if st.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return "native", nil
	}
	return "overlayfs", nil
}

// nodeBinds are the folders that the node sees at standard paths.
func nodeBinds(st *state.State, node string) []namespace.Bind {
	dir := st.NodeDir(node)
	return []namespace.Bind{
		{Source: st.RunDir(node), Target: "/run"},
		{Source: st.KubeletDir(node), Target: "/var/lib/kubelet"},
		{Source: dir + "/cni-results", Target: "/var/lib/cni"},
		{Source: dir + "/log", Target: "/var/log"},
	}
}

// nodeNamespace starts the process that holds the node's mount namespace.
func (r *run) nodeNamespace(ctx context.Context, node string) error {
	binds := nodeBinds(r.st, node)
	for _, b := range binds {
		if err := os.MkdirAll(b.Source, 0o755); err != nil {
			return fmt.Errorf("create folder of %s: %w", node, err)
		}
	}
	for _, sub := range []string{"containerd", "cdi", "lock"} {
		if err := os.MkdirAll(r.st.RunDir(node)+"/"+sub, 0o755); err != nil {
			return fmt.Errorf("create folder of %s: %w", node, err)
		}
	}
	// Written by the holder when the binds are made.
	mark := r.st.RunDir(node) + "/fairshard-node"
	name := nodeDaemon(Namespace, node)
	if !r.find(name).Alive() {
		if err := os.Remove(mark); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("prepare namespace of %s: %w", node, err)
		}
	}
	hold := []string{r.Self, "internal", "hold", "/run/fairshard-node"}
	argv := r.inNewNamespace(binds, hold...)
	// If only the holder died, the mounts live on in the namespace of the others.
	for _, kind := range []string{Containerd, Kubelet} {
		if d := r.find(nodeDaemon(kind, node)); d.Alive() {
			argv = r.inNamespaceOf(d, hold...)
		}
	}
	d, err := r.ensure(name, argv...)
	if err != nil {
		return err
	}
	return r.waitReady(ctx, d, func(context.Context) error {
		_, err := os.Stat(mark)
		return err
	})
}

// inNewNamespace is the command that runs argv in a new mount namespace.
func (r *run) inNewNamespace(binds []namespace.Bind, argv ...string) []string {
	command := []string{r.Self, "internal", "new-namespace"}
	for _, b := range binds {
		command = append(command, "--bind", b.String())
	}
	return append(append(command, "--"), argv...)
}

// inNode is the command that runs argv in the node's mount namespace.
func (r *run) inNode(node string, argv ...string) ([]string, error) {
	holder := r.find(nodeDaemon(Namespace, node))
	if !holder.Alive() {
		return nil, fmt.Errorf("enter %s: it is not running, run `up` first", node)
	}
	return r.inNamespaceOf(holder, argv...), nil
}

// inNamespaceOf is the command that runs argv in the mount namespace of a daemon.
func (r *run) inNamespaceOf(d *daemon.Daemon, argv ...string) []string {
	return append([]string{r.Self, "internal", "in-namespace", strconv.Itoa(d.PID), "--"}, argv...)
}

func (r *run) containerd(ctx context.Context, node string) error {
	argv, err := r.inNode(node, r.program("containerd"), "--config="+r.st.NodeDir(node)+"/containerd.toml")
	if err != nil {
		return err
	}
	d, err := r.ensure(nodeDaemon(Containerd, node), argv...)
	if err != nil {
		return err
	}
	// The path through /proc is short; a socket's path has 107 bytes at most.
	socket := fmt.Sprintf("/proc/%d/root%s", d.PID, render.ContainerdSocket)
	if err := r.waitReady(ctx, d, func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err != nil {
			return err
		}
		return conn.Close()
	}); err != nil {
		return err
	}
	return r.loadPause(ctx, node)
}

// loadPause loads the pause image unless the node has it from an earlier `up`.
func (r *run) loadPause(ctx context.Context, node string) error {
	names, err := r.ctr(ctx, node, "images", "ls", "-q", "name=="+render.PauseImage)
	if err != nil || names != "" {
		return err
	}
	file := r.st.Path("images", "pause-"+node+".tar")
	if err := os.MkdirAll(r.st.Path("images"), 0o755); err != nil {
		return fmt.Errorf("create image folder: %w", err)
	}
	if err := image.Write(image.Spec{
		Name: render.PauseImage, Entrypoint: []string{"/pause"},
		Files: []image.File{{Host: r.program("pause"), Path: "/pause"}},
	}, file); err != nil {
		return err
	}
	return r.importImage(ctx, node, file)
}

func (r *run) importImage(ctx context.Context, node, file string) error {
	_, err := r.ctr(ctx, node, "images", "import", file)
	return err
}

// ctr runs containerd's client on a node and returns its output.
func (r *run) ctr(ctx context.Context, node string, args ...string) (string, error) {
	argv, err := r.inNode(node, append([]string{
		r.program("ctr"), "--address", render.ContainerdSocket, "--namespace", "k8s.io",
	}, args...)...)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), daemon.EnvCluster+"="+r.st.Dir)
	var stderr bytes.Buffer // Separate: on cgroup v1 it always holds a warning.
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("run ctr %v on %s: %w\n%s", args, node, err, stderr.String())
	}
	return string(out), nil
}

// load loads image files on the nodes, all nodes at once.
func (r *run) load(ctx context.Context, files, nodes []string) error {
	if len(files) == 0 {
		return nil
	}
	var fns []func(context.Context) error
	for _, node := range nodes {
		fns = append(fns, func(ctx context.Context) error {
			for _, file := range files {
				if err := r.importImage(ctx, node, file); err != nil {
					return err
				}
				r.printf("loaded %s on %s", file, node)
			}
			return nil
		})
	}
	return parallel(ctx, fns...)
}

func (r *run) kubelet(ctx context.Context, node string) error {
	if err := leftover.EnsureCgroup(state.CgroupRoot(r.st.Dir) + "/" + node); err != nil {
		return err
	}
	argv, err := r.inNode(node, append([]string{r.program("kubelet")}, render.Kubelet(r.st, node, r.nodeIP)...)...)
	if err != nil {
		return err
	}
	d, err := r.ensure(nodeDaemon(Kubelet, node), argv...)
	if err != nil {
		return err
	}
	healthy, err := r.kubeletAnswers(node)
	if err != nil {
		return err
	}
	return r.waitReady(ctx, d, func(ctx context.Context) error {
		if err := healthy(ctx); err != nil {
			return err
		}
		return r.hasCondition(ctx, "/api/v1/nodes/"+node, "Ready")
	})
}

// kubeletAnswers asks the kubelet itself: after a crash its Node still says Ready.
func (r *run) kubeletAnswers(node string) (func(context.Context) error, error) {
	address := net.JoinHostPort(r.nodeIP, strconv.Itoa(r.st.Port(state.KubeletPort(node))))
	client, err := api.NewFromFiles("https://"+address, r.store.CA(), r.store.File("kubelet-client.crt"), r.store.File("kubelet-client.key"))
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return client.Get(ctx, "/healthz", nil) }, nil
}
