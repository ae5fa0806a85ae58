package programs

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Module is one Go module and what is built from it.
type Module struct {
	// Name is the module's name in messages and in the cache.
	Name string
	// Dir is its folder below tests/cluster.
	Dir string
	// Packages are the main packages.
	Packages []string
	// Output names the program of a single package whose folder has another
	// name; empty means that `go build` names them.
	Output string
	// Cgo builds with the C compiler.
	Cgo bool
	// Tags and LDFlags are given to `go build`.
	Tags, LDFlags string
	// Sources are files besides go.mod and go.sum that make a version.
	Sources []string
}

const strip = "-s -w"

// kubernetesVersion must agree with programs/kubernetes/go.mod (a test compares
// them). Without the stamp clients cannot parse the server's version.
const kubernetesVersion = "v1.37.2"

// All lists everything that a cluster runs, the fastest builds first, so that a
// missing tool shows up before the long ones.
func All() []Module {
	return []Module{
		{Name: "pause", Dir: ".", Packages: []string{"./pause"}, LDFlags: strip, Sources: []string{"pause/main.go"}},
		{Name: "cni", Dir: "programs/cni", LDFlags: strip, Packages: []string{
			"github.com/containernetworking/plugins/plugins/main/ptp",
			"github.com/containernetworking/plugins/plugins/main/loopback",
			"github.com/containernetworking/plugins/plugins/ipam/host-local",
		}},
		{
			Name: "runc", Dir: "programs/runc", Packages: []string{"github.com/opencontainers/runc"},
			Output: "runc", Cgo: true, Tags: "seccomp", LDFlags: strip,
		},
		{Name: "etcd", Dir: "programs/etcd", Packages: []string{"go.etcd.io/etcd/server/v3"}, Output: "etcd", LDFlags: strip},
		{
			Name: "containerd", Dir: "programs/containerd", LDFlags: strip,
			Tags: "no_btrfs no_devmapper no_zfs no_aufs", Packages: []string{
				"github.com/containerd/containerd/v2/cmd/containerd",
				"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
				"github.com/containerd/containerd/v2/cmd/ctr",
			},
		},
		{
			Name: "kubernetes", Dir: "programs/kubernetes", LDFlags: kubernetesLDFlags(kubernetesVersion), Packages: []string{
				"k8s.io/kubernetes/cmd/kube-apiserver",
				"k8s.io/kubernetes/cmd/kube-scheduler",
				"k8s.io/kubernetes/cmd/kube-controller-manager",
				"k8s.io/kubernetes/cmd/kubelet",
				"k8s.io/kubernetes/cmd/kubectl",
			},
		},
		{Name: "kueue", Dir: "programs/kueue", Packages: []string{"sigs.k8s.io/kueue/cmd/kueue"}, Output: "kueue", LDFlags: strip},
	}
}

// kubernetesLDFlags stamps the version as Kubernetes' own build does.
func kubernetesLDFlags(version string) string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	const pkg = "k8s.io/component-base/version"
	return fmt.Sprintf("%s -X %s.gitVersion=%s -X %s.gitMajor=%s -X %s.gitMinor=%s",
		strip, pkg, version, pkg, major, pkg, minor)
}

// Programs are the file names that the module builds.
func (m Module) Programs() []string {
	if m.Output != "" {
		return []string{m.Output}
	}
	var names []string
	for _, p := range m.Packages {
		names = append(names, filepath.Base(p))
	}
	return names
}

// args is the command line of the build, without the program `go`.
func (m Module) args(out string) []string {
	args := []string{"build", "-trimpath"}
	if m.Tags != "" {
		args = append(args, "-tags", m.Tags)
	}
	args = append(args, "-ldflags", m.LDFlags)
	if m.Output != "" {
		out = filepath.Join(out, m.Output)
	} else {
		out += string(filepath.Separator)
	}
	return append(append(args, "-o", out), m.Packages...)
}

func (m Module) cgo() string {
	if m.Cgo {
		return "CGO_ENABLED=1"
	}
	return "CGO_ENABLED=0"
}

// version is a hash of everything that decides what the programs are.
func (m Module) version(source string) (string, error) {
	h := sha256.New()
	for _, name := range append([]string{"go.mod", "go.sum"}, m.Sources...) {
		data, err := os.ReadFile(filepath.Join(source, m.Dir, name))
		if err != nil {
			return "", fmt.Errorf("read version of %s: %w", m.Name, err)
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(data), data)
	}
	fmt.Fprintf(h, "%q %s", m.args("."), m.cgo())
	return hex.EncodeToString(h.Sum(nil)[:5]), nil
}
