package leftover

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// unifiedRoot is where a host with cgroup v2 has its only hierarchy.
const unifiedRoot = "/sys/fs/cgroup"

// EnsureCgroup makes the cgroup at path (such as "fairshard-1a2b3c4d/node-1"),
// which a kubelet wants to find before it makes those of its pods.
func EnsureCgroup(path string) error {
	v1, err := HasCgroupV1()
	if err != nil {
		return err
	}
	if !v1 {
		return ensureUnified(unifiedRoot, path)
	}
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	for _, m := range mounts {
		if m.fstype != "cgroup" {
			continue // A v2 hierarchy beside v1 has no controllers.
		}
		if err := os.MkdirAll(filepath.Join(m.point, path), 0o755); err != nil {
			return fmt.Errorf("create cgroup: %w", err)
		}
	}
	return nil
}

// ensureUnified makes every level and hands all controllers down to it: on v2 a
// cgroup has only the controllers that each of its parents passes on.
func ensureUnified(root, path string) error {
	dir := root
	for _, part := range strings.Split(path, "/") {
		if err := passControllers(dir, dir == root); err != nil {
			return fmt.Errorf("pass controllers to the cgroups below %s: %w", dir, err)
		}
		dir = filepath.Join(dir, part)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("create cgroup: %w", err)
		}
	}
	return nil
}

// passControllers lets children of dir use all its controllers. In a container
// the topmost cgroup holds processes, and then the kernel refuses (EBUSY): they
// move to a cgroup "init" beside ours, as other tools do it.
func passControllers(dir string, top bool) error {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	names := strings.Fields(string(data))
	if len(names) == 0 {
		return errors.New("it has no controllers")
	}
	file := filepath.Join(dir, "cgroup.subtree_control")
	line := []byte("+" + strings.Join(names, " +"))
	err = os.WriteFile(file, line, 0o644)
	if !errors.Is(err, unix.EBUSY) || !top {
		return err
	}
	if err := moveProcesses(dir, filepath.Join(dir, "init")); err != nil {
		return err
	}
	return os.WriteFile(file, line, 0o644)
}

// moveProcesses moves what it can: kernel threads stay, ended processes are gone.
func moveProcesses(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	pids, err := os.ReadFile(filepath.Join(from, "cgroup.procs"))
	if err != nil {
		return err
	}
	for _, pid := range strings.Fields(string(pids)) {
		err := os.WriteFile(filepath.Join(to, "cgroup.procs"), []byte(pid), 0o644)
		if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EINVAL) {
			return err
		}
	}
	return nil
}
