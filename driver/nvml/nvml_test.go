package nvml_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairshard/fairshard/classes/quantity"
	"github.com/fairshard/fairshard/driver/inventory"
	"github.com/fairshard/fairshard/driver/nvml"
	"github.com/fairshard/fairshard/driver/nvml/fakenvml"
	"github.com/fairshard/fairshard/tests/gpusim"
)

// library is what users of this package need.
type library interface {
	Inventory() (inventory.Inventory, error)
	Close()
}

// root is where the simulated driver lies. A process binds the functions of the
// first library it loads, so all tests use one and change its table.
var root string

// TestMain fails without gcc or root: every machine that builds the product has them.
func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if root, err = os.MkdirTemp("", "nvml-"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(root)
	if err := gpusim.Install(context.Background(), root, gpusim.Node{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// install makes the simulated driver describe a machine and returns its library.
func install(t *testing.T, profile string, change func(*gpusim.Node)) string {
	t.Helper()
	p, err := gpusim.LoadProfile(profile)
	if err != nil {
		t.Fatal(err)
	}
	node, err := p.Node(0, "contract")
	if err != nil {
		t.Fatal(err)
	}
	change(&node)
	if err := gpusim.WriteTable(root, node); err != nil {
		t.Fatal(err)
	}
	path, err := nvml.FindLibrary(root)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func openLibrary(t *testing.T, path string) library {
	t.Helper()
	l, err := nvml.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// The contract: both libraries describe the same machine with the same values.
func TestContract(t *testing.T) {
	for _, profile := range gpusim.Profiles() {
		node, want := described(t, profile)
		for name, open := range map[string]func(*testing.T) library{
			"simulated library": func(t *testing.T) library {
				t.Helper()
				path := install(t, profile, func(n *gpusim.Node) { *n = node })
				return openLibrary(t, path)
			},
			"fake": func(*testing.T) library { return fakenvml.New(want.DriverVersion, want.GPUs...) },
		} {
			t.Run(profile+"/"+name, func(t *testing.T) {
				l := open(t)
				got, err := l.Inventory()
				if err != nil {
					t.Fatal(err)
				}
				if !got.Equal(want) {
					t.Errorf("got  %+v\nwant %+v", got, want)
				}
				again, err := l.Inventory()
				if err != nil || !again.Equal(got) {
					t.Errorf("a second look differs: %+v, %v", again, err)
				}
			})
		}
	}
}

// described is a machine and, written independently of the library, what must be said of it.
func described(t *testing.T, profile string) (gpusim.Node, inventory.Inventory) {
	t.Helper()
	p, err := gpusim.LoadProfile(profile)
	if err != nil {
		t.Fatal(err)
	}
	node, err := p.Node(0, "contract")
	if err != nil {
		t.Fatal(err)
	}
	var gpus []inventory.GPU
	for i, g := range node.GPUs {
		gpu := inventory.GPU{
			UUID: g.UUID, PCIBusID: p.PCIAddresses[i], Minor: i, ProductName: p.Model, Architecture: p.Architecture,
			ComputeCapability: p.ComputeCapability, NUMANode: -1, Total: quantity.Bytes(p.MemoryMiB) * quantity.MiB,
			Reserved: quantity.Bytes(p.ReservedMiB) * quantity.MiB, MIGCapable: p.MIGCapable,
		}
		if len(p.NUMANodes) > 0 {
			gpu.NUMANode = p.NUMANodes[i]
		}
		gpus = append(gpus, gpu)
	}
	return node, inventory.New(p.DriverVersion, gpus)
}

func TestMIGModeIsRead(t *testing.T) {
	path := install(t, "a100-40gb", func(n *gpusim.Node) { n.GPUs[1].MIGEnabled = true })
	inv, err := openLibrary(t, path).Inventory()
	if err != nil {
		t.Fatal(err)
	}
	if inv.GPUs[0].MIGEnabled || !inv.GPUs[1].MIGEnabled || !inv.GPUs[0].MIGCapable {
		t.Errorf("got %+v", inv.GPUs[:2])
	}
}

// A GPU that fell off the bus is named in the error and hides no other.
func TestALostGPUDoesNotHideTheOthers(t *testing.T) {
	path := install(t, "l40s", func(n *gpusim.Node) { n.GPUs[1].Lost = true })
	inv, err := openLibrary(t, path).Inventory()
	if err == nil || !strings.Contains(err.Error(), "read GPU 1") {
		t.Errorf("got %v, want an error about GPU 1", err)
	}
	if len(inv.GPUs) != 3 {
		t.Errorf("got %d GPUs, want the 3 good ones", len(inv.GPUs))
	}
}

// A wide domain keeps its digits, and device names never collide.
func TestPCIAddressesAreWrittenAsKubernetesDoes(t *testing.T) {
	path := install(t, "t4", func(n *gpusim.Node) { n.GPUs[0].Domain, n.GPUs[0].Bus, n.GPUs[0].Device = 0x10, 0xab, 0x1f })
	inv, err := openLibrary(t, path).Inventory()
	if err != nil {
		t.Fatal(err)
	}
	if got := inv.GPUs[0].PCIBusID; got != "0010:ab:1f.0" {
		t.Errorf("got %s", got)
	}
	if got := inv.GPUs[0].DeviceBase(); got != "gpu-0010-ab-1f-0" {
		t.Errorf("got %s", got)
	}
}

func TestAMissingLibraryIsAClassOfItsOwn(t *testing.T) {
	if _, err := nvml.FindLibrary(t.TempDir()); !errors.Is(err, nvml.ErrLibraryNotFound) {
		t.Errorf("find: got %v", err)
	}
	if _, err := nvml.Open(filepath.Join(t.TempDir(), "nothing.so")); !errors.Is(err, nvml.ErrLibraryNotFound) {
		t.Errorf("open: got %v", err)
	}
	noLibrary := filepath.Join(t.TempDir(), "text.so")
	if err := os.WriteFile(noLibrary, []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := nvml.Open(noLibrary); !errors.Is(err, nvml.ErrLibraryNotFound) {
		t.Errorf("open a text: got %v", err)
	}
}

func TestAMissingDriverIsAClassOfItsOwn(t *testing.T) {
	path := install(t, "t4", func(*gpusim.Node) {})
	table := filepath.Join(filepath.Dir(path), "gpusim.table")
	if err := os.Truncate(table, 100); err != nil {
		t.Fatal(err)
	}
	if _, err := nvml.Open(path); err == nil || errors.Is(err, nvml.ErrDriverNotLoaded) {
		t.Errorf("a short table must be a version mismatch, got %v", err)
	}
	if err := os.Remove(table); err != nil {
		t.Fatal(err)
	}
	if _, err := nvml.Open(path); !errors.Is(err, nvml.ErrDriverNotLoaded) {
		t.Errorf("got %v", err)
	}
}
