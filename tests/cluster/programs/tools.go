package programs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// checkTools fails before the first build when something is missing.
func (b *Builder) checkTools(ctx context.Context, modules []Module) error {
	if err := b.checkGo(ctx, modules); err != nil {
		return err
	}
	for _, m := range modules {
		if m.Cgo {
			return b.checkC(ctx)
		}
	}
	return nil
}

// checkGo compares the toolchain with the `go` lines of the modules. Go fetches a
// newer toolchain by itself unless GOTOOLCHAIN forbids it.
func (b *Builder) checkGo(ctx context.Context, modules []Module) error {
	want := ""
	for _, m := range modules {
		data, err := os.ReadFile(filepath.Join(b.Source, m.Dir, "go.mod"))
		if err != nil {
			return fmt.Errorf("read go.mod of %s: %w", m.Name, err)
		}
		if v := goLine(string(data)); version.Compare(v, want) > 0 {
			want = v
		}
	}
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("find Go: the programs of the cluster are built with %s or newer, and no `go` is in PATH: "+
			"install it from https://go.dev/dl", want)
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOTOOLCHAIN").Output()
	if err != nil {
		return fmt.Errorf("ask Go for its version: %w", err)
	}
	have, toolchain, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if version.Compare(have, want) < 0 && !strings.Contains(toolchain, "auto") {
		return fmt.Errorf("check Go: the programs need %s, this is %s and GOTOOLCHAIN=%s forbids to fetch a newer one",
			want, have, toolchain)
	}
	return nil
}

// goLine is the version of a go.mod's `go` line, as "go1.26.0".
func goLine(mod string) string {
	for line := range strings.Lines(mod) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "go "); ok {
			return "go" + strings.TrimSpace(v)
		}
	}
	return ""
}

// checkC looks for what runc needs besides Go.
func (b *Builder) checkC(ctx context.Context) error {
	var packages []string
	if _, err := exec.LookPath("gcc"); err != nil {
		packages = append(packages, "gcc", "libc6-dev")
	}
	if _, err := exec.LookPath("pkg-config"); err != nil {
		packages = append(packages, "pkg-config", "libseccomp-dev")
	} else if exec.CommandContext(ctx, "pkg-config", "--exists", "libseccomp").Run() != nil {
		packages = append(packages, "libseccomp-dev")
	}
	if len(packages) == 0 {
		return nil
	}
	line := "apt-get install -y --no-install-recommends " + strings.Join(packages, " ")
	if !b.InstallPackages {
		return fmt.Errorf("build runc: Debian packages are missing: %s; run `%s` or give --install-packages",
			strings.Join(packages, ", "), line)
	}
	b.printf("installing Debian packages: %s", strings.Join(packages, ", "))
	return b.install(ctx, line)
}

// install refreshes the package lists only when the first try fails.
func (b *Builder) install(ctx context.Context, line string) error {
	run := func(line string) error {
		cmd := exec.CommandContext(ctx, "sh", "-c", line)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("run `%s`: %w\n%s", line, err, out)
		}
		return nil
	}
	first := run(line)
	if first == nil {
		return nil
	}
	if err := run("apt-get update && " + line); err != nil {
		return errors.Join(first, err)
	}
	return nil
}

// FindSource looks for the folder tests/cluster upwards from the folders given.
func FindSource(from ...string) (string, error) {
	for _, dir := range from {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return "", fmt.Errorf("find tests/cluster: %w", err)
		}
		for {
			for _, sub := range []string{".", "tests/cluster"} {
				candidate := filepath.Join(dir, sub)
				if _, err := os.Stat(filepath.Join(candidate, "programs", "kubernetes", "go.mod")); err == nil {
					return candidate, nil
				}
			}
			parent := filepath.Dir(dir)
			if parent == dir {
				break
			}
			dir = parent
		}
	}
	return "", errors.New("find tests/cluster: run this inside a checkout of Fairshard or give --source")
}

// ModuleDir is the folder of a dependency of one of the modules, in Go's module
// cache; it is fetched when it is missing.
func (b *Builder) ModuleDir(ctx context.Context, module, path string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", path)
	cmd.Dir = filepath.Join(b.Source, "programs", module)
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := cmd.Output()
	var answer struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &answer); err == nil {
		err = jsonErr
	}
	if err != nil || answer.Dir == "" {
		return "", fmt.Errorf("find module %s: %w %s", path, err, answer.Error)
	}
	return answer.Dir, nil
}
