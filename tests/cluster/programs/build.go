package programs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairshard/fairshard/tests/cluster/state"
)

// progressEvery is how often a running build says that it still runs.
const progressEvery = 15 * time.Second

// Builder builds into one cache folder.
type Builder struct {
	// Source is the folder tests/cluster of a checkout.
	Source string
	// Cache is the folder of finished builds.
	Cache string
	// Env is added to the environment of `go`, so that `down` finds a build
	// whose `up` was killed.
	Env []string
	// Log receives progress lines.
	Log io.Writer
	// InstallPackages allows to install missing Debian packages.
	InstallPackages bool
}

// Timing is how long one module took in one call; Built is false when it came from the cache.
type Timing struct {
	Name    string  `json:"name"`
	Built   bool    `json:"built"`
	Seconds float64 `json:"seconds"`
}

// Result says where the programs are.
type Result struct {
	// Paths maps a program's name to its file.
	Paths map[string]string
	// Timings has one entry per module, in build order.
	Timings []Timing
}

// Build builds what is missing of the modules. A module that is in the cache is
// not looked at again.
func (b *Builder) Build(ctx context.Context, modules []Module) (*Result, error) {
	missing, err := b.missing(modules)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		if err := b.checkTools(ctx, missing); err != nil {
			return nil, err
		}
	}
	result := &Result{Paths: map[string]string{}}
	for _, m := range modules {
		start := time.Now()
		dir, built, err := b.ensure(ctx, m)
		if err != nil {
			return nil, err
		}
		result.Timings = append(result.Timings, Timing{
			Name: m.Name, Built: built, Seconds: time.Since(start).Round(100 * time.Millisecond).Seconds(),
		})
		for _, p := range m.Programs() {
			result.Paths[p] = filepath.Join(dir, p)
		}
	}
	if len(missing) > 0 {
		return result, b.summarize(result)
	}
	return result, nil
}

func (b *Builder) missing(modules []Module) ([]Module, error) {
	var missing []Module
	for _, m := range modules {
		dir, err := b.dir(m)
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(dir); err != nil {
			missing = append(missing, m)
		}
	}
	return missing, nil
}

// dir is where the module's programs are, or will be.
func (b *Builder) dir(m Module) (string, error) {
	version, err := m.version(b.Source)
	if err != nil {
		return "", err
	}
	return filepath.Join(b.Cache, m.Name+"-"+version), nil
}

func (b *Builder) ensure(ctx context.Context, m Module) (dir string, built bool, err error) {
	dir, err = b.dir(m)
	if err != nil {
		return "", false, err
	}
	if _, err := os.Stat(dir); err == nil {
		return dir, false, nil
	}
	release, err := b.lock(m)
	if err != nil {
		return "", false, err
	}
	defer release()
	if _, err := os.Stat(dir); err == nil {
		return dir, false, nil // Another process built it while we waited.
	}
	tmp := dir + ".building"
	if err := os.RemoveAll(tmp); err != nil {
		return "", false, fmt.Errorf("clear %s: %w", tmp, err)
	}
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return "", false, fmt.Errorf("create build folder: %w", err)
	}
	if err := b.run(ctx, m, tmp); err != nil {
		return "", false, err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return "", false, fmt.Errorf("keep programs of %s: %w", m.Name, err)
	}
	return dir, true, nil
}

func (b *Builder) lock(m Module) (release func(), err error) {
	if err := os.MkdirAll(b.Cache, 0o755); err != nil {
		return nil, fmt.Errorf("create program cache: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(b.Cache, m.Name+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock build of %s: %w", m.Name, err)
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		b.printf("%s: another process builds it, waiting", m.Name)
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
			return nil, errors.Join(fmt.Errorf("lock build of %s: %w", m.Name, err), f.Close())
		}
	}
	return func() { _ = f.Close() }, nil
}

// run calls `go build` and reports progress until it ends.
func (b *Builder) run(ctx context.Context, m Module, out string) error {
	cmd := exec.CommandContext(ctx, "go", m.args(out)...)
	cmd.Dir = filepath.Join(b.Source, m.Dir)
	cmd.Env = append(os.Environ(), m.cgo(), "GOFLAGS=-mod=readonly", "GOWORK=off")
	cmd.Env = append(cmd.Env, b.Env...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	start := time.Now()
	b.printf("%s: building %s", m.Name, strings.Join(m.Programs(), ", "))
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start build of %s: %w", m.Name, err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("build %s: %w\n%s", m.Name, err, output.String())
			}
			b.printf("%s: built in %s", m.Name, time.Since(start).Round(time.Second))
			return nil
		case <-tick.C:
			b.printf("%s: still building after %s", m.Name, time.Since(start).Round(time.Second))
		}
	}
}

// summarize prints the seconds per module and keeps them next to the programs.
func (b *Builder) summarize(r *Result) error {
	for _, t := range r.Timings {
		how := "from the cache"
		if t.Built {
			how = fmt.Sprintf("built in %.1f s", t.Seconds)
		}
		b.printf("  %-12s %s", t.Name, how)
	}
	return WriteTimings(filepath.Join(b.Cache, "last-build.json"), r.Timings)
}

// WriteTimings writes the timings as JSON, for the table of what a cold machine costs.
func WriteTimings(path string, timings []Timing) error {
	data, err := json.MarshalIndent(timings, "", "  ")
	if err != nil {
		return fmt.Errorf("encode build times: %w", err)
	}
	if err := state.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write build times: %w", err)
	}
	return nil
}

func (b *Builder) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(b.Log, format+"\n", args...)
}
