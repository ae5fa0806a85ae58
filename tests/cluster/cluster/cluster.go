package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fairshard/fairshard/tests/cluster/api"
	"github.com/fairshard/fairshard/tests/cluster/daemon"
	"github.com/fairshard/fairshard/tests/cluster/pki"
	"github.com/fairshard/fairshard/tests/cluster/programs"
	"github.com/fairshard/fairshard/tests/cluster/state"
)

// Names of the daemons. Those of a node have the node's name behind them.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kueue             = "kueue"
	Namespace         = "namespace"
	Containerd        = "containerd"
	Kubelet           = "kubelet"
)

// readyPatience is how long one daemon may take to answer. It is generous: a
// loaded machine of two cores starts an API server in half a minute.
const readyPatience = 3 * time.Minute

// Tool is what every command needs to know of its surroundings.
type Tool struct {
	// Self is this program's file: daemons are started through it.
	Self string
	// Builder builds and finds the programs.
	Builder *programs.Builder
	// Log receives progress lines.
	Log io.Writer
}

// run is one command's work on one cluster.
type run struct {
	Tool
	st      *state.State
	store   *pki.Store
	client  *api.Client
	nodeIP  string
	started time.Time

	mu      sync.Mutex // Guards running and Log; nothing is locked under it.
	running map[string]int
}

// nodeDaemon is the name of a node's daemon.
func nodeDaemon(kind, node string) string { return kind + "-" + node }

// attach prepares work on a cluster whose state is known: certificates, client,
// and what already runs.
func (t Tool) attach(st *state.State) (*run, error) {
	r := &run{Tool: t, st: st, started: time.Now()}
	var err error
	if r.store, err = pki.Open(st.Path("pki")); err != nil {
		return nil, err
	}
	if err := r.ensureCertificates(); err != nil {
		return nil, err
	}
	r.client, err = api.NewFromFiles(st.APIServerURL(), r.store.CA(), r.store.File("admin.crt"), r.store.File("admin.key"))
	if err != nil {
		return nil, err
	}
	if r.running, err = daemon.Find(st.Dir); err != nil {
		return nil, err
	}
	return r, nil
}

// ensure returns the running daemon of that name or starts it.
func (r *run) ensure(name string, argv ...string) (*daemon.Daemon, error) {
	if d := r.find(name); d.Alive() {
		return d, nil
	}
	d, err := daemon.Start(r.st.Dir, daemon.Spec{
		Name: name, Argv: argv, LogFile: r.st.LogFile(name), Env: []string{"PATH=" + r.path()},
	})
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.running[name] = d.PID
	r.mu.Unlock()
	return d, nil
}

// find returns the daemon of that name; if it was never started, it is not alive.
func (r *run) find(name string) *daemon.Daemon {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &daemon.Daemon{Name: name, PID: r.running[name], LogFile: r.st.LogFile(name)}
}

// waitReady waits for the daemon and tells how long the cluster has taken so far.
func (r *run) waitReady(ctx context.Context, d *daemon.Daemon, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	if err := d.WaitReady(ctx, ready); err != nil {
		return err
	}
	r.printf("%-32s ready (pid %d, after %.1f s)", d.Name, d.PID, time.Since(r.started).Seconds())
	return nil
}

// path is the search path of daemons: our programs first.
func (r *run) path() string {
	return r.st.BinDir() + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
}

// program is the link to a program. Links keep command lines short and let
// `up` of a new version change the program without a trace of the old one.
func (r *run) program(name string) string { return filepath.Join(r.st.BinDir(), name) }

// write writes a file of the cluster and says whether its content changed.
func (r *run) write(path string, data []byte) (changed bool, err error) {
	old, err := os.ReadFile(path)
	if err == nil && string(old) == string(data) {
		return false, nil
	}
	if err := state.WriteFile(path, data, 0o600); err != nil {
		return false, fmt.Errorf("write %s: %w", path, err)
	}
	return true, nil
}

// writeAll writes several files of the cluster.
func (r *run) writeAll(files map[string][]byte) error {
	for path, data := range files {
		if _, err := r.write(path, data); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) printf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = fmt.Fprintf(r.Log, format+"\n", args...)
}

// errOtherFailed is why the context of a part ended that was well itself.
var errOtherFailed = errors.New("another part failed")

// parallel runs all functions at once and returns their errors. The first error
// cancels the context of the others; what that does to them is not told.
func parallel(ctx context.Context, fns ...func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	errs := make([]error, len(fns))
	var group sync.WaitGroup
	for i, fn := range fns {
		group.Go(func() {
			if errs[i] = fn(ctx); errs[i] != nil {
				cancel(errOtherFailed)
			}
		})
	}
	group.Wait()
	return errors.Join(slices.DeleteFunc(errs, func(err error) bool {
		return errors.Is(err, errOtherFailed)
	})...)
}
