package state

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Names of the ports of a cluster's control plane. A node's kubelet port is
// named by KubeletPort.
const (
	PortEtcd          = "etcd"
	PortEtcdPeer      = "etcd-peer"
	PortAPIServer     = "kube-apiserver"
	PortController    = "kube-controller-manager"
	PortScheduler     = "kube-scheduler"
	PortKueueWebhook  = "kueue-webhook"
	PortKueueMetrics  = "kueue-metrics"
	PortKueueHealth   = "kueue-health"
	fileName          = "cluster.json"
	dirMode           = 0o755
	maxNodes          = 16
	kubeletPortPrefix = "kubelet-"
)

// ErrDamaged means that a state file cannot be used; `down` works without it.
var ErrDamaged = errors.New("cluster state is damaged")

// State is what one cluster remembers between commands.
type State struct {
	// Dir is the absolute directory of the cluster and its identity.
	Dir string `json:"dir"`
	// Ports are TCP ports on 127.0.0.1 by name, chosen once.
	Ports map[string]int `json:"ports"`
	// PodCIDR is the range that the nodes' pod subnets are cut from.
	PodCIDR string `json:"podCIDR"`
	// Nodes are the node names in the order of their creation.
	Nodes []string `json:"nodes"`
	// Kueue says whether Kueue's manager belongs to the cluster.
	Kueue bool `json:"kueue"`
	// KueueConfig is a file whose settings override our Kueue settings; may be empty.
	KueueConfig string `json:"kueueConfig,omitempty"`
	// Sysctls are settings of the kernel, as they were before the first cluster
	// on this machine started; kubelets and the pod network change them.
	Sysctls map[string]string `json:"sysctls,omitempty"`
	// Programs maps a program's name to the file that was started.
	Programs map[string]string `json:"programs,omitempty"`
}

// ID is a short name made from the directory. Two clusters never share it in
// practice (32 bits of SHA-256).
func ID(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:4])
}

// CgroupRoot is the name of the cgroup that holds every pod of the cluster at dir.
func CgroupRoot(dir string) string { return "fairshard-" + ID(dir) }

// Load reads the state of the cluster at dir. The error is fs.ErrNotExist when
// no cluster was ever started there.
func Load(dir string) (*State, error) {
	data, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		return nil, fmt.Errorf("read cluster state: %w", err)
	}
	s := &State{}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("%w in %s: %w; run `down` for this directory first", ErrDamaged, dir, err)
	}
	if s.Dir != dir {
		return nil, fmt.Errorf("%w in %s: it belongs to %s, a cluster directory cannot be moved", ErrDamaged, dir, s.Dir)
	}
	return s, nil
}

// LoadIfPresent is Load that returns nil when there is no cluster.
func LoadIfPresent(dir string) (*State, error) {
	s, err := Load(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return s, err
}

// Save writes the state so that a crash leaves the old or the new file, never half of one.
func (s *State) Save() error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode cluster state: %w", err)
	}
	if err := WriteFile(s.Path(fileName), append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("save cluster state: %w", err)
	}
	return nil
}

// WriteFile writes through a temporary file and creates the folder when it is missing.
func WriteFile(path string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return err
	}
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, data, mode); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// Path joins the elements below the cluster's directory.
func (s *State) Path(elem ...string) string {
	return filepath.Join(append([]string{s.Dir}, elem...)...)
}

// Kubeconfig is the administrator's kubeconfig file.
func (s *State) Kubeconfig() string { return s.Path("kubeconfig") }

// BinDir is the folder with links to every program of the cluster.
func (s *State) BinDir() string { return s.Path("bin") }

// LogFile is where the daemon of that name writes.
func (s *State) LogFile(daemon string) string { return s.Path("logs", daemon+".log") }

// NodeDir is the folder of one node.
func (s *State) NodeDir(node string) string { return s.Path("nodes", node) }

// RunDir is what the node sees as /run.
func (s *State) RunDir(node string) string { return s.Path("nodes", node, "run") }

// KubeletDir is what the node sees as /var/lib/kubelet.
func (s *State) KubeletDir(node string) string { return s.Path("nodes", node, "kubelet") }

// Port returns the port of that name and panics when it was never chosen: asking
// for one is a mistake in this program.
func (s *State) Port(name string) int {
	port, ok := s.Ports[name]
	if !ok {
		panic("broken invariant: no port was chosen for " + name)
	}
	return port
}

// KubeletPort is the name of a node's kubelet port.
func KubeletPort(node string) string { return kubeletPortPrefix + node }

// APIServerURL is the address that every client uses.
func (s *State) APIServerURL() string {
	return fmt.Sprintf("https://127.0.0.1:%d", s.Port(PortAPIServer))
}

// HasNode says whether the cluster has a node of that name.
func (s *State) HasNode(node string) bool { return slices.Contains(s.Nodes, node) }

// CheckDir refuses directories that the nodes cannot see: each node has its own
// /run, /var/log, /var/lib/kubelet and /var/lib/cni.
func CheckDir(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("use directory %s: the path must be absolute", dir)
	}
	for _, hidden := range []string{"/run", "/var/run", "/var/log", "/var/lib/kubelet", "/var/lib/cni"} {
		if dir == hidden || strings.HasPrefix(dir, hidden+"/") {
			return fmt.Errorf("use directory %s: a node sees its own %s, choose a directory outside of it", dir, hidden)
		}
	}
	return nil
}
