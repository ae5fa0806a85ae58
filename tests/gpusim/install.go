package gpusim

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
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
		"-fvisibility=hidden", "-Wl,-soname,"+libraryName, "-o", temporary, filepath.Join(dir, "nvml.c"), "-ldl", "-lpthread")
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
	return deviceNodes(filepath.Join(root, "dev"), node)
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
	const null = 1<<8 | 3 // major 1, minor 3
	for _, name := range names {
		path := filepath.Join(dev, name)
		if err := syscall.Mknod(path, syscall.S_IFCHR|0o666, null); err != nil && !errors.Is(err, syscall.EEXIST) {
			return fmt.Errorf("make device node %s (needs root, CAP_MKNOD): %w", path, err)
		}
		if err := os.Chmod(path, 0o666); err != nil {
			return fmt.Errorf("make device node: %w", err)
		}
	}
	return nil
}

// Read returns the table that is installed below root.
func Read(root string) (Node, error) {
	content, err := os.ReadFile(filepath.Join(root, libraryFolder, tableName))
	if err != nil {
		return Node{}, fmt.Errorf("read table: %w", err)
	}
	return Decode(content)
}
