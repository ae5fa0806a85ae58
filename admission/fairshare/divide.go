package fairshare

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/fairshard/fairshard/classes/quantity"
)

// claim is one queue as its level divides.
type claim struct {
	weight   int64             // of over-quota; in any unit
	priority int32             // higher first
	want     quantity.MilliGPU // the most it can use
	used     quantity.MilliGPU // average past use
	share    quantity.MilliGPU // result
	fraction fraction          // what rounding down cost it in the last round
}

// fraction is a part of a whole GPU: num/den, compared within one group only,
// where den is the same.
type fraction struct{ num, den uint64 }

// pot is what a level divides over quota, and how past use counts.
type pot struct {
	total quantity.MilliGPU // what the level has in all
	k     int64             // thousandths; 0 = past use does not count
}

// divide gives rest to claims, which are in order of age and name, on top of
// their shares, and returns what is left: groups of one priority, the highest
// first, then remainders in the same order.
func (p pot) divide(claims []*claim, rest quantity.MilliGPU) quantity.MilliGPU {
	groups := byPriority(claims)
	for _, group := range groups {
		rest = p.rounds(group, rest)
	}
	for _, group := range groups {
		rest = remainders(group, rest)
	}
	return rest
}

func byPriority(claims []*claim) [][]*claim {
	sorted := slices.Clone(claims)
	slices.SortStableFunc(sorted, func(a, b *claim) int { return cmp.Compare(b.priority, a.priority) })
	var groups [][]*claim
	for i, c := range sorted {
		if i == 0 || sorted[i-1].priority != c.priority {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], c)
	}
	return groups
}

// rounds gives each claim its part by weight, in whole GPUs unless that is all
// it wants. What a claim does not want goes into another round. A round either
// satisfies a claim or is the last, so there are at most as many as claims.
func (p pot) rounds(group []*claim, rest quantity.MilliGPU) quantity.MilliGPU {
	open := slices.DeleteFunc(slices.Clone(group), func(c *claim) bool { return c.share >= c.want })
	for rest > 0 && len(open) > 0 {
		parts, sum := p.parts(open)
		if sum == 0 {
			break
		}
		again, at := false, rest
		for i, c := range open {
			missing := c.want - c.share
			whole, frac := part(at, parts[i], sum)
			switch exact := whole.Add(quantity.MilliGPU(frac.milli())); {
			case parts[i] > 0 && missing <= exact:
				again = again || missing < exact || !frac.whole()
				c.share, c.fraction = c.want, fraction{}
				rest -= missing
			default:
				c.share, c.fraction = c.share+whole, frac
				rest -= whole
			}
		}
		open = slices.DeleteFunc(open, func(c *claim) bool { return c.share >= c.want })
		if !again {
			break
		}
	}
	return rest
}

// part is at*weight/sum as whole GPUs (in thousandths) and the fraction of one
// that is left. Exact: 128 bit between.
func part(at quantity.MilliGPU, weight, sum uint64) (quantity.MilliGPU, fraction) {
	hi, lo := bits.Mul64(uint64(at), weight)
	den := sum * uint64(quantity.PerGPU) // sum is below 2^50, see parts
	q, r := bits.Div64(hi, lo, den)
	return quantity.MilliGPU(q) * quantity.PerGPU, fraction{r, den}
}

// milli is the fraction of a GPU in thousandths, rounded down.
func (f fraction) milli() uint64 {
	if f.den == 0 {
		return 0
	}
	hi, lo := bits.Mul64(f.num, uint64(quantity.PerGPU))
	q, _ := bits.Div64(hi, lo, f.den)
	return q
}

// whole reports whether the fraction has no part below a thousandth.
func (f fraction) whole() bool {
	if f.den == 0 {
		return true
	}
	hi, lo := bits.Mul64(f.num, uint64(quantity.PerGPU))
	_, r := bits.Div64(hi, lo, f.den)
	return r == 0
}

// parts returns the weight of each claim in this round and their sum: weights
// as they are without history, else in parts of a billion, more for who used
// less than its weight says.
func (p pot) parts(open []*claim) (parts []uint64, sum uint64) {
	parts = make([]uint64, len(open))
	var weights uint64
	for i, c := range open {
		parts[i] = uint64(c.weight)
		weights += parts[i]
	}
	if p.k == 0 || weights == 0 {
		return parts, weights
	}
	for i, c := range open {
		parts[i] = p.withHistory(parts[i], weights, c.used)
		sum += parts[i]
	}
	return parts, sum
}

const billion = 1_000_000_000

// withHistory is max(0, w + k*(w-u)) in billionths: w the part by weight, u the
// part of the level's total that was used.
func (p pot) withHistory(weight, weights uint64, used quantity.MilliGPU) uint64 {
	hi, lo := bits.Mul64(weight, billion)
	w, _ := bits.Div64(hi, lo, weights)
	u := uint64(billion)
	if used < p.total {
		hi, lo = bits.Mul64(uint64(used), billion)
		u, _ = bits.Div64(hi, lo, uint64(p.total))
	}
	result := int64(w) + p.k*(int64(w)-int64(u))/1000
	return uint64(max(result, 0))
}

// fill gives each claim its part by weight, as rounds does, but claims that get
// all they want are settled first and rounding comes once, at the end: so a
// larger weight never lowers a part. Each turn settles a claim or is the last.
func (p pot) fill(group []*claim, rest quantity.MilliGPU) quantity.MilliGPU {
	open := slices.DeleteFunc(slices.Clone(group), func(c *claim) bool { return c.share >= c.want || c.weight == 0 })
	for len(open) > 0 {
		parts, sum := p.parts(open)
		at, before := rest, len(open)
		settled := make(map[*claim]bool, len(open))
		for i, c := range open {
			whole, frac := part(at, parts[i], sum)
			if missing := c.want - c.share; missing <= whole.Add(quantity.MilliGPU(frac.milli())) {
				c.share, settled[c] = c.want, true
				rest -= missing
			}
		}
		open = slices.DeleteFunc(open, func(c *claim) bool { return settled[c] })
		if len(open) < before {
			continue
		}
		for i, c := range open {
			whole, frac := part(at, parts[i], sum)
			c.share, c.fraction = c.share+whole, frac
			rest -= whole
		}
		break
	}
	return rest
}

// remainders gives what rounding left to the largest fractions, at most one GPU each.
func remainders(group []*claim, rest quantity.MilliGPU) quantity.MilliGPU {
	waiting := slices.DeleteFunc(slices.Clone(group), func(c *claim) bool { return c.fraction.num == 0 })
	slices.SortStableFunc(waiting, func(a, b *claim) int { return cmp.Compare(b.fraction.num, a.fraction.num) })
	for _, c := range waiting {
		give := min(quantity.PerGPU, rest)
		c.share += give
		rest -= give
	}
	return rest
}
