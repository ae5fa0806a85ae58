package wire

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/fairshard/fairshard/driver/ledger"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got, as JSON, with testdata/name.
func golden(t *testing.T, name string, got any) {
	t.Helper()
	content, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	content = append(content, '\n')
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != string(content) {
		t.Errorf("%s differs (run with -update and look at the diff), got\n%s", path, content)
	}
}

var facts = Facts{
	"gpu-0000-17-00-0-share": {Kind: ledger.KindShare, UUID: "GPU-a", Minor: 0, Usable: 80e9},
	"gpu-0000-18-00-0-share": {Kind: ledger.KindShare, UUID: "GPU-b", Minor: 1, Usable: 80e9},
	"gpu-0000-19-00-0":       {Kind: ledger.KindWhole, UUID: "GPU-c", Minor: 2, Usable: 80e9},
}

func result(request, device, bytes string) resourcev1.DeviceRequestAllocationResult {
	r := resourcev1.DeviceRequestAllocationResult{Request: request, Driver: "gpu.fairshard.dev", Pool: "node-1", Device: device}
	if bytes != "" {
		r.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(bytes)}
		r.ShareID = ptr.To(types.UID("share-of-" + device))
	}
	return r
}

func allocated(results ...resourcev1.DeviceRequestAllocationResult) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{UID: "3f1c2a4e-0000-4000-8000-000000000001", Namespace: "team-a", Name: "shard-abcde"},
		Status:     resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: results}}},
	}
}

func TestClaimToCDIAndAnswer(t *testing.T) {
	foreign := result("nic", "eth0", "")
	foreign.Driver = "nic.example.com"
	c := allocated(
		result("gpu/small", "gpu-0000-17-00-0-share", "40265318400"),
		result("gpu/small", "gpu-0000-18-00-0-share", "40265318400"),
		foreign,
		result("whole", "gpu-0000-19-00-0", ""),
	)
	claim, err := Claim(c, "node-1", facts)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "claim.json", claim)
	golden(t, "answer.json", Answer(claim))
	spec, err := Spec(claim, Paths{Dev: "/run/nvidia/driver/dev", Control: []string{"nvidiactl", "nvidia-uvm"}, Limits: "/data/claims/u/limits"})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "cdi.json", spec)
	if plain, err := Spec(claim, Paths{Dev: "/dev", Limits: "/l"}); err != nil || plain.Devices[0].ContainerEdits.DeviceNodes[0].HostPath != "" {
		t.Errorf("device nodes in /dev need no host path: %+v, %v", plain.Devices[0], err)
	}
	if again, err := Claim(c, "node-1", FactsOf(claim)); err != nil || !again.Equal(claim) {
		t.Errorf("the recorded facts give another claim: %+v, %v", again, err)
	}
}

func TestClaimRefusesWhatIsNotOurs(t *testing.T) {
	config := func(c *resourcev1.ResourceClaim, driver, raw string, requests ...string) *resourcev1.ResourceClaim {
		c.Status.Allocation.Devices.Config = []resourcev1.DeviceAllocationConfiguration{{
			Requests: requests,
			DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{
				Driver: driver, Parameters: runtime.RawExtension{Raw: []byte(raw)},
			}},
		}}
		return c
	}
	share := func() *resourcev1.ResourceClaim { return allocated(result("gpu", "gpu-0000-17-00-0-share", "1Gi")) }
	otherPool := share()
	otherPool.Status.Allocation.Devices.Results[0].Pool = "node-2"
	for name, c := range map[string]struct {
		claim   *resourcev1.ResourceClaim
		wantErr string
	}{
		"not allocated":                  {&resourcev1.ResourceClaim{}, "not allocated"},
		"another node":                   {otherPool, `this node is "node-1"`},
		"unknown device":                 {allocated(result("gpu", "gpu-9", "")), "delete the pod"},
		"bad parameters":                 {config(share(), "gpu.fairshard.dev", `{"kind":"X"}`), "request gpu: decode parameters"},
		"bad parameters, other request":  {config(share(), "gpu.fairshard.dev", `{"kind":"X"}`, "b"), ""},
		"bad parameters of others":       {config(share(), "gpu.example.com", `{"kind":"X"}`), ""},
		"good parameters":                {config(share(), "gpu.fairshard.dev", `{"apiVersion":"gpu.fairshard.dev/v1alpha1","kind":"ShareConfig"}`), ""},
		"nothing of ours is for ledgers": {allocated(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Claim(c.claim, "node-1", facts)
			if (err == nil) != (c.wantErr == "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("got error %v, want %q", err, c.wantErr)
			}
		})
	}
}

func TestConsumedCapacity(t *testing.T) {
	qualified := result("gpu", "gpu-0000-17-00-0-share", "")
	qualified.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{"gpu.fairshard.dev/memory": resource.MustParse("5")}
	admin := result("gpu", "gpu-0000-17-00-0-share", "5")
	admin.AdminAccess = ptr.To(true)
	for name, c := range map[string]struct {
		result resourcev1.DeviceRequestAllocationResult
		want   ledger.Device
	}{
		"qualified name": {qualified, ledger.Device{Kind: ledger.KindShare, Bytes: 5}},
		"no number":      {result("gpu", "gpu-0000-17-00-0-share", ""), ledger.Device{Kind: ledger.KindShare, Bytes: 80e9}},
		"admin access":   {admin, ledger.Device{Kind: ledger.KindAdmin}},
		"whole":          {result("gpu", "gpu-0000-19-00-0", ""), ledger.Device{Kind: ledger.KindWhole}},
	} {
		t.Run(name, func(t *testing.T) {
			claim, err := Claim(allocated(c.result), "node-1", facts)
			if err != nil {
				t.Fatal(err)
			}
			if got := claim.Devices[0]; got.Kind != c.want.Kind || got.Bytes != c.want.Bytes {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestHolds(t *testing.T) {
	c := allocated(result("gpu", "gpu-0000-17-00-0-share", "1Gi"))
	claim, err := Claim(c, "node-1", facts)
	if err != nil {
		t.Fatal(err)
	}
	prepared, lost := ledger.Entry{Claim: claim, Phase: ledger.PhasePrepared}, ledger.Entry{Claim: ledger.Claim{UID: claim.UID}, Phase: ledger.PhaseLost}
	otherUID, deallocated := c.DeepCopy(), c.DeepCopy()
	otherUID.UID, deallocated.Status.Allocation = "new", nil
	moved := allocated(result("gpu", "gpu-0000-18-00-0-share", "1Gi"))
	got := []bool{
		Holds(c, prepared), Holds(c, lost), Holds(moved, lost),
		Holds(otherUID, prepared), Holds(deallocated, prepared), Holds(moved, prepared),
	}
	if want := []bool{true, true, true, false, false, false}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Two claims in one container: nothing of the one may overwrite the other.
func TestTwoClaimsInOneContainer(t *testing.T) {
	seen := map[string]string{}
	for _, uid := range []string{"aaaa-1", "aaaa-2"} {
		c := ledger.Claim{UID: uid, Devices: []ledger.Device{{Request: "gpu", Name: "gpu-x-share", ShareID: uid, Kind: ledger.KindShare}}}
		spec, err := Spec(c, Paths{Dev: "/dev", Limits: "/data/" + uid})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range spec.Devices {
			for _, env := range d.ContainerEdits.Env {
				key, value, _ := strings.Cut(env, "=")
				if old, clash := seen[key]; clash && old != value {
					t.Errorf("%s is %s and %s", key, old, value)
				}
				seen[key] = value
			}
			for _, m := range d.ContainerEdits.Mounts {
				if _, clash := seen[m.ContainerPath]; clash {
					t.Errorf("two mounts at %s", m.ContainerPath)
				}
				seen[m.ContainerPath] = m.HostPath
			}
			if _, clash := seen[d.Name]; clash {
				t.Errorf("two CDI devices named %s", d.Name)
			}
			seen[d.Name] = ""
		}
	}
}
