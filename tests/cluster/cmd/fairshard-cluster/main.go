// Command fairshard-cluster runs a real Kubernetes cluster with Kueue on one
// machine, for tests and for the demo.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/fairshard/fairshard/tests/cluster/cli"
)

// Package namespace replaces this process from its first thread; only here can
// the main goroutine be kept on it.
func init() { //nolint:gochecknoinits // The Go runtime offers no other way.
	runtime.LockOSThread()
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := cli.Run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
