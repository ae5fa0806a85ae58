package state_test

import (
	"errors"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairshard/fairshard/tests/cluster/state"
)

var allFree = state.Taken{PortFree: func(int) bool { return true }}

func mustPlan(t *testing.T, old *state.State, want state.Desired, taken state.Taken) *state.State {
	t.Helper()
	s, err := state.Plan(old, want, taken)
	if err != nil {
		t.Fatalf("plan %+v: %v", want, err)
	}
	return s
}

func TestPlanIsDeterministicAndGivesDistinctPorts(t *testing.T) {
	want := state.Desired{Dir: "/x/a", Nodes: 3}
	a, b := mustPlan(t, nil, want, allFree), mustPlan(t, nil, want, allFree)
	if !maps.Equal(a.Ports, b.Ports) || a.PodCIDR != b.PodCIDR {
		t.Errorf("two plans of one cluster differ: %v, %v", a, b)
	}
	seen := map[int]string{}
	for name, port := range a.Ports {
		if other, ok := seen[port]; ok {
			t.Errorf("%s and %s share port %d", name, other, port)
		}
		seen[port] = name
	}
	if len(a.Ports) != 8+3 {
		t.Errorf("ports: %v, want 8 and one per node", a.Ports)
	}
}

func TestPlanKeepsAwayFromBusyPortsAndNetworks(t *testing.T) {
	want := state.Desired{Dir: "/x/a", Nodes: 1}
	first := mustPlan(t, nil, want, allFree)
	busy := slices.Collect(maps.Values(first.Ports))
	taken := state.Taken{
		PortFree: func(p int) bool { return !slices.Contains(busy, p) },
		Prefixes: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix(first.PodCIDR)},
	}
	second := mustPlan(t, nil, want, taken)
	for name, port := range second.Ports {
		if slices.Contains(busy, port) {
			t.Errorf("%s got the busy port %d", name, port)
		}
	}
	if netip.MustParsePrefix(second.PodCIDR).Overlaps(netip.MustParsePrefix(first.PodCIDR)) {
		t.Errorf("pod range %s overlaps the taken %s", second.PodCIDR, first.PodCIDR)
	}
}

func TestPlanOfARunningClusterOnlyAdds(t *testing.T) {
	old := mustPlan(t, nil, state.Desired{Dir: "/x/a", Nodes: 1, Kueue: true, KueueConfig: "/k"}, allFree)
	// The cluster itself holds its ports now.
	none := state.Taken{PortFree: func(p int) bool { return p != old.Port(state.PortEtcd) }}
	grown := mustPlan(t, old, state.Desired{Dir: "/x/a", Nodes: 3}, none)
	if !slices.Equal(grown.Nodes, []string{"node-1", "node-2", "node-3"}) || !grown.Kueue || grown.KueueConfig != "/k" {
		t.Errorf("grown: %+v", grown)
	}
	for name, port := range old.Ports {
		if grown.Port(name) != port {
			t.Errorf("%s moved from %d to %d", name, port, grown.Port(name))
		}
	}
	if shrunk := mustPlan(t, grown, state.Desired{Dir: "/x/a"}, none); len(shrunk.Nodes) != 3 {
		t.Errorf("nodes after asking for fewer: %v, want all kept", shrunk.Nodes)
	}
	if len(old.Nodes) != 1 {
		t.Errorf("the old state was changed: %v", old.Nodes)
	}
}

func TestPlanRefusesWhatCannotBe(t *testing.T) {
	for name, c := range map[string]struct {
		nodes int
		taken state.Taken
	}{
		"too many nodes":  {17, allFree},
		"no free port":    {1, state.Taken{PortFree: func(int) bool { return false }}},
		"no free network": {1, state.Taken{PortFree: allFree.PortFree, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}},
	} {
		if s, err := state.Plan(nil, state.Desired{Dir: "/x", Nodes: c.nodes}, c.taken); err == nil {
			t.Errorf("%s: planned %+v", name, s)
		}
	}
}

func TestNodesHaveDistinctSubnetsInsideTheRange(t *testing.T) {
	s := mustPlan(t, nil, state.Desired{Dir: "/x/a", Nodes: 16}, allFree)
	whole := netip.MustParsePrefix(s.PodCIDR)
	seen := map[netip.Prefix]bool{}
	for _, node := range s.Nodes {
		p, err := s.NodeSubnet(node)
		if err != nil || seen[p] || !whole.Contains(p.Addr()) || p != p.Masked() {
			t.Errorf("%s: %v, %v; range %v", node, p, err, whole)
		}
		seen[p] = true
	}
	if _, err := s.NodeSubnet("node-99"); err == nil {
		t.Error("a node that does not exist has a subnet")
	}
}

func TestStateRoundTripAndDamage(t *testing.T) {
	dir := t.TempDir()
	if s, err := state.LoadIfPresent(dir); s != nil || err != nil {
		t.Errorf("load nothing: %v, %v", s, err)
	}
	if _, err := state.Load(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("load nothing: %v, want not exist", err)
	}
	s := mustPlan(t, nil, state.Desired{Dir: dir, Nodes: 1}, allFree)
	if err := s.Save(); err != nil {
		t.Fatal(err)
	}
	got, err := state.Load(dir)
	if err != nil || !maps.Equal(got.Ports, s.Ports) || got.PodCIDR != s.PodCIDR {
		t.Errorf("loaded %+v, %v; saved %+v", got, err, s)
	}
	moved := t.TempDir()
	data, err := os.ReadFile(filepath.Join(dir, "cluster.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"of another directory": string(data), "half a file": string(data[:20])} {
		if err := os.WriteFile(filepath.Join(moved, "cluster.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := state.Load(moved); !errors.Is(err, state.ErrDamaged) {
			t.Errorf("state %s: %v, want damaged", name, err)
		}
	}
}

func TestCheckDirRefusesWhatANodeHides(t *testing.T) {
	for dir, ok := range map[string]bool{
		"/srv/c": true, "/var/lib/jenkins/c": true, "/running": true,
		"/run/c": false, "/var/log/c": false, "/var/lib/kubelet": false, "relative": false,
	} {
		if err := state.CheckDir(dir); (err == nil) != ok {
			t.Errorf("%s: %v, want ok=%v", dir, err, ok)
		}
	}
}

func TestLockWaitsAndSurvivesRemovalOfTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	release, err := state.Lock(dir, func() { t.Error("the first lock waited") })
	if err != nil {
		t.Fatal(err)
	}
	waiting, got := make(chan struct{}), make(chan error)
	go func() {
		again, err := state.Lock(dir, func() { close(waiting) })
		if err == nil {
			again()
		}
		got <- err
	}()
	<-waiting
	// This is what `down` does at its end.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	release()
	if err := <-got; err != nil {
		t.Errorf("second lock: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "lock")); err != nil {
		t.Errorf("the second lock holds no file: %v", err)
	}
}

func TestCgroupRootIsStable(t *testing.T) {
	if a, b := state.CgroupRoot("/x/a"), state.CgroupRoot("/x/b"); a == b || !strings.HasPrefix(a, "fairshard-") {
		t.Errorf("cgroups %s and %s", a, b)
	}
}
