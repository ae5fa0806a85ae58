package quantity

import (
	"math"
	"math/bits"
	"strconv"
)

// Bytes is an amount of GPU memory in bytes; never negative.
type Bytes int64

// MilliGPU is an amount of quota: 1000 is one whole GPU. Saturates instead of
// overflowing, so that a charge beyond any fleet never wraps to a small one.
type MilliGPU int64

// PerGPU is one whole GPU.
const PerGPU MilliGPU = 1000

// Unlimited stands for no limit, or for a promise of whatever there is.
const Unlimited MilliGPU = math.MaxInt64

// Common binary units.
const (
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
)

// Add returns a+b, at most the largest value.
func (a Bytes) Add(b Bytes) Bytes { return Bytes(addSat(int64(a), int64(b))) }

// Sub returns a-b, at least zero: free memory is never negative.
func (a Bytes) Sub(b Bytes) Bytes {
	if b >= a {
		return 0
	}
	return a - b
}

// RoundUp returns the smallest multiple of step that is at least a; step below 2 returns a.
func (a Bytes) RoundUp(step Bytes) Bytes {
	if step < 2 || a%step == 0 {
		return a
	}
	return Bytes(addSat(int64(a-a%step), int64(step)))
}

// RoundDown returns the largest multiple of step that is at most a; step below 2 returns a.
func (a Bytes) RoundDown(step Bytes) Bytes {
	if step < 2 {
		return a
	}
	return a - a%step
}

// String prints a in Gi or Mi with at most two decimals, as Kubernetes writes units: "40Gi", "37.25Gi", "256Mi".
func (a Bytes) String() string {
	switch {
	case a >= GiB:
		return trim(int64(a), int64(GiB)) + "Gi"
	case a >= MiB:
		return trim(int64(a), int64(MiB)) + "Mi"
	default:
		return strconv.FormatInt(int64(a), 10)
	}
}

// Add returns a+b, at most the largest value.
func (a MilliGPU) Add(b MilliGPU) MilliGPU { return MilliGPU(addSat(int64(a), int64(b))) }

// Sub returns a-b, at least zero; what is unlimited stays so.
func (a MilliGPU) Sub(b MilliGPU) MilliGPU {
	switch {
	case a == Unlimited:
		return a
	case b >= a:
		return 0
	default:
		return a - b
	}
}

// Mul returns a*n, at most the largest value; n below 1 gives 0.
func (a MilliGPU) Mul(n int64) MilliGPU {
	if n < 1 || a < 1 {
		return 0
	}
	if int64(a) > math.MaxInt64/n {
		return math.MaxInt64
	}
	return a * MilliGPU(n)
}

// String prints a in GPUs with at most three decimals: 1500 is "1.5".
func (a MilliGPU) String() string {
	if a == Unlimited {
		return "unlimited"
	}
	s := strconv.FormatInt(int64(a)/1000, 10)
	if frac := int64(a) % 1000; frac != 0 {
		digits := strconv.FormatInt(1000+frac, 10)[1:]
		for digits[len(digits)-1] == '0' {
			digits = digits[:len(digits)-1]
		}
		s += "." + digits
	}
	return s
}

// OfShare returns ceil(1000*share/usable): what a share of one GPU costs.
// share is in bytes after rounding to the device's step, usable is what the
// pool's model offers. A usable of 0 costs a whole GPU: unknown is never free.
//
// Example: 40e9 of an 80e9 GPU is 500; one byte more is 501.
func OfShare(share, usable Bytes) MilliGPU {
	if usable <= 0 || share >= usable {
		return PerGPU
	}
	if share <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(share), uint64(PerGPU))
	q, r := bits.Div64(hi, lo, uint64(usable))
	if r > 0 {
		q++
	}
	return MilliGPU(q)
}

func addSat(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func trim(v, unit int64) string {
	hundredths := (v%unit*100 + unit/2) / unit
	whole := v / unit
	if hundredths == 100 {
		whole, hundredths = whole+1, 0
	}
	s := strconv.FormatInt(whole, 10)
	if hundredths == 0 {
		return s
	}
	d := strconv.FormatInt(100+hundredths, 10)[1:]
	if d[1] == '0' {
		d = d[:1]
	}
	return s + "." + d
}
