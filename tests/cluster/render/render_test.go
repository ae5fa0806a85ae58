package render_test

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fairshard/fairshard/tests/cluster/render"
	"github.com/fairshard/fairshard/tests/cluster/state"
)

func twoNodes(t *testing.T) *state.State {
	t.Helper()
	s, err := state.Plan(nil, state.Desired{Dir: "/clusters/a", Nodes: 2, Kueue: true}, state.Taken{PortFree: func(int) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func node(name string) render.Node {
	return render.Node{Name: name, IP: "192.0.2.7", CgroupV1: true, Snapshotter: "overlayfs", Runc: "/bin/runc", CNIDir: "/cni"}
}

func decode(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := yaml.Unmarshal(data, &v); err != nil {
		t.Fatalf("decode: %v\n%s", err, data)
	}
	return v
}

func TestEverythingListensOnLoopbackOnly(t *testing.T) {
	s := twoNodes(t)
	for name, args := range map[string][]string{
		"kube-apiserver": render.APIServer(s, "192.0.2.7"), "kube-controller-manager": render.ControllerManager(s),
		"kube-scheduler": render.Scheduler(s),
	} {
		if !slices.Contains(args, "--bind-address=127.0.0.1") {
			t.Errorf("%s: %v", name, args)
		}
	}
	for _, arg := range render.Etcd(s) {
		if strings.Contains(arg, "-urls=") && !strings.Contains(arg, "=http://127.0.0.1:") {
			t.Errorf("etcd: %s", arg)
		}
	}
}

func TestKubeletConfig(t *testing.T) {
	s := twoNodes(t)
	data, err := render.KubeletConfig(s, node("node-2"))
	if err != nil {
		t.Fatal(err)
	}
	config := decode(t, data)
	if got, want := config["cgroupRoot"], "/"+state.CgroupRoot("/clusters/a")+"/node-2"; got != want {
		t.Errorf("cgroupRoot %v, want %s", got, want)
	}
	if config["failCgroupV1"] != false {
		t.Error("on cgroup v1 the kubelet must be told to go on")
	}
	if config["port"] != float64(s.Port(state.KubeletPort("node-2"))) {
		t.Errorf("port %v", config["port"])
	}
	v2 := node("node-2")
	v2.CgroupV1 = false
	if data, err = render.KubeletConfig(s, v2); err != nil {
		t.Fatal(err)
	}
	if _, set := decode(t, data)["failCgroupV1"]; set {
		t.Error("failCgroupV1 is set on cgroup v2")
	}
}

func TestContainerdConfigKeepsNodesApart(t *testing.T) {
	s := twoNodes(t)
	one, two := string(render.ContainerdConfig(s, node("node-1"))), string(render.ContainerdConfig(s, node("node-2")))
	if one == two {
		t.Error("two nodes share a containerd configuration")
	}
	for _, want := range []string{
		"root = '/clusters/a/nodes/node-1/containerd'", "cdi_spec_dirs = ['/var/run/cdi']",
		"restrict_oom_score_adj = true", "sandbox = 'localhost/fairshard-pause:dev'", "BinaryName = '/bin/runc'",
	} {
		if !strings.Contains(one, want) {
			t.Errorf("no %q in\n%s", want, one)
		}
	}
}

func TestCNIConfigIsJSONWithTheNodesSubnet(t *testing.T) {
	data, err := render.CNIConfig(twoNodes(t), node("node-1"), netip.MustParsePrefix("10.64.1.0/24"))
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(data) || !strings.Contains(string(data), `"subnet":"10.64.1.0/24"`) {
		t.Errorf("%s", data)
	}
}

func TestKueueSettings(t *testing.T) {
	s := twoNodes(t)
	settings, err := render.KueueSettings(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := settings["resources"].(map[string]any)["quotaCheckStrategy"]; got != "IgnoreUndeclared" {
		t.Errorf("quotaCheckStrategy %v", got)
	}
	override := []byte("integrations: {frameworks: [batch/job, pod]}\nwebhook: {port: 1}\nfeatureGates: {Foo: true}\n")
	if settings, err = render.KueueSettings(s, override); err != nil {
		t.Fatal(err)
	}
	if got := settings["integrations"].(map[string]any)["frameworks"].([]any); len(got) != 2 {
		t.Errorf("frameworks %v, want those of the file", got)
	}
	if got := settings["webhook"].(map[string]any)["port"]; got != s.Port(state.PortKueueWebhook) {
		t.Errorf("webhook port %v: a file must not move it", got)
	}
	gates := settings["featureGates"].(map[string]any)
	if gates["Foo"] != true || gates["VisibilityOnDemand"] != false {
		t.Errorf("feature gates %v", gates)
	}
	if _, err := render.KueueSettings(s, []byte("a: [")); err == nil {
		t.Error("a damaged file was accepted")
	}
}
