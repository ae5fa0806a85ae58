package harness

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Machine is what a cluster could leave behind on this machine: everything
// that runs, is mounted, or exists as interface or cgroup, as sorted lines.
type Machine struct {
	Processes, Mounts, Interfaces, Cgroups []string
}

// LookAtMachine lists what is here now. Kernel threads and processes that
// neither belong to a cluster nor run containers are left out: other work on
// the machine comes and goes.
func LookAtMachine() (Machine, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return Machine{}, fmt.Errorf("list mounts: %w", err)
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return Machine{}, fmt.Errorf("list interfaces: %w", err)
	}
	var m Machine
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		m.Mounts = append(m.Mounts, fields[4])
	}
	for _, i := range interfaces {
		m.Interfaces = append(m.Interfaces, i.Name)
	}
	m.Processes = clusterProcesses()
	m.Cgroups = cgroups()
	for _, list := range [][]string{m.Processes, m.Mounts, m.Interfaces, m.Cgroups} {
		slices.Sort(list)
	}
	return m, nil
}

// Extra returns what is in m and not in before, one line each.
func (m Machine) Extra(before Machine) []string {
	var extra []string
	for _, pair := range []struct {
		what      string
		now, then []string
	}{
		{"process", m.Processes, before.Processes},
		{"mount", m.Mounts, before.Mounts},
		{"interface", m.Interfaces, before.Interfaces},
		{"cgroup", m.Cgroups, before.Cgroups},
	} {
		for _, item := range pair.now {
			if !slices.Contains(pair.then, item) {
				extra = append(extra, pair.what+" "+item)
			}
		}
	}
	return extra
}

// clusterPrograms are the programs a cluster runs, by the name of their file.
var clusterPrograms = []string{
	"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "containerd",
	"containerd-shim-runc-v2", "runc", "kueue", "pause", "probe", "fairshard-cluster",
	"fairshard-kubelet-plugin", "fairshard-admission",
}

func clusterProcesses() []string {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	var found []string
	for _, link := range links {
		exe, err := os.Readlink(link)
		if err != nil {
			continue // ended meanwhile, or a kernel thread
		}
		name := filepath.Base(strings.TrimSuffix(exe, " (deleted)"))
		if slices.Contains(clusterPrograms, name) {
			found = append(found, filepath.Base(filepath.Dir(link))+" "+name)
		}
	}
	return found
}

// cgroupNames are in the path of every cgroup that a cluster or its containers make.
var cgroupNames = []string{"fairshard", "kubepods", "k8s.io", "cri-containerd"}

// cgroups lists the cgroup folders of clusters, of version 1 or 2, down to four levels.
func cgroups() []string {
	var found []string
	for _, pattern := range []string{"*", "*/*", "*/*/*", "*/*/*/*"} {
		paths, _ := filepath.Glob("/sys/fs/cgroup/" + pattern)
		for _, path := range paths {
			ours := slices.ContainsFunc(cgroupNames, func(name string) bool { return strings.Contains(path, name) })
			if info, err := os.Stat(path); ours && err == nil && info.IsDir() {
				found = append(found, path)
			}
		}
	}
	return found
}
