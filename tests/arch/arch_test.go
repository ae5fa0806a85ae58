package arch

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

func TestImportRulesHold(t *testing.T) {
	packages := list(t)
	if len(packages) < 10 {
		t.Fatalf("go list found only %d product packages", len(packages))
	}
	for _, line := range Check(packages, Layers) {
		t.Error(line)
	}
}

func TestEveryLayeredPackageExists(t *testing.T) {
	var exist []string
	for _, p := range list(t) {
		exist = append(exist, strings.TrimPrefix(p.Path, Module+"/"))
	}
	for short := range Layers {
		if !slices.Contains(exist, short) {
			t.Errorf("rules.go names %s, which does not exist", short)
		}
	}
}

// A rule that no longer bites is worse than none: each kind is broken on purpose here.
func TestABrokenRuleIsFound(t *testing.T) {
	for name, tc := range map[string]struct {
		from, imports, deps, want string
	}{
		"pure imports Kubernetes":         {"admission/decide", "", "k8s.io/api/core/v1", "pure packages"},
		"pure reads files":                {"driver/ledger", "os", "", "pure packages take values"},
		"translation gets a client":       {"admission/kueue", "", "k8s.io/client-go/rest", "no client"},
		"admission imports driver":        {"admission/kueue", Module + "/driver/inventory", "", "share only classes"},
		"driver imports kubeletplugin":    {"driver/nvml", Module + "/kubeletplugin/wire", "", "never the other way"},
		"lower layer imports higher":      {"admission/observe", Module + "/admission/controller", "", "must not import"},
		"two outside worlds":              {"admission/observe", Module + "/admission/apply", "", "do not import each other"},
		"go-nvml outside driver/nvml":     {"kubeletplugin", "github.com/NVIDIA/go-nvml/pkg/nvml", "", "only importer"},
		"product imports tests":           {"kubeletplugin", Module + "/tests/gpusim", "", "nothing imports tests"},
		"a new package without a layer":   {"driver/brandnew", "", "", "has no layer"},
		"a program imports another's cmd": {"cmd/fairshard-admission", Module + "/cmd/fairshard-kubelet-plugin", "", "nothing imports"},
	} {
		t.Run(name, func(t *testing.T) {
			p := Package{Path: Module + "/" + tc.from}
			if tc.imports != "" {
				p.Imports = []string{tc.imports}
			}
			if tc.deps != "" {
				p.Deps = []string{tc.deps}
			}
			got := Check([]Package{p}, Layers)
			if len(got) != 1 || !strings.Contains(got[0], tc.want) {
				t.Fatalf("got %q, want one line with %q", got, tc.want)
			}
		})
	}
}

func TestEveryPackageHasOnePackageComment(t *testing.T) {
	for _, dir := range goFolders(t) {
		var documented []string
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if parsed.Doc != nil {
				documented = append(documented, filepath.Base(file))
			}
		}
		if !slices.Equal(documented, []string{"doc.go"}) && !slices.Equal(documented, []string{"main.go"}) {
			t.Errorf("%s: the package comment must be in doc.go (or main.go of a program) and nowhere else, found in %v", dir, documented)
		}
	}
}

func TestArchitectureNamesEveryPackage(t *testing.T) {
	text := read(t, "ARCHITECTURE.md")
	row := regexp.MustCompile("(?m)^\\| `([a-z0-9/-]+)` \\|.*\\| ([0-5]) \\|$")
	inTable := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		if _, twice := inTable[m[1]]; twice {
			t.Errorf("ARCHITECTURE.md lists %s twice", m[1])
		}
		inTable[m[1]] = m[2]
	}
	for short, layer := range Layers {
		if inTable[short] != fmt.Sprint(layer) {
			t.Errorf("ARCHITECTURE.md: package %s needs a row with layer %d, has %q", short, layer, inTable[short])
		}
		delete(inTable, short)
	}
	for short := range inTable {
		t.Errorf("ARCHITECTURE.md lists %s, which is not in rules.go", short)
	}
	if lines := strings.Count(text, "\n"); lines > 250 {
		t.Errorf("ARCHITECTURE.md has %d lines; 250 is what one reads in ten minutes", lines)
	}
}

func TestProgramsStayThin(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "cmd/*/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(content), "\n"); n > 150 {
			t.Errorf("%s has %d lines, at most 150: move logic to a package", file, n)
		}
	}
}

func list(t *testing.T) []Package {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Imports,Deps",
		"./classes/...", "./driver/...", "./kubeletplugin/...", "./admission/...", "./cmd/...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	var packages []Package
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath    string
			Imports, Deps []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(p.ImportPath, Module+"/") {
			packages = append(packages, Package{Path: p.ImportPath, Imports: p.Imports, Deps: p.Deps})
		}
	}
}

// goFolders lists every folder of the repository that holds Go files, other modules under tests included.
func goFolders(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (name == "testdata" || name == "bin" || name == "_output" ||
			strings.HasPrefix(name, ".") && path != root) {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			found[filepath.Dir(path)] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for dir := range found {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	return dirs
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
