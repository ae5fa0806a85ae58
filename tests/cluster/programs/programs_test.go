package programs_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairshard/fairshard/tests/cluster/programs"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// tiny is a builder with one module that needs no other, and what it printed.
func tiny(t *testing.T) (*programs.Builder, programs.Module, *bytes.Buffer) {
	t.Helper()
	source, log := t.TempDir(), &bytes.Buffer{}
	write(t, source+"/tool/go.mod", "module example.test/tool\n\ngo 1.24.0\n")
	write(t, source+"/tool/go.sum", "")
	write(t, source+"/tool/main.go", "package main\n\nfunc main() { println(\"one\") }\n")
	b := &programs.Builder{Source: source, Cache: t.TempDir(), Log: log}
	return b, programs.Module{Name: "tool", Dir: "tool", Packages: []string{"."}, Output: "tool", Sources: []string{"main.go"}}, log
}

func build(t *testing.T, b *programs.Builder, m programs.Module) *programs.Result {
	t.Helper()
	result, err := b.Build(t.Context(), []programs.Module{m})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestAModuleIsBuiltOncePerVersion(t *testing.T) {
	b, m, log := tiny(t)
	first := build(t, b, m)
	if out, err := exec.Command(first.Paths["tool"]).CombinedOutput(); err != nil || string(out) != "one\n" {
		t.Errorf("the program says %q, %v", out, err)
	}
	if !first.Timings[0].Built || !strings.Contains(log.String(), "built in") {
		t.Errorf("timings %+v, log %s", first.Timings, log)
	}
	log.Reset()
	if second := build(t, b, m); second.Timings[0].Built || log.Len() != 0 || second.Paths["tool"] != first.Paths["tool"] {
		t.Errorf("second build: %+v, log %s", second, log)
	}
	write(t, b.Source+"/tool/main.go", "package main\n\nfunc main() { println(\"two\") }\n")
	changed := build(t, b, m)
	if changed.Paths["tool"] == first.Paths["tool"] {
		t.Error("changed sources use the old program")
	}
	m.LDFlags = "-s"
	if other := build(t, b, m); other.Paths["tool"] == changed.Paths["tool"] {
		t.Error("changed flags use the old program")
	}
	var timings []programs.Timing
	data, err := os.ReadFile(b.Cache + "/last-build.json")
	if err != nil || json.Unmarshal(data, &timings) != nil || len(timings) != 1 || timings[0].Name != "tool" {
		t.Errorf("last-build.json: %s, %v", data, err)
	}
}

func TestAFailedBuildShowsTheCompilersWordsAndLeavesNothing(t *testing.T) {
	b, m, _ := tiny(t)
	write(t, b.Source+"/tool/main.go", "package main\n\nfunc main() { nonsense() }\n")
	_, err := b.Build(t.Context(), []programs.Module{m})
	if err == nil || !strings.Contains(err.Error(), "undefined: nonsense") {
		t.Errorf("error %v", err)
	}
	done, err := filepath.Glob(b.Cache + "/tool-*[0-9a-f]")
	if err != nil || len(done) != 0 {
		t.Errorf("a failed build is in the cache: %v, %v", done, err)
	}
}

func TestMissingGoIsSaidBeforeAnythingIsBuilt(t *testing.T) {
	b, m, _ := tiny(t)
	t.Setenv("PATH", t.TempDir())
	if _, err := b.Build(t.Context(), []programs.Module{m}); err == nil || !strings.Contains(err.Error(), "go1.24.0 or newer") {
		t.Errorf("error %v, want the version that is needed", err)
	}
}

func TestOldGoIsSaid(t *testing.T) {
	b, m, _ := tiny(t)
	write(t, b.Source+"/tool/go.mod", "module example.test/tool\n\ngo 1.99.0\n")
	t.Setenv("GOTOOLCHAIN", "local")
	if _, err := b.Build(t.Context(), []programs.Module{m}); err == nil || !strings.Contains(err.Error(), "need go1.99.0") {
		t.Errorf("error %v, want the version that is needed", err)
	}
}

func TestMissingLibrariesOfRuncAreNamed(t *testing.T) {
	b, m, _ := tiny(t)
	m.Cgo = true
	goFile, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	only := t.TempDir()
	if err := os.Symlink(goFile, only+"/go"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", only)
	_, err = b.Build(t.Context(), []programs.Module{m})
	for _, want := range []string{"libseccomp-dev", "pkg-config", "apt-get install", "--install-packages"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

// TestTableAgreesWithTheModules compares the table with the pinned modules.
func TestTableAgreesWithTheModules(t *testing.T) {
	source, err := programs.FindSource(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range programs.All() {
		data, err := os.ReadFile(filepath.Join(source, m.Dir, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range m.Packages {
			if !strings.HasPrefix(p, "./") && !strings.Contains(string(data), p) {
				t.Errorf("%s builds %s, which its go.mod does not name as a tool", m.Name, p)
			}
		}
		if m.Name == "kubernetes" {
			_, version, _ := strings.Cut(m.LDFlags, "gitVersion=")
			version, _, _ = strings.Cut(version, " ")
			if !strings.Contains(string(data), "k8s.io/kubernetes "+version+"\n") {
				t.Errorf("the version stamp %s is not the version in go.mod", version)
			}
		}
	}
}

func TestFindSourceLooksUpwards(t *testing.T) {
	root := t.TempDir()
	write(t, root+"/tests/cluster/programs/kubernetes/go.mod", "module x\n")
	write(t, root+"/a/b/file", "")
	if got, err := programs.FindSource(root + "/a/b"); err != nil || got != root+"/tests/cluster" {
		t.Errorf("found %s, %v", got, err)
	}
	if got, err := programs.FindSource(t.TempDir()); err == nil {
		t.Errorf("outside of a checkout: found %s", got)
	}
}
