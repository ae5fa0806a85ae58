package leftover

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// mountinfo is one line of /proc/self/mountinfo, as far as it matters here.
type mountinfo struct {
	point, fstype string
}

// parseMountinfo reads the mount points and types. Octal escapes (a space is
// \040) are decoded.
func parseMountinfo(text string) []mountinfo {
	var mounts []mountinfo
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(line, " - ")
		fields, types := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(types) < 1 {
			continue
		}
		mounts = append(mounts, mountinfo{point: unescape(fields[4]), fstype: types[0]})
	}
	return mounts
}

func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

func readMounts() ([]mountinfo, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	return parseMountinfo(string(data)), nil
}

// cgroupMounts are the roots of all hierarchies: one on v2, one per controller on v1.
func cgroupMounts(mounts []mountinfo) []string {
	var points []string
	for _, m := range mounts {
		if (m.fstype == "cgroup" || m.fstype == "cgroup2") && !slices.Contains(points, m.point) {
			points = append(points, m.point)
		}
	}
	return points
}

// HasCgroupV1 says whether the kubelet will take the v1 way: it does unless
// /sys/fs/cgroup itself is a v2 hierarchy.
func HasCgroupV1() (bool, error) {
	var st unix.Statfs_t
	if err := unix.Statfs("/sys/fs/cgroup", &st); err != nil {
		return false, fmt.Errorf("look at /sys/fs/cgroup: %w", err)
	}
	return st.Type != unix.CGROUP2_SUPER_MAGIC, nil
}

// Cgroups lists the folders of the cluster's cgroup and below, children first,
// in every hierarchy.
func Cgroups(root string) ([]string, error) {
	mounts, err := readMounts()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, point := range cgroupMounts(mounts) {
		err := filepath.WalkDir(filepath.Join(point, root), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // It went away while we looked.
			}
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("list cgroups: %w", err)
		}
	}
	slices.Reverse(dirs) // WalkDir visits parents first.
	return dirs, nil
}

// inCgroup reads the content of /proc/PID/cgroup and says whether any hierarchy
// places the process below a cgroup named root.
func inCgroup(text, root string) bool {
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) == 3 && slices.Contains(strings.Split(parts[2], "/"), root) {
			return true
		}
	}
	return false
}

// ReadOnlyCgroups lists the hierarchies in which no cgroup can be made.
func ReadOnlyCgroups() ([]string, error) {
	mounts, err := readMounts()
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, point := range cgroupMounts(mounts) {
		if unix.Access(point, unix.W_OK) != nil {
			dirs = append(dirs, point)
		}
	}
	return dirs, nil
}
