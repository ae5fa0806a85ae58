package leftover

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/fairshard/fairshard/tests/cluster/daemon"
	"github.com/fairshard/fairshard/tests/cluster/state"
)

// pollInterval is how often removal looks again.
const pollInterval = 50 * time.Millisecond

// interfacePatience is how long the kernel may take to remove the interfaces of
// a dead network namespace before we remove them.
const interfacePatience = 3 * time.Second

// Cluster names what belongs to one cluster.
type Cluster struct {
	// Dir is the cluster's directory.
	Dir string
	// PodCIDR is its pod range; empty when no node was ever started.
	PodCIDR string
}

// Found is everything that a cluster has on the machine.
type Found struct {
	Processes  []int    `json:"processes"`
	Cgroups    []string `json:"cgroups"`
	Mounts     []string `json:"mounts"`
	Interfaces []string `json:"interfaces"`
}

// Empty says whether nothing is left.
func (f Found) Empty() bool {
	return len(f.Processes)+len(f.Cgroups)+len(f.Mounts)+len(f.Interfaces) == 0
}

// Find lists what is there now.
func (c Cluster) Find() (Found, error) {
	var f Found
	var errs [4]error
	f.Processes, errs[0] = c.processes()
	f.Cgroups, errs[1] = Cgroups(state.CgroupRoot(c.Dir))
	f.Mounts, errs[2] = c.mounts()
	f.Interfaces, errs[3] = c.interfaces()
	return f, errors.Join(errs[:]...)
}

// Remove takes everything away and returns when nothing is left, or an error
// that says what resisted.
func (c Cluster) Remove(ctx context.Context) error {
	steps := []func(context.Context) error{c.killAll, c.removeMounts, c.removeCgroups, c.removeInterfaces}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// processes never lists this process or what it was started from: a user's
// shell may carry the mark.
func (c Cluster) processes() ([]int, error) {
	marked, err := daemon.Marked()
	if err != nil {
		return nil, err
	}
	mine := map[int]bool{}
	for _, p := range marked {
		mine[p.PID] = p.Cluster == c.Dir
	}
	pids, err := daemon.PIDs()
	if err != nil {
		return nil, err
	}
	root, line := state.CgroupRoot(c.Dir), daemon.Ancestors()
	var found []int
	for _, pid := range pids {
		if line[pid] {
			continue
		}
		cgroup, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		if mine[pid] || (err == nil && inCgroup(string(cgroup), root) && daemon.Alive(pid)) {
			found = append(found, pid)
		}
	}
	return found, nil
}

// killAll repeats, because a process may start another before it dies.
func (c Cluster) killAll(ctx context.Context) error {
	return c.until(ctx, "kill processes", func() (any, int, error) {
		pids, err := c.processes()
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return nil, 0, fmt.Errorf("kill process %d: %w", pid, err)
			}
		}
		return pids, len(pids), err
	})
}

func (c Cluster) mounts() ([]string, error) {
	all, err := readMounts()
	if err != nil {
		return nil, err
	}
	var points []string
	for _, m := range all {
		if strings.HasPrefix(m.point, c.Dir+"/") {
			points = append(points, m.point)
		}
	}
	slices.Sort(points)
	slices.Reverse(points) // Children before parents.
	return points, nil
}

func (c Cluster) removeMounts(ctx context.Context) error {
	return c.until(ctx, "unmount", func() (any, int, error) {
		points, err := c.mounts()
		for _, p := range points {
			if err := unix.Unmount(p, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
				return nil, 0, fmt.Errorf("unmount %s: %w", p, err)
			}
		}
		return points, len(points), err
	})
}

// removeCgroups repeats: a cgroup is busy until its dead processes are reaped.
func (c Cluster) removeCgroups(ctx context.Context) error {
	return c.until(ctx, "remove cgroups", func() (any, int, error) {
		dirs, err := Cgroups(state.CgroupRoot(c.Dir))
		for _, dir := range dirs {
			err := unix.Rmdir(dir)
			if err != nil && !errors.Is(err, unix.EBUSY) && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.ENOENT) {
				return nil, 0, fmt.Errorf("remove cgroup %s: %w", dir, err)
			}
		}
		return dirs, len(dirs), err
	})
}

// interfaces are the host's ends of the pods' cables: they carry the gateway's address.
func (c Cluster) interfaces() ([]string, error) {
	if c.PodCIDR == "" {
		return nil, nil
	}
	pods, err := netip.ParsePrefix(c.PodCIDR)
	if err != nil {
		return nil, fmt.Errorf("parse pod range: %w", err)
	}
	addrs, err := netlink.AddrList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	var names []string
	for _, a := range addrs {
		ip, ok := netip.AddrFromSlice(a.IP.To4())
		if !ok || !pods.Contains(ip) {
			continue
		}
		// It may have gone since; then there is nothing to remove.
		if link, err := netlink.LinkByIndex(a.LinkIndex); err == nil {
			names = append(names, link.Attrs().Name)
		}
	}
	return names, nil
}

func (c Cluster) removeInterfaces(ctx context.Context) error {
	forceAt := time.Now().Add(interfacePatience)
	return c.until(ctx, "remove interfaces", func() (any, int, error) {
		names, err := c.interfaces()
		if time.Now().Before(forceAt) {
			return names, len(names), err
		}
		for _, name := range names {
			link, err := netlink.LinkByName(name)
			if err != nil {
				continue
			}
			if err := netlink.LinkDel(link); err != nil {
				return nil, 0, fmt.Errorf("remove interface %s: %w", name, err)
			}
		}
		return names, len(names), err
	})
}

// until repeats step until it finds nothing.
func (c Cluster) until(ctx context.Context, what string, step func() (found any, count int, err error)) error {
	for {
		found, count, err := step()
		if err != nil {
			return err
		}
		if count == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s of %s: %v are still there: %w", what, c.Dir, found, ctx.Err())
		case <-time.After(pollInterval):
		}
	}
}
