package gpusim

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

//go:embed lib/*.c lib/*.h
var sources embed.FS

// Where things lie below a driver root, as a real driver puts them.
const (
	libraryFolder = "usr/lib/x86_64-linux-gnu"
	libraryName   = "libnvidia-ml.so.1"
	tableName     = "gpusim.table"
)

// BuildLibrary compiles the NVML stand-in to the file out.
func BuildLibrary(ctx context.Context, out string) error {
	dir, err := os.MkdirTemp("", "gpusim-")
	if err != nil {
		return fmt.Errorf("build library: %w", err)
	}
	defer os.RemoveAll(dir)
	files, err := fs.Glob(sources, "lib/*")
	if err != nil {
		return fmt.Errorf("build library: %w", err)
	}
	for _, file := range files {
		content, err := sources.ReadFile(file)
		if err != nil {
			return fmt.Errorf("build library: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), content, 0o600); err != nil {
			return fmt.Errorf("build library: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return fmt.Errorf("build library: %w", err)
	}
	temporary := out + ".new"
	cmd := exec.CommandContext(ctx, "gcc", "-std=c11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
		"-fvisibility=hidden", "-Wl,-soname,"+libraryName, "-o", temporary,
		filepath.Join(dir, "nvml.c"), filepath.Join(dir, "mig.c"), filepath.Join(dir, "health.c"), "-ldl", "-lpthread")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build library: run gcc: %w\n%s", err, text)
	}
	if err := os.Rename(temporary, out); err != nil {
		return fmt.Errorf("build library: %w", err)
	}
	return nil
}

// Install lays a node's simulated driver out below root: library, table and
// stand-ins for the device nodes. Running it again replaces the table at once
// and keeps the rest.
func Install(ctx context.Context, root string, node Node) error {
	if err := BuildLibrary(ctx, filepath.Join(root, libraryFolder, libraryName)); err != nil {
		return err
	}
	if err := WriteTable(root, node); err != nil {
		return err
	}
	if err := deviceNodes(filepath.Join(root, "dev"), node); err != nil {
		return err
	}
	return capabilities(root, node)
}

// WriteTable replaces the table below root in one step. Programs that have the
// library open keep the old one until they initialise it again.
func WriteTable(root string, node Node) error {
	table, err := node.Encode()
	if err != nil {
		return err
	}
	path := filepath.Join(root, libraryFolder, tableName)
	if err := os.WriteFile(path+".new", table, 0o644); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// Change changes the table below root in place, under the lock that the library
// takes for its own changes: programs that have it open see it at once.
func Change(root string, change func(*Node) error) error {
	file, err := os.OpenFile(filepath.Join(root, libraryFolder, tableName), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("change table: %w", err)
	}
	defer file.Close()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("change table: lock: %w", err)
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return fmt.Errorf("change table: %w", err)
	}
	node, err := Decode(content)
	if err != nil {
		return fmt.Errorf("change table: %w", err)
	}
	if err := change(&node); err != nil {
		return err
	}
	if content, err = node.Encode(); err != nil {
		return fmt.Errorf("change table: %w", err)
	}
	if _, err := file.WriteAt(content, 0); err != nil {
		return fmt.Errorf("change table: %w", err)
	}
	return nil
}

// Tell adds events to the table below root; the oldest give way.
func Tell(root string, events ...Event) error {
	return Change(root, func(n *Node) error {
		n.EventCount += uint64(len(events))
		n.Events = append(n.Events, events...)
		n.Events = n.Events[max(0, len(n.Events)-maxEvents):]
		return nil
	})
}

// deviceNodes makes nvidia<minor> and the control nodes: character devices
// that behave like /dev/null.
func deviceNodes(dev string, node Node) error {
	if err := os.MkdirAll(dev, 0o755); err != nil {
		return fmt.Errorf("make device nodes: %w", err)
	}
	names := []string{"nvidiactl", "nvidia-uvm"}
	for _, gpu := range node.GPUs {
		names = append(names, "nvidia"+strconv.Itoa(int(gpu.Minor)))
	}
	stale, err := filepath.Glob(filepath.Join(dev, "nvidia[0-9]*"))
	if err != nil {
		return fmt.Errorf("make device nodes: %w", err)
	}
	for _, path := range stale {
		if !slices.Contains(names, filepath.Base(path)) {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("remove the node of a GPU that is gone: %w", err)
			}
		}
	}
	for _, name := range names {
		if err := null(filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	return nil
}

// null makes a device node like /dev/null.
func null(path string) error {
	const number = 1<<8 | 3 // major 1, minor 3
	if err := syscall.Mknod(path, syscall.S_IFCHR|0o666, number); err != nil && !errors.Is(err, syscall.EEXIST) {
		return fmt.Errorf("make device node %s (needs root, CAP_MKNOD): %w", path, err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		return fmt.Errorf("make device node: %w", err)
	}
	return nil
}

// The kernel driver's numbering of capability nodes.
const (
	capInstances = 15 // per GPU, GI 0 to 14
	capComputes  = 8  // per GPU instance
	capFirst     = 3  // after config and monitor
)

// capability is the number of the node of GPU instance gi; that of its compute
// instance n is 1+n higher.
func capability(minor uint32, gi int) int {
	return capFirst + (int(minor)*capInstances+gi)*(capComputes+1)
}

// capabilities makes what a container needs beside nvidia<minor> to use a MIG
// device: the list that says which capability node belongs to which instance,
// and the nodes.
func capabilities(root string, node Node) error {
	caps, proc := filepath.Join(root, "dev/nvidia-caps"), filepath.Join(root, "proc/driver/nvidia-caps")
	for _, dir := range []string{caps, proc} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make capability nodes: %w", err)
		}
	}
	for _, gpu := range node.GPUs {
		for gi := range maxInstances + 1 {
			if len(gpu.Profiles) == 0 {
				break
			}
			for _, n := range []int{0, 1} {
				if err := null(filepath.Join(caps, "nvidia-cap"+strconv.Itoa(capability(gpu.Minor, gi)+n))); err != nil {
					return err
				}
			}
		}
	}
	if err := os.WriteFile(filepath.Join(proc, "mig-minors"), []byte(migMinors(node)), 0o644); err != nil {
		return fmt.Errorf("make capability nodes: %w", err)
	}
	return nil
}

// migMinors is the content of the kernel driver's list of capability nodes.
func migMinors(node Node) string {
	var list strings.Builder
	list.WriteString("config 1\nmonitor 2\n")
	for _, gpu := range node.GPUs {
		for gi := range capInstances {
			number := capability(gpu.Minor, gi)
			fmt.Fprintf(&list, "gpu%d/gi%d/access %d\n", gpu.Minor, gi, number)
			for ci := range capComputes {
				fmt.Fprintf(&list, "gpu%d/gi%d/ci%d/access %d\n", gpu.Minor, gi, ci, number+1+ci)
			}
		}
	}
	return list.String()
}

// Read returns the table that is installed below root.
func Read(root string) (Node, error) {
	content, err := os.ReadFile(filepath.Join(root, libraryFolder, tableName))
	if err != nil {
		return Node{}, fmt.Errorf("read table: %w", err)
	}
	return Decode(content)
}
