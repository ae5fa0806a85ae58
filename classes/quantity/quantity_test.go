package quantity

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestBytesArePrintedAsKubernetesWritesThem(t *testing.T) {
	for amount, want := range map[Bytes]string{
		0: "0", 1023: "1023", MiB: "1Mi", 256 * MiB: "256Mi", GiB: "1Gi", 40e9: "37.25Gi", 38400 * MiB: "37.5Gi",
		80128 * MiB: "78.25Gi", GiB - 1: "1024Mi", 3*GiB/2 + 1: "1.5Gi",
	} {
		if got := amount.String(); got != want {
			t.Errorf("%d is printed %q, want %q", int64(amount), got, want)
		}
	}
}

func TestMilliGPUsArePrintedInGPUs(t *testing.T) {
	for amount, want := range map[MilliGPU]string{0: "0", 1: "0.001", 500: "0.5", 1000: "1", 1250: "1.25", 16000: "16"} {
		if got := amount.String(); got != want {
			t.Errorf("%d is printed %q, want %q", int64(amount), got, want)
		}
	}
}

func TestRounding(t *testing.T) {
	for _, tc := range []struct{ amount, step, up, down Bytes }{
		{0, 4, 0, 0},
		{1, 4, 4, 0},
		{4, 4, 4, 4},
		{5, 4, 8, 4},
		{7, 1, 7, 7},
		{7, 0, 7, 7},
		{math.MaxInt64, 4, math.MaxInt64, math.MaxInt64 - 3},
	} {
		if up, down := tc.amount.RoundUp(tc.step), tc.amount.RoundDown(tc.step); up != tc.up || down != tc.down {
			t.Errorf("%d in steps of %d: up %d, down %d, want %d and %d", tc.amount, tc.step, up, down, tc.up, tc.down)
		}
	}
}

func TestArithmeticSaturates(t *testing.T) {
	if got := Bytes(math.MaxInt64).Add(1); got != math.MaxInt64 {
		t.Errorf("sum of bytes is %d", got)
	}
	if got := Bytes(1).Sub(2); got != 0 {
		t.Errorf("difference of bytes is %d", got)
	}
	if got := MilliGPU(math.MaxInt64 - 1).Add(5); got != math.MaxInt64 {
		t.Errorf("sum of milligpu is %d", got)
	}
	if got := MilliGPU(1000).Mul(math.MaxInt64); got != math.MaxInt64 {
		t.Errorf("product of milligpu is %d", got)
	}
	if got := MilliGPU(1000).Mul(-1); got != 0 {
		t.Errorf("product with a negative number is %d", got)
	}
}

// The slow oracle: the same rule in arbitrary precision.
func TestOfShareAgainstBigIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		usable := rapid.Int64Range(1, math.MaxInt64).Draw(t, "usable")
		share := rapid.Int64Range(1, math.MaxInt64).Draw(t, "share")
		want := new(big.Int).Mul(big.NewInt(1000), big.NewInt(share))
		want.Add(want, big.NewInt(usable-1)).Div(want, big.NewInt(usable))
		if want.Cmp(big.NewInt(1000)) > 0 {
			want.SetInt64(1000)
		}
		if got := OfShare(Bytes(share), Bytes(usable)); int64(got) != want.Int64() {
			t.Fatalf("share %d of %d costs %d, want %s", share, usable, got, want)
		}
	})
}

// Shares that fit on a GPU together never cost less than the part they take.
func TestSharesOfAGPUCostAtLeastTheirPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		usable := Bytes(rapid.Int64Range(1, 1<<40).Draw(t, "usable"))
		n := rapid.IntRange(1, 20).Draw(t, "n")
		part := usable / Bytes(n)
		if total := OfShare(part, usable).Mul(int64(n)); part > 0 && part*Bytes(n) == usable && total < PerGPU {
			t.Fatalf("%d shares that fill a GPU cost %d", n, total)
		}
	})
}

func TestAnUnknownSizeIsNeverFree(t *testing.T) {
	if OfShare(1, 0) != PerGPU || OfShare(0, 10) != 0 || OfShare(11, 10) != PerGPU {
		t.Error("a share of a GPU of unknown size must cost a whole one, nothing must cost nothing")
	}
}

func ExampleOfShare() {
	fmt.Println(OfShare(40e9, 80e9), OfShare(40e9+1, 80e9))
	// Output: 0.5 0.501
}
