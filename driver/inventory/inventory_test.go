package inventory

import "testing"

func TestNewSortsByPCIAddressAndKeepsTheInput(t *testing.T) {
	given := []GPU{{UUID: "b", PCIBusID: "0000:3b:00.0"}, {UUID: "c", PCIBusID: "0000:19:00.0"}, {UUID: "a", PCIBusID: "0000:3b:00.0"}}
	inv := New("580", given)
	for i, want := range []string{"c", "a", "b"} {
		if inv.GPUs[i].UUID != want {
			t.Errorf("GPU %d is %s, want %s", i, inv.GPUs[i].UUID, want)
		}
	}
	if given[0].UUID != "b" {
		t.Error("the caller's list was changed")
	}
	if again := New("580", []GPU{given[2], given[1], given[0]}); !again.Equal(inv) {
		t.Error("the order of discovery matters")
	}
	if other := New("590", given); other.Equal(inv) {
		t.Error("another driver version must differ")
	}
}

func TestByUUID(t *testing.T) {
	inv := New("580", []GPU{{UUID: "a", Minor: 3}})
	if g, found := inv.ByUUID("a"); !found || g.Minor != 3 {
		t.Errorf("got %+v, %t", g, found)
	}
	if _, found := inv.ByUUID("z"); found {
		t.Error("found a GPU that is not there")
	}
}

func TestDeviceNamesComeFromThePCIAddress(t *testing.T) {
	for address, want := range map[string]string{"0000:17:00.0": "gpu-0000-17-00-0", "0010:AB:1f.0": "gpu-0010-ab-1f-0"} {
		if got := (GPU{PCIBusID: address}).DeviceBase(); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}
