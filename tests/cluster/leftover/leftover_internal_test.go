package leftover

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const hybridV1 = `25 24 0:23 / / rw,relatime - ext4 /dev/vda rw
31 22 0:26 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
33 31 0:28 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory
34 31 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
35 25 0:30 / /mnt/with\040space rw - tmpfs tmpfs rw
`

const pureV2 = `30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate
`

func TestCgroupHierarchiesOfBothVersions(t *testing.T) {
	v1 := cgroupMounts(parseMountinfo(hybridV1))
	if want := []string{"/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/unified"}; !slices.Equal(v1, want) {
		t.Errorf("v1: %v, want %v", v1, want)
	}
	if v2 := cgroupMounts(parseMountinfo(pureV2)); !slices.Equal(v2, []string{"/sys/fs/cgroup"}) {
		t.Errorf("v2: %v", v2)
	}
	if got := parseMountinfo(hybridV1)[5].point; got != "/mnt/with space" {
		t.Errorf("mount point %q, want the space decoded", got)
	}
}

func TestProcessBelongsToACgroupByName(t *testing.T) {
	const root = "fairshard-00000001"
	for text, want := range map[string]bool{
		"4:memory:/fairshard-00000001/node-1/kubepods/podx/y\n1:cpu:/\n": true,
		"1:cpu:/\n0::/fairshard-00000001/node-1\n":                       true,
		"0::/docker/abc/fairshard-00000001/node-1\n":                     true,
		"0::/fairshard-000000012/node-1\n":                               false,
		"0::/\n":                                                         false,
		"":                                                               false,
	} {
		if got := inCgroup(text, root); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// fakeUnified is a folder with the files of a v2 hierarchy.
func fakeUnified(t *testing.T, controllers string) string {
	t.Helper()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "cgroup.controllers"), []byte(controllers), 0o600); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestUnifiedCgroupGetsAllControllersFromItsParent(t *testing.T) {
	root := fakeUnified(t, "cpuset cpu memory pids\n")
	if err := ensureUnified(root, "fairshard-1"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "cgroup.subtree_control"))
	if err != nil || string(got) != "+cpuset +cpu +memory +pids" {
		t.Errorf("passed on: %q, %v", got, err)
	}
	if info, err := os.Stat(filepath.Join(root, "fairshard-1")); err != nil || !info.IsDir() {
		t.Errorf("cgroup: %v, %v", info, err)
	}
}

func TestUnifiedCgroupWithoutControllersIsAnError(t *testing.T) {
	if err := ensureUnified(fakeUnified(t, "\n"), "fairshard-1"); err == nil {
		t.Error("no error")
	}
}

func TestProcessesMoveToTheInitCgroup(t *testing.T) {
	root := fakeUnified(t, "cpu")
	if err := os.WriteFile(filepath.Join(root, "cgroup.procs"), []byte("7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := moveProcesses(root, filepath.Join(root, "init")); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "init", "cgroup.procs"))
	if err != nil || string(got) != "7" {
		t.Errorf("moved: %q, %v", got, err)
	}
}

func TestNothingIsFoundOfAClusterThatNeverWas(t *testing.T) {
	found, err := Cluster{Dir: "/nowhere/fairshard/never", PodCIDR: "10.127.240.0/20"}.Find()
	if err != nil || !found.Empty() {
		t.Errorf("found %+v, %v", found, err)
	}
	if err := (Cluster{Dir: "/nowhere/fairshard/never"}).Remove(t.Context()); err != nil {
		t.Errorf("remove: %v", err)
	}
}
