package snapshot

import (
	"fmt"
	"math"
	"testing"

	"github.com/fairshard/fairshard/classes/quantity"
)

const gib = quantity.GiB

// gpus are n free GPUs of 80Gi in steps of 1Gi.
func gpus(n int) []GPU {
	var out []GPU
	for i := range n {
		out = append(out, GPU{UUID: fmt.Sprint(i), Usable: 80 * gib, Step: gib, Min: gib, Healthy: true})
	}
	return out
}

func TestAShareIsRoundedUpAndNoSizeIsEverything(t *testing.T) {
	g := GPU{Usable: 80 * gib, Step: gib, Min: 3 * gib}
	for want, charge := range map[quantity.Bytes]quantity.Bytes{
		0: 80 * gib, 1: 3 * gib, 3 * gib: 3 * gib, 3*gib + 1: 4 * gib, 40 * gib: 40 * gib, 81 * gib: 81 * gib,
	} {
		if got := g.Charge(want); got != charge {
			t.Errorf("a share of %s takes %s, want %s", want, got, charge)
		}
	}
}

func TestAPartIsRoundedDownAndAtLeastTheLeast(t *testing.T) {
	g := GPU{Usable: 80 * gib, Step: gib, Min: 3 * gib}
	for ppm, want := range map[int64]quantity.Bytes{
		1: 3 * gib, 500_000: 40 * gib, 499_999: 39 * gib, 1_000_000: 80 * gib, 2_000_000: 80 * gib, math.MaxInt64: 80 * gib,
	} {
		if got := g.Part(ppm); got != want {
			t.Errorf("%d millionths are %s, want %s", ppm, got, want)
		}
	}
	huge := GPU{Usable: math.MaxInt64}
	if got := huge.Part(500_000); got != math.MaxInt64/2 {
		t.Errorf("half of the largest GPU is %d", got)
	}
}

func TestFreeMilliOfANode(t *testing.T) {
	state := func(change func(g *GPU)) GPU {
		g := gpus(1)[0]
		change(&g)
		return g
	}
	for name, tc := range map[string]struct {
		gpu  GPU
		want quantity.MilliGPU
	}{
		"a free GPU is a thousand":          {gpus(1)[0], 1000},
		"an unhealthy one is nothing":       {state(func(g *GPU) { g.Healthy = false }), 0},
		"one that is held whole is nothing": {state(func(g *GPU) { g.WholeUsed = true }), 0},
		"a third held rounds down":          {state(func(g *GPU) { g.ShareUsed, g.Shares = 80*gib/3, 1 }), 666},
		"all held by shares":                {state(func(g *GPU) { g.ShareUsed, g.Shares = 80*gib, 2 }), 0},
		"three memory slices held by MIG":   {state(func(g *GPU) { g.MIG, g.MIGUsed = true, 0b0111 }), 625},
	} {
		t.Run(name, func(t *testing.T) {
			r := room(Node{Name: "a", Schedulable: true, GPUs: []GPU{tc.gpu, gpus(1)[0]}})
			if got := r.FreeMilli(0); got != tc.want+1000 {
				t.Errorf("got %d, want %d and one free GPU", got, tc.want)
			}
		})
	}
	if got := room(Node{Name: "a", GPUs: gpus(2)}).FreeMilli(0); got != 0 {
		t.Errorf("a cordoned node has %d", got)
	}
}
