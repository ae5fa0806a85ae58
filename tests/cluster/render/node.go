package render

import (
	"fmt"
	"net/netip"

	"sigs.k8s.io/yaml"

	"github.com/fairshard/fairshard/tests/cluster/state"
)

// Paths inside a node's mount namespace.
const (
	ContainerdSocket = "/run/containerd/containerd.sock"
	CDISpecDir       = "/var/run/cdi"
)

// PauseImage is the image of every pod's sandbox, built by this program.
const PauseImage = "localhost/fairshard-pause:dev"

// Node is what the files of one node depend on besides the cluster's state.
type Node struct {
	Name string
	// IP is an address of this machine other than loopback; every node has the same.
	IP string
	// CgroupV1 says whether the host has cgroup v1 hierarchies.
	CgroupV1 bool
	// Snapshotter is containerd's way to build root file systems.
	Snapshotter string
	// Runc is the built program, CNIDir the folder of the network plugins.
	Runc, CNIDir string
	// DNS are the machine's name servers. The cluster has none of its own, and
	// without any the kubelet makes a warning event for every pod.
	DNS []string
}

// Kubelet is the argument list of a node's kubelet.
func Kubelet(s *state.State, node, ip string) []string {
	dir := s.NodeDir(node)
	return []string{
		"--config=" + dir + "/kubelet.yaml",
		"--kubeconfig=" + dir + "/kubelet.kubeconfig",
		"--hostname-override=" + node,
		"--node-ip=" + ip,
		"--v=2",
	}
}

// KubeletConfig is a kubelet's configuration file. All pods lie below the
// cluster's own cgroup, where `down` finds them; that takes cgroupsPerQOS,
// without which the kubelet gives the runtime no parent at all. No limit is set
// on all pods together.
func KubeletConfig(s *state.State, n Node) ([]byte, error) {
	config := map[string]any{
		"apiVersion":     "kubelet.config.k8s.io/v1beta1",
		"kind":           "KubeletConfiguration",
		"address":        n.IP,
		"port":           s.Port(state.KubeletPort(n.Name)),
		"readOnlyPort":   0,
		"healthzPort":    0,
		"authentication": map[string]any{"anonymous": map[string]any{"enabled": false}, "x509": map[string]any{"clientCAFile": s.Path("pki", "ca.crt")}},
		"authorization":  map[string]any{"mode": "Webhook"},
		"tlsCertFile":    s.Path("pki", "kubelet-"+n.Name+".crt"),
		// The same certificate identifies the kubelet as a client.
		"tlsPrivateKeyFile":        s.Path("pki", "kubelet-"+n.Name+".key"),
		"rotateCertificates":       false,
		"containerRuntimeEndpoint": "unix://" + ContainerdSocket,
		"cgroupDriver":             "cgroupfs",
		"cgroupsPerQOS":            true,
		"enforceNodeAllocatable":   []string{},
		"cgroupRoot":               "/" + state.CgroupRoot(s.Dir) + "/" + n.Name,
		"failSwapOn":               false,
		// Images come from files and cannot be pulled again: never collect them.
		"imageGCHighThresholdPercent": 100,
		"imageGCLowThresholdPercent":  99,
		// Tests kill programs again and again; the usual back-off of up to five
		// minutes would only make them wait.
		"crashLoopBackOff": map[string]any{"maxContainerRestartPeriod": "2s"},
		"evictionHard": map[string]any{
			"memory.available": "50Mi", "nodefs.available": "1%", "nodefs.inodesFree": "1%",
			"imagefs.available": "1%", "imagefs.inodesFree": "1%",
		},
		"clusterDNS":      n.DNS,
		"clusterDomain":   "cluster.local",
		"resolvConf":      s.NodeDir(n.Name) + "/resolv.conf",
		"volumePluginDir": s.NodeDir(n.Name) + "/volume-plugins",
		// The kubelet would leave chains in the host's iptables.
		"makeIPTablesUtilChains":    false,
		"maxPods":                   250,
		"kubeAPIQPS":                200,
		"kubeAPIBurst":              400,
		"nodeStatusUpdateFrequency": "5s",
		"registerNode":              true,
		"logging":                   map[string]any{"format": "text"},
	}
	if n.CgroupV1 {
		config["failCgroupV1"] = false
	}
	return yaml.Marshal(config)
}

// ContainerdConfig is a node's containerd configuration.
func ContainerdConfig(s *state.State, n Node) []byte {
	dir := s.NodeDir(n.Name)
	return fmt.Appendf(nil, `version = 3
root = '%[1]s/containerd'
state = '/run/containerd'
# The "opt" plugin would create a folder on the host; image verifiers are not used.
disabled_plugins = ['io.containerd.internal.v1.opt', 'io.containerd.image-verifier.v1.bindir']

[grpc]
  address = '%[2]s'

[plugins.'io.containerd.cri.v1.images']
  snapshotter = '%[3]s'

  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = '%[4]s'

[plugins.'io.containerd.cri.v1.runtime']
  # Without CAP_SYS_RESOURCE an oom_score_adj below our own cannot be set.
  restrict_oom_score_adj = true
  cdi_spec_dirs = ['%[5]s']

  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['%[6]s']
    conf_dir = '%[1]s/cni'

  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'

    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = '%[7]s'
      SystemdCgroup = false

[plugins.'io.containerd.metadata.v1.bolt']
  no_sync = true
`, dir, ContainerdSocket, n.Snapshotter, PauseImage, CDISpecDir, n.CNIDir, n.Runc)
}

// CNIConfig is the network of a node's pods: a veth pair per pod, addresses from
// the node's subnet, no masquerading, so no firewall rule is left behind.
func CNIConfig(s *state.State, n Node, subnet netip.Prefix) ([]byte, error) {
	return yaml.YAMLToJSON(fmt.Appendf(nil, `
cniVersion: 1.0.0
name: fairshard
plugins:
- type: ptp
  ipMasq: false
  ipam:
    type: host-local
    dataDir: %q
    ranges: [[{subnet: %q}]]
    routes: [{dst: 0.0.0.0/0}]
`, s.NodeDir(n.Name)+"/cni-addresses", subnet.String()))
}
