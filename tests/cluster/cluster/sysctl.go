package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// sysctlRoot is a variable for tests.
var sysctlRoot = "/proc/sys"

// changedSysctls are the kernel settings that the kubelet writes when it starts
// and that the pod network turns on.
var changedSysctls = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes", "net/ipv4/ip_forward",
}

// readSysctls returns the settings that this kernel has.
func readSysctls() map[string]string {
	values := map[string]string{}
	for _, name := range changedSysctls {
		if data, err := os.ReadFile(filepath.Join(sysctlRoot, name)); err == nil {
			values[name] = string(bytes.TrimSpace(data))
		}
	}
	return values
}

// restoreSysctls gives the settings back when the last cluster of the machine is gone.
func restoreSysctls(values map[string]string) error {
	running, err := RunningClusters()
	if err != nil || len(running) > 0 {
		return err
	}
	return writeSysctls(values)
}

func writeSysctls(values map[string]string) error {
	now := readSysctls()
	for name, value := range values {
		if now[name] == value {
			continue
		}
		// A container may not be allowed to write it; then nobody changed it either.
		err := os.WriteFile(filepath.Join(sysctlRoot, name), []byte(value), 0o644)
		if err != nil && !errors.Is(err, unix.EROFS) {
			return fmt.Errorf("restore kernel setting %s: %w", name, err)
		}
	}
	return nil
}
