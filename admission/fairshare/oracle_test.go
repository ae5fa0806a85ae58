package fairshare

import (
	"fmt"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/admission/tree"
	"github.com/fairshard/fairshard/classes/quantity"
)

// member is one queue of a level, in rational numbers, as the text says it.
type member struct {
	at                    int
	deserved, want, share *big.Rat
	weight, part          *big.Rat
	priority              int32
}

func rat(m quantity.MilliGPU) *big.Rat { return big.NewRat(int64(m), 1000) }

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return new(big.Rat).Set(a)
	}
	return new(big.Rat).Set(b)
}

func floor(r *big.Rat) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Quo(r.Num(), r.Denom()))
}

// slowLevel divides total among a level, step by step, and goes down.
func slowLevel(in Input, demand []*big.Rat, queues []int, total *big.Rat, shares []*big.Rat) {
	huge := big.NewRat(1<<40, 1000)
	var level []*member
	sum := new(big.Rat)
	for _, at := range queues {
		spec := &in.Tree.Queues[at]
		m := &member{at: at, weight: big.NewRat(spec.Spec.Weight, 1), priority: spec.Spec.Priority, part: new(big.Rat)}
		m.deserved = new(big.Rat).Set(total)
		if spec.Deserved != quantity.Unlimited {
			m.deserved = rat(spec.Deserved)
		}
		m.want = least(demand[at], huge)
		if spec.Spec.Limit != quantity.Unlimited {
			m.want = least(m.want, rat(spec.Spec.Limit))
		}
		m.share = least(m.deserved, m.want)
		sum.Add(sum, m.share)
		level = append(level, m)
	}
	switch {
	case sum.Cmp(total) <= 0:
		slowDivide(level, new(big.Rat).Sub(total, sum))
	case !in.FirstCome:
		var scaled []*member
		for _, m := range level {
			scaled = append(scaled, &member{weight: m.deserved, want: m.share, share: new(big.Rat), part: new(big.Rat)})
		}
		slowFill(scaled, new(big.Rat).Set(total))
		for i, m := range level {
			m.share = least(scaled[i].share, m.share)
		}
	}
	for _, m := range level {
		shares[m.at] = m.share
		if children := in.Tree.Queues[m.at].Children; len(children) > 0 {
			slowLevel(in, demand, children, m.share, shares)
		}
	}
}

// slowDivide gives rest by priority and weight, then remainders.
func slowDivide(level []*member, rest *big.Rat) {
	var priorities []int32
	for _, m := range level {
		priorities = append(priorities, m.priority)
	}
	slices.Sort(priorities)
	priorities = slices.Compact(priorities)
	slices.Reverse(priorities)
	for _, priority := range priorities {
		for again := true; again && rest.Sign() > 0; {
			again = false
			weights, at := new(big.Rat), new(big.Rat).Set(rest)
			for _, m := range level {
				if m.priority == priority && m.share.Cmp(m.want) < 0 {
					weights.Add(weights, m.weight)
				}
			}
			if weights.Sign() == 0 {
				break
			}
			for _, m := range level {
				if m.priority != priority || m.share.Cmp(m.want) >= 0 {
					continue
				}
				fair := new(big.Rat).Quo(new(big.Rat).Mul(at, m.weight), weights)
				missing := new(big.Rat).Sub(m.want, m.share)
				give := floor(fair)
				m.part = new(big.Rat).Sub(fair, give)
				if m.weight.Sign() > 0 && missing.Cmp(fair) <= 0 {
					again = again || missing.Cmp(fair) < 0
					give, m.part = missing, new(big.Rat)
				}
				m.share = new(big.Rat).Add(m.share, give)
				rest.Sub(rest, give)
			}
		}
	}
	one := big.NewRat(1, 1)
	for _, priority := range priorities {
		var waiting []*member
		for _, m := range level {
			if m.priority == priority && m.part.Sign() > 0 {
				waiting = append(waiting, m)
			}
		}
		slices.SortStableFunc(waiting, func(a, b *member) int { return b.part.Cmp(a.part) })
		for _, m := range waiting {
			give := least(one, rest)
			m.share = new(big.Rat).Add(m.share, give)
			rest.Sub(rest, give)
		}
	}
}

// slowFill raises all shares together, each as fast as its weight says, until
// there is nothing left or nobody wants more, and rounds at the end.
func slowFill(level []*member, rest *big.Rat) {
	var open []*member
	for _, m := range level {
		if m.weight.Sign() > 0 && m.share.Cmp(m.want) < 0 {
			open = append(open, m)
		}
	}
	for len(open) > 0 {
		weights := new(big.Rat)
		for _, m := range open {
			weights.Add(weights, m.weight)
		}
		fair := func(m *member) *big.Rat {
			return new(big.Rat).Quo(new(big.Rat).Mul(rest, m.weight), weights)
		}
		full := slices.Collect(func(yield func(*member) bool) {
			for _, m := range open {
				if m.want.Cmp(fair(m)) <= 0 && !yield(m) {
					return
				}
			}
		})
		if len(full) > 0 {
			for _, m := range full {
				m.share = m.want
				rest = new(big.Rat).Sub(rest, m.want)
			}
			open = slices.DeleteFunc(open, func(m *member) bool { return slices.Contains(full, m) })
			continue
		}
		for _, m := range open {
			m.share = floor(fair(m))
			m.part = new(big.Rat).Sub(fair(m), m.share)
		}
		for _, m := range open {
			rest = new(big.Rat).Sub(rest, m.share)
		}
		break
	}
	var waiting []*member
	for _, m := range level {
		if m.part.Sign() > 0 {
			waiting = append(waiting, m)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *member) int { return b.part.Cmp(a.part) })
	for _, m := range waiting {
		give := least(big.NewRat(1, 1), rest)
		m.share = new(big.Rat).Add(m.share, give)
		rest = new(big.Rat).Sub(rest, give)
	}
}

func slowDemand(in Input, at int, demand []*big.Rat) *big.Rat {
	q := &in.Tree.Queues[at]
	sum := new(big.Rat)
	for _, child := range q.Children {
		below := slowDemand(in, child, demand)
		if limit := in.Tree.Queues[child].Spec.Limit; limit != quantity.Unlimited {
			below = least(below, rat(limit))
		}
		sum.Add(sum, below)
	}
	if q.Spec.Demand != nil {
		sum = rat(*q.Spec.Demand)
	}
	demand[at] = sum
	return sum
}

// randomTree draws a tree up to four levels deep with small numbers, so that
// limits, remainders and overcommitment happen often.
func randomTree(t *rapid.T, whole bool) []q {
	amount := func(name string, most int) float64 {
		n := rapid.IntRange(0, most).Draw(t, name)
		if whole {
			return float64(n)
		}
		return float64(n) + rapid.SampledFrom([]float64{0, 0, 0, 0.5, 0.25, 0.333}).Draw(t, name+" part")
	}
	parents := []string{""}
	var list []q
	for i := range rapid.IntRange(1, 9).Draw(t, "queues") {
		one := q{
			name: fmt.Sprintf("q%d", i), parent: rapid.SampledFrom(parents).Draw(t, "parent"), deserved: amount("deserved", 6),
			weight: rapid.SampledFrom([]float64{0, 1, 1, 2, 3, 0.5}).Draw(t, "weight"), priority: rapid.SampledFrom([]int32{100, 100, 50, 200}).Draw(t, "priority"),
			demand: amount("demand", 12), unlimited: rapid.IntRange(0, 9).Draw(t, "unlimited") == 0,
		}
		if rapid.IntRange(0, 4).Draw(t, "limited") == 0 {
			one.limit = 1 + amount("limit", 5)
		}
		list = append(list, one)
		parents = append(parents, one.name)
	}
	for i := range list {
		for _, other := range list {
			if other.parent == list[i].name && rapid.Bool().Draw(t, "sums") {
				list[i].demand, list[i].sum = 0, true
				break
			}
		}
	}
	return list
}

func TestDivideEqualsTheSlowOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := randomTree(t, rapid.Bool().Draw(t, "whole"))
		in := input(float64(rapid.IntRange(0, 20).Draw(t, "capacity")), rapid.Bool().Draw(t, "first come"), list...)
		got := Divide(in)
		demand, want := make([]*big.Rat, len(in.Tree.Queues)), make([]*big.Rat, len(in.Tree.Queues))
		for _, root := range in.Tree.Roots {
			slowDemand(in, root, demand)
		}
		slowLevel(in, demand, in.Tree.Roots, rat(in.Capacity["p"]), want)
		for i := range want {
			if rat(got.Share[i]).Cmp(want[i]) != 0 {
				t.Fatalf("queue %s has %s, the oracle says %s", in.Tree.Queues[i].Spec.Name, got.Share[i], want[i].FloatString(4))
			}
		}
	})
}

func TestScaledSharesNeverExceedWhatThereIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := input(float64(rapid.IntRange(0, 20).Draw(t, "capacity")), false, randomTree(t, false)...)
		got := Divide(in)
		level := func(queues []int, total quantity.MilliGPU) {
			var sum quantity.MilliGPU
			for _, at := range queues {
				if got.Share[at] < 0 {
					t.Fatalf("negative share %s", got.Share[at])
				}
				sum = sum.Add(got.Share[at])
			}
			if sum > total {
				t.Fatalf("shares %s of %s", sum, total)
			}
		}
		level(in.Tree.Roots, in.Capacity["p"])
		for i := range in.Tree.Queues {
			level(in.Tree.Queues[i].Children, got.Share[i])
		}
	})
}

func TestTheOrderOfQueuesIsIrrelevant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := randomTree(t, false)
		capacity := float64(rapid.IntRange(0, 20).Draw(t, "capacity"))
		in := input(capacity, false, list...)
		want := sharesOf(in)
		specs := slices.Clone(in.Tree.Queues)
		slices.Reverse(specs)
		again := in
		again.Tree = rebuilt(specs)
		again.Demand = make([]quantity.MilliGPU, len(specs))
		if got := sharesOf(again); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}

// More deserved for one queue of a level never lowers its share by a whole GPU,
// and never at all when everything that is deserved is in whole GPUs.
func TestMoreDeservedNeverLowersAShareByAGPU(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.Bool().Draw(t, "whole")
		firstCome := rapid.Bool().Draw(t, "first come")
		capacity := float64(rapid.IntRange(0, 20).Draw(t, "capacity"))
		var list []q
		for i := range rapid.IntRange(1, 5).Draw(t, "queues") {
			one := q{
				name: fmt.Sprintf("q%d", i), weight: rapid.SampledFrom([]float64{0, 1, 1, 2, 3}).Draw(t, "weight"),
				deserved: float64(rapid.IntRange(0, 6).Draw(t, "deserved")), demand: float64(rapid.IntRange(0, 12).Draw(t, "demand")),
				priority: rapid.SampledFrom([]int32{100, 100, 50}).Draw(t, "priority"),
			}
			if !whole {
				one.deserved += rapid.SampledFrom([]float64{0, 0.5, 0.25, 0.333}).Draw(t, "part")
			}
			list = append(list, one)
		}
		share := func() quantity.MilliGPU {
			in := input(capacity, firstCome, list...)
			leaf, _ := in.Tree.Leaf("q0")
			return Divide(in).Share[leaf]
		}
		before := share()
		more := float64(rapid.IntRange(1, 4).Draw(t, "more"))
		if !whole {
			more = rapid.SampledFrom([]float64{0.25, 0.5, 1, 1.5}).Draw(t, "more of it")
		}
		list[0].deserved += more
		after := share()
		if lost := before - after; lost >= quantity.PerGPU || whole && lost > 0 {
			t.Fatalf("%s more deserved lowers the share from %s to %s", milli(more), before, after)
		}
	})
}

// rebuilt makes a tree of the same queues in the given order.
func rebuilt(queues []tree.Queue) *tree.Tree {
	var specs []snapshot.Queue
	for _, q := range queues {
		specs = append(specs, q.Spec)
	}
	t, _ := tree.Build(specs)
	return t
}
