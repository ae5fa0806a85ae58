package cluster

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/fairshard/fairshard/tests/cluster/daemon"
	"github.com/fairshard/fairshard/tests/cluster/leftover"
	"github.com/fairshard/fairshard/tests/cluster/render"
	"github.com/fairshard/fairshard/tests/cluster/state"
)

// Report is what `status` tells, also as JSON; its field names are an interface for tests.
type Report struct {
	Dir        string            `json:"dir"`
	Kubeconfig string            `json:"kubeconfig"`
	Server     string            `json:"server"`
	BinDir     string            `json:"binDir"`
	PodCIDR    string            `json:"podCIDR"`
	CgroupRoot string            `json:"cgroupRoot"`
	Ports      map[string]int    `json:"ports"`
	Programs   map[string]string `json:"programs"`
	Daemons    []DaemonReport    `json:"daemons"`
	Nodes      []NodeReport      `json:"nodes"`
	Leftover   leftover.Found    `json:"onMachine"`
}

// DaemonReport is one program that should run.
type DaemonReport struct {
	Name string `json:"name"`
	// PID is 0 when it does not run.
	PID     int    `json:"pid"`
	LogFile string `json:"logFile"`
	// LogTail is the end of its log when it does not run.
	LogTail string `json:"logTail,omitempty"`
}

// NodeReport says where a node's folders are on the host.
type NodeReport struct {
	Name string `json:"name"`
	// NamespacePID is a process in the node's mount namespace; 0 when it does not run.
	NamespacePID int    `json:"namespacePID"`
	RunDir       string `json:"runDir"`
	KubeletDir   string `json:"kubeletDir"`
	LogDir       string `json:"logDir"`
	// ContainerdSocket is the path inside the node.
	ContainerdSocket string `json:"containerdSocket"`
	PodSubnet        string `json:"podSubnet"`
}

// Status describes the cluster at dir. The error is fs.ErrNotExist when there is none.
func Status(dir string) (*Report, error) {
	st, err := state.Load(dir)
	if err != nil {
		return nil, err
	}
	running, err := daemon.Find(dir)
	if err != nil {
		return nil, err
	}
	report := &Report{
		Dir: dir, Kubeconfig: st.Kubeconfig(), Server: st.APIServerURL(), BinDir: st.BinDir(), PodCIDR: st.PodCIDR,
		CgroupRoot: state.CgroupRoot(dir), Ports: st.Ports, Programs: st.Programs,
	}
	for _, name := range daemonNames(st) {
		d := DaemonReport{Name: name, PID: running[name], LogFile: st.LogFile(name)}
		if d.PID == 0 {
			d.LogTail = daemon.Tail(d.LogFile)
		}
		report.Daemons = append(report.Daemons, d)
	}
	for _, node := range st.Nodes {
		subnet, err := st.NodeSubnet(node)
		if err != nil {
			return nil, err
		}
		report.Nodes = append(report.Nodes, NodeReport{
			Name: node, NamespacePID: running[nodeDaemon(Namespace, node)],
			RunDir: st.RunDir(node), KubeletDir: st.KubeletDir(node), LogDir: filepath.Join(st.NodeDir(node), "log"),
			ContainerdSocket: render.ContainerdSocket, PodSubnet: subnet.String(),
		})
	}
	report.Leftover, err = leftover.Cluster{Dir: dir, PodCIDR: st.PodCIDR}.Find()
	return report, err
}

// Dead lists the daemons that should run and do not.
func (r *Report) Dead() []DaemonReport {
	return slices.DeleteFunc(slices.Clone(r.Daemons), func(d DaemonReport) bool { return d.PID != 0 })
}

// Text is the report for people.
func (r *Report) Text() string {
	text := fmt.Sprintf("cluster     %s\nserver      %s\nkubeconfig  %s\nprograms    %s\npods        %s, cgroup %s\n\n",
		r.Dir, r.Server, r.Kubeconfig, r.BinDir, r.PodCIDR, r.CgroupRoot)
	for _, d := range r.Daemons {
		if d.PID == 0 {
			text += fmt.Sprintf("%-32s NOT RUNNING; the end of %s:\n%s\n", d.Name, d.LogFile, d.LogTail)
			continue
		}
		text += fmt.Sprintf("%-32s pid %-8d %s\n", d.Name, d.PID, d.LogFile)
	}
	for _, n := range r.Nodes {
		text += fmt.Sprintf("\n%s (pods %s)\n  /run              %s\n  /var/lib/kubelet  %s\n  /var/log          %s\n",
			n.Name, n.PodSubnet, n.RunDir, n.KubeletDir, n.LogDir)
	}
	text += "\nports\n"
	for _, name := range slices.Sorted(maps.Keys(r.Ports)) {
		text += fmt.Sprintf("  %-28s %d\n", name, r.Ports[name])
	}
	return text + fmt.Sprintf("\non this machine: %d processes, %d cgroups, %d interfaces\n",
		len(r.Leftover.Processes), len(r.Leftover.Cgroups), len(r.Leftover.Interfaces))
}

// daemonNames lists what a complete cluster runs.
func daemonNames(st *state.State) []string {
	names := []string{Etcd, APIServer, ControllerManager, Scheduler}
	if st.Kueue {
		names = append(names, Kueue)
	}
	for _, node := range st.Nodes {
		names = append(names, nodeDaemon(Namespace, node), nodeDaemon(Containerd, node), nodeDaemon(Kubelet, node))
	}
	return names
}
