package cdi

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/fairshard/fairshard/driver/isolation"
)

func open(t *testing.T) *Files {
	t.Helper()
	root := t.TempDir()
	claims := filepath.Join(root, "claims")
	if err := os.Mkdir(claims, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := Open(filepath.Join(root, "run", "cdi"), claims)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func spec(version string) *specs.Spec {
	return &specs.Spec{Version: version, Kind: "gpu.fairshard.dev/claim", Devices: []specs.Device{{Name: "d"}}}
}

func TestWritingTwiceWritesOnce(t *testing.T) {
	f := open(t)
	limits := isolation.New("u", "ns", "n", nil)
	write := func(version string) (specFile, limitsFile os.FileInfo) {
		t.Helper()
		if err := f.WriteSpec("u", spec(version)); err != nil {
			t.Fatal(err)
		}
		if err := f.WriteLimits(limits); err != nil {
			t.Fatal(err)
		}
		specFile, err := os.Stat(f.specPath("u"))
		if err != nil {
			t.Fatal(err)
		}
		limitsFile, err = os.Stat(f.LimitsPath("u"))
		if err != nil {
			t.Fatal(err)
		}
		return specFile, limitsFile
	}
	s1, l1 := write("0.5.0")
	s2, l2 := write("0.5.0")
	if !os.SameFile(s1, s2) || !os.SameFile(l1, l2) {
		t.Error("an unchanged file was written again")
	}
	if s3, l3 := write("0.6.0"); os.SameFile(s1, s3) || !os.SameFile(l1, l3) {
		t.Error("want a new spec and the old limits")
	}
	if mode := l1.Mode().Perm(); mode&0o044 != 0o044 {
		t.Errorf("containers of any user must read the limits, mode is %v", mode)
	}
}

func TestListAndRemove(t *testing.T) {
	f := open(t)
	limits := isolation.New("a", "ns", "n", []isolation.Limit{{UUID: "GPU-1", Bytes: 5}})
	foreign := filepath.Join(f.cdiDir, "nvidia.yaml")
	torn := f.specPath("b") + tmpSuffix
	for _, err := range []error{
		f.WriteSpec("a", spec("0.5.0")), f.WriteLimits(limits), f.WriteLimits(isolation.New("bad", "", "", nil)),
		os.WriteFile(f.LimitsPath("bad"), []byte("nonsense"), 0o600),
		os.WriteFile(foreign, nil, 0o600), os.WriteFile(torn, nil, 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	uids, found, err := f.List()
	want := map[string]isolation.Limits{"a": limits, "bad": {}}
	if err != nil || !slices.Equal(uids, []string{"a"}) || !reflect.DeepEqual(found, want) {
		t.Fatalf("got %v, %+v, %v", uids, found, err)
	}
	for _, uid := range []string{"a", "bad", "unknown"} {
		if err := f.RemoveSpec(uid); err != nil {
			t.Error(err)
		}
		if err := f.RemoveLimits(uid); err != nil {
			t.Error(err)
		}
	}
	if left, _ := os.ReadDir(f.cdiDir); len(left) != 1 || left[0].Name() != "nvidia.yaml" {
		t.Errorf("want only the foreign file left, got %v", left)
	}
	if left, _ := os.ReadDir(f.claimsDir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	for _, uid := range []string{"", "..", "../claims"} {
		if err := f.RemoveLimits(uid); err == nil {
			t.Errorf("UID %q was taken", uid)
		}
	}
}
