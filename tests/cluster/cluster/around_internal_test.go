package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseRoutes(t *testing.T) {
	routes := parseRoutes("Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n" +
		"eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n" +
		"eth0\t00D06A0A\t00000000\t0001\t0\t0\t0\t00F0FFFF\t0\t0\t0\n")
	want := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("10.106.208.0/20")}
	if !slices.Equal(routes, want) {
		t.Errorf("routes %v, want %v", routes, want)
	}
}

func TestPortFreeSeesAListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	if portFree(port) {
		t.Errorf("port %d is in use", port)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if !portFree(port) {
		t.Errorf("port %d is free again", port)
	}
}

func TestMissingRightsAreNamedWithTheirReason(t *testing.T) {
	got, err := missingCapabilities("Name:\tx\nCapEff:\t0000000000000000\n")
	if err != nil || len(got) != len(needs) || !strings.Contains(got[0], "CAP_SYS_ADMIN: every node") {
		t.Errorf("none: %v, %v", got, err)
	}
	if got, err := missingCapabilities("CapEff:\t000001ffffffffff\n"); err != nil || len(got) != 0 {
		t.Errorf("all: %v, %v", got, err)
	}
	if _, err := missingCapabilities("Name:\tx\n"); err == nil {
		t.Error("no CapEff line: no error")
	}
}

func TestDownRemovesOnlyOurFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"cluster.json", "lock", "mine.txt", "logs/a.log", "etcd/wal"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := removeFiles(dir, true); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"logs", "mine.txt"}) {
		t.Errorf("left with --keep-logs: %v", got)
	}
	if err := removeFiles(dir, false); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"mine.txt"}) {
		t.Errorf("left: %v", got)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestSysctlsAreGivenBack(t *testing.T) {
	old := sysctlRoot
	sysctlRoot = t.TempDir()
	t.Cleanup(func() { sysctlRoot = old })
	file := filepath.Join(sysctlRoot, "net/ipv4/ip_forward")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	set := func(value string) {
		if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set("0\n")
	before := readSysctls()
	set("1\n")
	if err := writeSysctls(before); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "0" {
		t.Errorf("ip_forward is %q, %v; want 0 again", data, err)
	}
}

func TestNameservers(t *testing.T) {
	got := nameservers("# comment\nsearch x\nnameserver 192.0.2.53\nnameserver nonsense\n nameserver 2001:db8::1\n")
	if !slices.Equal(got, []string{"192.0.2.53", "2001:db8::1"}) {
		t.Errorf("name servers %v", got)
	}
}

func TestParallelTellsTheCauseAndNotItsEffects(t *testing.T) {
	cause := errors.New("the cause")
	err := parallel(t.Context(),
		func(context.Context) error { return cause },
		func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("wait: %w", context.Cause(ctx))
		},
	)
	if !errors.Is(err, cause) || errors.Is(err, errOtherFailed) {
		t.Errorf("error %v, want only the cause", err)
	}
	if err := parallel(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Errorf("all well: %v", err)
	}
}
