package partition

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairshard/fairshard/classes/quantity"
	"github.com/fairshard/fairshard/driver/inventory"
)

func h100(i int) inventory.GPU {
	return inventory.GPU{
		UUID: fmt.Sprintf("GPU-%d", i), PCIBusID: fmt.Sprintf("0000:%02x:00.0", 0x17+i), Minor: i,
		Total: 81559 * quantity.MiB, Reserved: 551 * quantity.MiB,
	}
}

func TestAnH100HoldsTwiceFortyDecimalButNotTwiceFortyBinary(t *testing.T) {
	usable := Usable(h100(0), Default())
	if usable != 80128*quantity.MiB {
		t.Fatalf("usable is %s, want 80128Mi", usable)
	}
	step := Default().Step
	decimal, binary := quantity.Bytes(40e9).RoundUp(step), (40 * quantity.GiB).RoundUp(step)
	if 2*decimal > usable {
		t.Errorf("2 x 40G (%s each) must fit into %s", decimal, usable)
	}
	if 2*binary <= usable {
		t.Errorf("2 x 40Gi must not fit into %s", usable)
	}
}

func TestSharesAscendAndWholeGPUsDescend(t *testing.T) {
	layout := Build(inventory.New("580", []inventory.GPU{h100(2), h100(0), h100(1)}), Default())
	var got []string
	for _, o := range append(layout.Shares, layout.Wholes...) {
		got = append(got, o.Name)
	}
	want := "gpu-0000-17-00-0-share gpu-0000-18-00-0-share gpu-0000-19-00-0-share gpu-0000-19-00-0 gpu-0000-18-00-0 gpu-0000-17-00-0"
	if strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestAGPUThatCannotBeSharedOffersNothingAndSaysWhy(t *testing.T) {
	mig, small := h100(0), h100(1)
	mig.MIGEnabled = true
	small.Total = 700 * quantity.MiB
	layout := Build(inventory.New("580", []inventory.GPU{mig, small, h100(2)}), Default())
	if len(layout.Shares) != 1 || len(layout.Wholes) != 1 || len(layout.CounterSets) != 1 || len(layout.Skipped) != 2 {
		t.Fatalf("got %+v", layout)
	}
	for i, want := range []string{"MIG mode", "below one step"} {
		if !strings.Contains(layout.Skipped[i].Reason, want) {
			t.Errorf("reason %q, want %q", layout.Skipped[i].Reason, want)
		}
	}
}

func TestSlicesKeepTheLimits(t *testing.T) {
	var gpus []inventory.GPU
	for i := range 70 {
		gpus = append(gpus, h100(i))
	}
	layout := Build(inventory.New("580", gpus), Default())
	if got := Slices(layout.Shares); len(got) != 2 || len(got[0]) != 64 || len(got[1]) != 6 {
		t.Errorf("70 shares are cut into %d slices", len(got))
	}
	if got := CounterSlices(layout.CounterSets); len(got) != 9 || len(got[0]) != 8 {
		t.Errorf("70 counter sets are cut into %d slices", len(got))
	}
}

var label = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Whatever the hardware: the order of discovery is irrelevant, names are
// unique DNS labels, offers are whole steps within what the GPU has, and both
// kinds consume the GPU's own counter set.
func TestLayoutProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gpus := rapid.SliceOfNDistinct(rapid.Custom(randomGPU), 0, 40, func(g inventory.GPU) string { return g.PCIBusID }).Draw(t, "gpus")
		layout := Build(inventory.New("580", gpus), Default())
		seed := rapid.Uint64().Draw(t, "seed")
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(gpus), func(i, j int) { gpus[i], gpus[j] = gpus[j], gpus[i] })
		if again := Build(inventory.New("580", gpus), Default()); !reflect.DeepEqual(layout, again) {
			t.Fatalf("order of discovery matters: %v and %v", layout, again)
		}
		if len(layout.Shares)+len(layout.Skipped) != len(gpus) || len(layout.Wholes) != len(layout.Shares) {
			t.Fatalf("%d GPUs give %d shares, %d whole, %d skipped", len(gpus), len(layout.Shares), len(layout.Wholes), len(layout.Skipped))
		}
		seen := map[string]bool{}
		for _, o := range append(layout.Shares, layout.Wholes...) {
			if seen[o.Name] || !label.MatchString(o.Name) {
				t.Fatalf("name %q is taken or no DNS label", o.Name)
			}
			seen[o.Name] = true
			if o.Memory <= 0 || o.Memory%o.Step != 0 || o.Memory > o.GPU.Total.Sub(o.GPU.Reserved) || o.CounterSet != o.GPU.DeviceBase() {
				t.Fatalf("bad offer %+v", o)
			}
		}
	})
}

func randomGPU(t *rapid.T) inventory.GPU {
	return inventory.GPU{
		UUID:       rapid.StringMatching(`GPU-[0-9a-f]{8}`).Draw(t, "uuid"),
		PCIBusID:   rapid.StringMatching(`[0-9a-f]{4}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]`).Draw(t, "pci"),
		Total:      quantity.Bytes(rapid.Int64Range(0, 200<<30).Draw(t, "total")),
		Reserved:   quantity.Bytes(rapid.Int64Range(0, 2<<30).Draw(t, "reserved")),
		MIGEnabled: rapid.Bool().Draw(t, "mig"),
	}
}

func ExampleBuild() {
	layout := Build(inventory.New("580.65.6", []inventory.GPU{h100(0)}), Default())
	fmt.Println(layout.Shares[0].Name, layout.Shares[0].Memory)
	fmt.Println(layout.Wholes[0].Name, layout.Wholes[0].CounterSet)
	// Output:
	// gpu-0000-17-00-0-share 78.25Gi
	// gpu-0000-17-00-0 gpu-0000-17-00-0
}
