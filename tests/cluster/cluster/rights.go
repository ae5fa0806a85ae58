package cluster

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fairshard/fairshard/tests/cluster/leftover"
)

// need is a right and what it is for.
type need struct {
	capability int
	name, why  string
}

var needs = []need{
	{unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN", "every node and Kueue run in a mount namespace of their own, and containers are mounted"},
	{unix.CAP_NET_ADMIN, "CAP_NET_ADMIN", "every pod gets a network interface"},
	{unix.CAP_SYS_CHROOT, "CAP_SYS_CHROOT", "a container gets a root file system of its own"},
	{unix.CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE", "containers have files of other users"},
	{unix.CAP_MKNOD, "CAP_MKNOD", "containers have device files"},
}

// CheckRights says everything that is missing to run a cluster, before anything is done.
func CheckRights() error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return fmt.Errorf("read own rights: %w", err)
	}
	problems, err := missingCapabilities(string(status))
	if err != nil {
		return err
	}
	readOnly, err := leftover.ReadOnlyCgroups()
	if err != nil {
		return err
	}
	if len(readOnly) > 0 {
		problems = append(problems, fmt.Sprintf("write access to %s: every container gets a cgroup", strings.Join(readOnly, ", ")))
	}
	if len(problems) == 0 {
		return nil
	}
	return errors.New("start a cluster: this process lacks rights; run it as root (sudo), in a container with --privileged:\n  - " +
		strings.Join(problems, "\n  - "))
}

// missingCapabilities reads the effective set from /proc/self/status.
func missingCapabilities(status string) ([]string, error) {
	for line := range strings.Lines(status) {
		value, ok := strings.CutPrefix(line, "CapEff:")
		if !ok {
			continue
		}
		set, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		if err != nil {
			return nil, fmt.Errorf("parse own capabilities: %w", err)
		}
		var missing []string
		for _, n := range needs {
			if set&(1<<n.capability) == 0 {
				missing = append(missing, n.name+": "+n.why)
			}
		}
		return missing, nil
	}
	return nil, errors.New("read own capabilities: no CapEff line in /proc/self/status")
}
