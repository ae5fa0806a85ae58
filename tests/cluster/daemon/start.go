package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Spec is what is needed to start one daemon.
type Spec struct {
	Name string
	// Argv is the program's absolute file and its arguments.
	Argv []string
	// Env is added to the marks; nothing is inherited but HOME.
	Env []string
	// LogFile receives standard output and error; it is appended to.
	LogFile string
}

// Daemon is a running daemon, started by this process or found.
type Daemon struct {
	Name    string
	PID     int
	LogFile string
}

// pollInterval is how often waiting functions look again.
const pollInterval = 50 * time.Millisecond

// Start starts the daemon in its own session, so that it outlives this process
// and a Ctrl-C of the terminal.
func Start(dir string, spec Spec) (*Daemon, error) {
	if err := os.MkdirAll(filepath.Dir(spec.LogFile), 0o755); err != nil {
		return nil, fmt.Errorf("create log folder of %s: %w", spec.Name, err)
	}
	log, err := os.OpenFile(spec.LogFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open log of %s: %w", spec.Name, err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(spec.Argv[0], spec.Argv[1:]...)
	cmd.Env = append([]string{
		EnvCluster + "=" + dir, EnvDaemon + "=" + spec.Name, "HOME=" + os.Getenv("HOME"),
	}, spec.Env...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	// Reap it if it dies while we still run; its exit code is in no use.
	go func() { _ = cmd.Wait() }()
	return &Daemon{Name: spec.Name, PID: cmd.Process.Pid, LogFile: spec.LogFile}, nil
}

// Alive says whether the daemon still runs.
func (d *Daemon) Alive() bool { return Alive(d.PID) }

// DiedError reports a daemon that ended, with the end of its log.
type DiedError struct {
	Name, LogFile, Tail string
}

// Error shows the log's end, because it nearly always holds the reason.
func (e *DiedError) Error() string {
	return fmt.Sprintf("%s died; the end of %s:\n%s", e.Name, e.LogFile, e.Tail)
}

// WaitReady polls ready until it returns nil. It fails when the daemon dies or
// the context ends; the last answer of ready and the log's end are in the error.
func (d *Daemon) WaitReady(ctx context.Context, ready func(context.Context) error) error {
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		if !d.Alive() {
			return &DiedError{Name: d.Name, LogFile: d.LogFile, Tail: Tail(d.LogFile)}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w (last answer: %w); the end of %s:\n%s",
				d.Name, context.Cause(ctx), err, d.LogFile, Tail(d.LogFile))
		case <-time.After(pollInterval):
		}
	}
}

// Stop sends the signal and waits until the process is gone. After grace it is
// killed: some daemons hang in shutdown when a peer went first.
func Stop(pid int, signal syscall.Signal, grace time.Duration) error {
	if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("send %s to process %d: %w", signal, pid, err)
	}
	killAt := time.Now().Add(grace)
	for killed := false; Alive(pid); time.Sleep(pollInterval) {
		if !killed && time.Now().After(killAt) {
			killed = true
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("kill process %d: %w", pid, err)
			}
		}
	}
	return nil
}
