package daemon_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairshard/fairshard/tests/cluster/daemon"
)

// start runs a shell script as a daemon of a cluster named by a fresh folder.
func start(t *testing.T, script string) (dir string, d *daemon.Daemon) {
	t.Helper()
	dir = t.TempDir()
	d, err := daemon.Start(dir, daemon.Spec{
		Name: "thing", Argv: []string{"/bin/sh", "-c", script}, LogFile: filepath.Join(dir, "logs", "thing.log"),
		Env: []string{"PATH=/usr/bin:/bin"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-d.PID, syscall.SIGKILL) })
	return dir, d
}

func TestADaemonIsFoundAndItsChildrenAreTold(t *testing.T) {
	dir, d := start(t, "sleep 100 & echo started; wait")
	ready := func(context.Context) error {
		if !strings.Contains(daemon.Tail(d.LogFile), "started") {
			return errors.New("not yet")
		}
		return nil
	}
	if err := d.WaitReady(t.Context(), ready); err != nil {
		t.Fatal(err)
	}
	found, err := daemon.Find(dir)
	if err != nil || len(found) != 1 || found["thing"] != d.PID {
		t.Errorf("found %v, %v; want thing as %d", found, err, d.PID)
	}
	marked, err := daemon.Marked()
	if err != nil {
		t.Fatal(err)
	}
	leaders, others := 0, 0
	for _, p := range marked {
		if p.Cluster == dir && p.Leader {
			leaders++
		} else if p.Cluster == dir {
			others++
		}
	}
	if leaders != 1 || others != 1 {
		t.Errorf("%d leaders and %d children, want one of each", leaders, others)
	}
	if err := daemon.Stop(d.PID, syscall.SIGTERM, time.Second); err != nil || d.Alive() {
		t.Errorf("stop: %v, alive %v", err, d.Alive())
	}
}

func TestADaemonThatDiesShowsTheEndOfItsLog(t *testing.T) {
	_, d := start(t, "echo the reason >&2; exit 3")
	err := d.WaitReady(t.Context(), func(context.Context) error { return errors.New("not yet") })
	var died *daemon.DiedError
	if !errors.As(err, &died) || !strings.Contains(err.Error(), "the reason") {
		t.Errorf("error %v, want the log's end", err)
	}
}

func TestADaemonThatNeverAnswersTellsItsLastAnswer(t *testing.T) {
	_, d := start(t, "exec sleep 100")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	last := errors.New("port is closed")
	if err := d.WaitReady(ctx, func(context.Context) error { return last }); !errors.Is(err, last) {
		t.Errorf("error %v, want the last answer in it", err)
	}
}

func TestAStubbornDaemonIsKilled(t *testing.T) {
	_, d := start(t, `trap "" TERM; echo started; while :; do sleep 0.1; done`)
	ready := func(context.Context) error {
		if !strings.Contains(daemon.Tail(d.LogFile), "started") {
			return errors.New("not yet")
		}
		return nil
	}
	if err := d.WaitReady(t.Context(), ready); err != nil {
		t.Fatal(err)
	}
	if err := daemon.Stop(d.PID, syscall.SIGTERM, 100*time.Millisecond); err != nil || d.Alive() {
		t.Errorf("stop: %v, alive %v", err, d.Alive())
	}
}

func TestTailIsShortAndSaysWhenThereIsNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.log")
	if got := daemon.Tail(file); !strings.Contains(got, "no such file") {
		t.Errorf("missing file: %q", got)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := daemon.Tail(file); !strings.Contains(got, "empty") {
		t.Errorf("empty file: %q", got)
	}
	if err := os.WriteFile(file, []byte(strings.Repeat("line\n", 100000)+"last\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := daemon.Tail(file); strings.Count(got, "\n") != 19 || !strings.HasSuffix(got, "last") {
		t.Errorf("long file: %q", got)
	}
}

func TestThisProcessIsItsOwnAncestor(t *testing.T) {
	if line := daemon.Ancestors(); !line[os.Getpid()] || !line[os.Getppid()] {
		t.Errorf("ancestors %v", line)
	}
}
