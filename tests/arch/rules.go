package arch

import (
	"fmt"
	"slices"
	"strings"
)

// Module is the import path of the product.
const Module = "github.com/fairshard/fairshard"

// Layers maps every product package (below Module) to its layer: 0 words,
// 1 pure decisions, 2 translation of API objects, 3 one outside world each,
// 4 assembly, 5 main programs.
var Layers = map[string]int{
	"classes":                      0,
	"classes/quantity":             0,
	"driver/inventory":             1,
	"driver/partition":             1,
	"driver/ledger":                1,
	"driver/isolation":             1,
	"driver/health":                1,
	"admission/tree":               1,
	"admission/fairshare":          1,
	"admission/snapshot":           1,
	"admission/simulate":           1,
	"admission/decide":             1,
	"admission/explain":            1,
	"classes/v1alpha1":             2,
	"classes/policy/v1alpha1":      2,
	"admission/policy":             2,
	"admission/scenario":           2,
	"kubeletplugin/wire":           2,
	"admission/kueue":              2,
	"driver/nvml":                  3,
	"driver/nvml/fakenvml":         3,
	"kubeletplugin/store":          3,
	"kubeletplugin/cdi":            3,
	"kubeletplugin/publish":        3,
	"admission/observe":            3,
	"admission/apply":              3,
	"admission/webhook":            4,
	"admission/controller":         4,
	"admission/cli":                4,
	"kubeletplugin":                4,
	"cmd/fairshard-kubelet-plugin": 5,
	"cmd/fairshard-admission":      5,
	"cmd/kubectl-fairshard":        5,
}

// Package is what `go list` says of one package.
type Package struct {
	Path    string   // import path
	Imports []string // direct
	Deps    []string // transitive
}

// pureForbidden are imports that bring the outside world, a clock or an API
// object into a pure package. A trailing slash means everything below.
var pureForbidden = []string{
	"k8s.io/", "sigs.k8s.io/", "github.com/NVIDIA/", "github.com/prometheus/", "github.com/go-logr/",
	"net/http", "math/rand", "math/rand/v2", "os/exec",
}

// pureDirect may not be imported directly; the standard library itself uses them.
var pureDirect = []string{"os", "net", "io/ioutil", "log", "log/slog"}

// translationForbidden are the clients that layer 2 must not know.
// API packages depend on net/http themselves, so that is judged as a direct import.
var translationForbidden = []string{"k8s.io/client-go/", "sigs.k8s.io/controller-runtime/", "github.com/NVIDIA/"}

// Check returns one line per broken rule, sorted.
func Check(packages []Package, layers map[string]int) []string {
	var broken []string
	for _, p := range packages {
		broken = append(broken, checkPackage(p, layers)...)
	}
	slices.Sort(broken)
	return broken
}

func checkPackage(p Package, layers map[string]int) []string {
	short, ours := strings.CutPrefix(p.Path, Module+"/")
	if !ours || strings.HasPrefix(short, "tests/") {
		return nil
	}
	layer, known := layers[short]
	if !known {
		return []string{short + ": has no layer: add it to tests/arch/rules.go and ARCHITECTURE.md"}
	}
	var broken []string
	for _, imported := range p.Imports {
		if why := checkImport(short, layer, imported, layers); why != "" {
			broken = append(broken, fmt.Sprintf("%s imports %s: %s", short, imported, why))
		}
	}
	for _, dep := range p.Deps {
		if why := checkDep(layer, dep); why != "" {
			broken = append(broken, fmt.Sprintf("%s depends on %s: %s", short, dep, why))
		}
	}
	return broken
}

// checkImport judges one direct import.
func checkImport(from string, layer int, imported string, layers map[string]int) string {
	if imported == "github.com/NVIDIA/go-nvml/pkg/nvml" && from != "driver/nvml" {
		return "driver/nvml is the only importer of go-nvml"
	}
	if layer <= 1 && slices.Contains(pureDirect, imported) {
		return "pure packages take values: no files, no network, no logging"
	}
	if layer == 2 && (imported == "net/http" || imported == "os") {
		return "translation packages know API types, no client and no I/O"
	}
	to, ours := strings.CutPrefix(imported, Module+"/")
	if !ours {
		return ""
	}
	if strings.HasPrefix(to, "tests/") || strings.HasPrefix(to, "cmd/") {
		return "nothing imports tests or cmd"
	}
	return checkOwn(from, layer, to, layers)
}

// checkOwn judges an import of one product package by another.
func checkOwn(from string, layer int, to string, layers map[string]int) string {
	target := layers[to]
	switch {
	case tree(from) == "admission" && (tree(to) == "driver" || tree(to) == "kubeletplugin"),
		tree(to) == "admission" && (tree(from) == "driver" || tree(from) == "kubeletplugin"):
		return "admission and the driver share only classes"
	case tree(from) == "driver" && tree(to) == "kubeletplugin":
		return "kubeletplugin may import driver, never the other way"
	case target > layer:
		return fmt.Sprintf("layer %d must not import layer %d", layer, target)
	case layer == 3 && target == 3 && !strings.HasPrefix(from, to+"/"):
		return "layer 3 packages do not import each other: take an interface"
	case layer == 5 && target == 5:
		return "programs do not import each other"
	}
	return ""
}

// checkDep judges one transitive dependency.
func checkDep(layer int, dep string) string {
	switch {
	case layer <= 1 && matches(dep, pureForbidden):
		return "pure packages use the standard library and lower own packages only"
	case layer == 2 && matches(dep, translationForbidden):
		return "translation packages know API types, no client and no I/O"
	}
	return ""
}

func matches(path string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		return path == strings.TrimSuffix(p, "/") || strings.HasSuffix(p, "/") && strings.HasPrefix(path, p)
	})
}

func tree(short string) string { return strings.SplitN(short, "/", 2)[0] }
