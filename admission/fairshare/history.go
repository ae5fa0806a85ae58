package fairshare

import (
	"math/bits"
	"time"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes/quantity"
)

// History says which past use counts, and how much.
type History struct {
	Now      int64 // Unix nanoseconds
	HalfLife time.Duration
	Window   time.Duration
}

// Average is what every ClusterQueue used on average: over the part of the
// window that any sample covers, so that a young cluster is not diluted; with a
// half-life, recent use counts more. Samples that are negative, reversed or of
// the future are ignored; those that reach over the window are cut.
func Average(samples []snapshot.Sample, h History) map[string]quantity.MilliGPU {
	total := map[string]wide{}
	oldest := h.Now
	for _, s := range samples {
		if from, to := h.cut(s); to > from {
			oldest = min(oldest, from)
		}
	}
	weights := h.weight(oldest, h.Now)
	for _, s := range samples {
		if from, to := h.cut(s); to > from {
			total[s.Queue] = total[s.Queue].add(h.weight(from, to).times(uint64(min(s.Used, maxTotal))))
		}
	}
	average := map[string]quantity.MilliGPU{}
	for queue, sum := range total {
		average[queue] = quantity.MilliGPU(min(sum.over(weights), uint64(maxTotal)))
	}
	return average
}

// cut returns the part of a sample that counts; from >= to if none does.
func (h History) cut(s snapshot.Sample) (from, to int64) {
	if s.Used < 0 || s.To <= s.From || s.To > h.Now {
		return 0, 0
	}
	return max(s.From, h.Now-int64(h.Window)), s.To
}

// weight is how much the time between two instants counts, in milliseconds
// times 2^16: all of it without a half-life. With one it is summed over pieces
// of a sixteenth of the half-life, each weighted at its middle; the error is
// below 0.1 %, and beyond 32 half-lives nothing counts.
func (h History) weight(from, to int64) wide {
	const scale = 1 << 16
	if h.HalfLife <= 0 {
		return wide{lo: uint64(to-from) / 1e6}.times(scale)
	}
	piece := max(int64(h.HalfLife)/steps, 1)
	var sum wide
	to = min(to, h.Now)
	from = max(from, h.Now-32*int64(h.HalfLife))
	for from < to {
		end := min(to, h.Now-(h.Now-from-1)/piece*piece) // up to the next border seen from now
		sum = sum.add(wide{lo: uint64(end-from) / 1e6}.times(decay(uint64(h.Now-from+h.Now-end)/2, uint64(h.HalfLife))))
		from = end
	}
	return sum
}

// steps is the number of pieces of a half-life.
const steps = 16

// halves are 2^16 times 2^(-i/32).
var halves = [33]uint64{
	65536, 64132, 62757, 61413, 60097, 58809, 57549, 56316, 55109, 53928, 52773, 51642, 50535, 49452, 48393, 47356, 46341,
	45348, 44376, 43425, 42495, 41584, 40693, 39821, 38968, 38133, 37316, 36516, 35734, 34968, 34219, 33486, 32768,
}

// decay is 2^16 times 0.5^(age/halfLife), by lines between 32 points.
func decay(age, halfLife uint64) uint64 {
	whole := age / halfLife
	if whole >= 32 {
		return 0
	}
	hi, lo := bits.Mul64(age%halfLife, 32<<16)
	at, _ := bits.Div64(hi, lo, halfLife)
	i, part := at>>16, at&0xffff
	value := halves[i] - (halves[i]-halves[i+1])*part>>16
	return value >> whole
}

// wide is an unsigned integer of 128 bits.
type wide struct{ hi, lo uint64 }

func (a wide) add(b wide) wide {
	lo, carry := bits.Add64(a.lo, b.lo, 0)
	hi, _ := bits.Add64(a.hi, b.hi, carry)
	return wide{hi, lo}
}

func (a wide) times(n uint64) wide {
	hi, lo := bits.Mul64(a.lo, n)
	return wide{hi + a.hi*n, lo}
}

// over is a/b, rounded down; 0 when b is 0. The result of an average fits.
func (a wide) over(b wide) uint64 {
	for b.hi > 0 {
		a, b = a.half(), b.half()
	}
	if b.lo == 0 {
		return 0
	}
	if a.hi >= b.lo {
		return 1<<64 - 1
	}
	q, _ := bits.Div64(a.hi, a.lo, b.lo)
	return q
}

func (a wide) half() wide { return wide{a.hi >> 1, a.lo>>1 | a.hi<<63} }
