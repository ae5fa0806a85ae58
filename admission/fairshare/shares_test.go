package fairshare

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/admission/tree"
	"github.com/fairshard/fairshard/classes/quantity"
)

// q is a queue in GPUs; demand counts for leaves, and for cohorts where it is not 0.
type q struct {
	name, parent     string
	deserved, weight float64
	limit            float64 // 0 = none
	priority         int32   // 0 = 100
	demand           float64
	used             float64
	unlimited, sum   bool
}

func milli(gpus float64) quantity.MilliGPU { return quantity.MilliGPU(gpus*1000 + 0.5) }

// input makes one pool with capacity GPUs; queues are listed oldest first.
func input(capacity float64, firstCome bool, list ...q) Input {
	parents := map[string]bool{}
	for _, one := range list {
		parents[one.parent] = true
	}
	var queues []snapshot.Queue
	for i, one := range list {
		queue := snapshot.Queue{
			Name: one.name, Parent: one.parent, Cohort: parents[one.name], Created: int64(i), SumChildren: one.sum,
			Deserved: milli(one.deserved), Weight: int64(one.weight * 1000), Limit: quantity.Unlimited, Priority: 100,
		}
		if !queue.Cohort {
			queue.Pool = "p"
		}
		if one.unlimited {
			queue.Deserved = quantity.Unlimited
		}
		if one.limit > 0 {
			queue.Limit = milli(one.limit)
		}
		if one.priority != 0 {
			queue.Priority = one.priority
		}
		if one.demand > 0 {
			demand := milli(one.demand)
			queue.Demand = &demand
		}
		queues = append(queues, queue)
	}
	t, problems := tree.Build(queues)
	if len(problems) > 0 {
		panic(fmt.Sprint(problems))
	}
	in := Input{Tree: t, Capacity: map[string]quantity.MilliGPU{"p": milli(capacity)}, FirstCome: firstCome, Demand: make([]quantity.MilliGPU, len(t.Queues))}
	for _, one := range list {
		if leaf, isLeaf := t.Leaf(one.name); isLeaf && one.used > 0 {
			if in.Used == nil {
				in.Used, in.K = make([]quantity.MilliGPU, len(t.Queues)), 1000
			}
			in.Used[leaf] = milli(one.used)
		}
	}
	return in
}

// sharesOf prints all shares, by name.
func sharesOf(in Input) string {
	shares := Divide(in)
	byName := map[string]string{}
	for i := range in.Tree.Queues {
		byName[in.Tree.Queues[i].Spec.Name] = shares.Share[i].String()
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, name+" "+byName[name])
	}
	return fmt.Sprintf("%s; left %s", strings.Join(out, ", "), shares.Unassigned["p"])
}

func TestKnownDivisions(t *testing.T) {
	for name, tc := range map[string]struct {
		in   Input
		want string
	}{
		"surplus by weight 1:3":               {input(8, true, q{name: "a", deserved: 2, weight: 1, demand: 6}, q{name: "b", deserved: 2, weight: 3, demand: 6}), "a 3, b 5; left 0"},
		"1.4 and 5.6 are 1 and 6":             {input(7, false, q{name: "a", weight: 1, demand: 9}, q{name: "b", weight: 4, demand: 9}), "a 1, b 6; left 0"},
		"a limit leaves a GPU to nobody":      {input(12, true, q{name: "a", deserved: 2, weight: 2, limit: 5, demand: 6}, q{name: "b", deserved: 2, weight: 2, demand: 6}), "a 5, b 6; left 1"},
		"what a limit leaves flows on":        {input(1000, true, q{name: "a", deserved: 250, weight: 1, demand: 5000}, q{name: "b", deserved: 150, weight: 2, limit: 400, demand: 5000}), "a 600, b 400; left 0"},
		"fractional demands are met exactly":  {input(45, true, q{name: "a", deserved: 12, weight: 12, demand: 32.55}, q{name: "b", deserved: 7, weight: 7, demand: 9.5}, q{name: "c", deserved: 2, weight: 2, limit: 2, demand: 1.65}), "a 32.55, b 9.5, c 1.65; left 1.3"},
		"no weight, no surplus":               {input(7, true, q{name: "a", deserved: 3, demand: 5}), "a 3; left 4"},
		"promises are kept, first come":       {input(1, true, q{name: "a", deserved: 3, demand: 2}), "a 2; left 0"},
		"promises are scaled":                 {input(3, false, q{name: "a", deserved: 2, demand: 2}, q{name: "b", deserved: 2, demand: 2}), "a 2, b 1; left 0"},
		"scaled by what is deserved":          {input(6, false, q{name: "a", deserved: 8, demand: 9}, q{name: "b", deserved: 4, demand: 9}), "a 4, b 2; left 0"},
		"who asks less leaves more":           {input(6, false, q{name: "a", deserved: 8, demand: 1}, q{name: "b", deserved: 8, demand: 9}), "a 1, b 5; left 0"},
		"higher priority takes all surplus":   {input(12, true, q{name: "d1", deserved: 1, weight: 7, priority: 1, demand: 100}, q{name: "d2", deserved: 1, weight: 1, priority: 2, demand: 100}), "d1 1, d2 11; left 0"},
		"children share what the parent has":  {input(12, true, q{name: "d1", deserved: 3, weight: 1, demand: 100}, q{name: "a", parent: "d1", deserved: 2, weight: 1, demand: 100}, q{name: "d2", deserved: 1, weight: 7, demand: 100}, q{name: "b", parent: "d2", deserved: 2, weight: 1, demand: 100}), "a 4, b 8, d1 4, d2 8; left 0"},
		"a leaf keeps its promise above":      {input(4, true, q{name: "d1", deserved: 3, weight: 1, demand: 100}, q{name: "a", parent: "d1", deserved: 2, weight: 1, demand: 100}, q{name: "d2", deserved: 1, weight: 1, demand: 100}, q{name: "b", parent: "d2", deserved: 2, weight: 1, demand: 100}), "a 3, b 2, d1 3, d2 1; left 0"},
		"and is scaled where that is chosen":  {input(4, false, q{name: "d1", deserved: 3, weight: 1, demand: 100}, q{name: "a", parent: "d1", deserved: 2, weight: 1, demand: 100}, q{name: "d2", deserved: 1, weight: 1, demand: 100}, q{name: "b", parent: "d2", deserved: 2, weight: 1, demand: 100}), "a 3, b 1, d1 3, d2 1; left 0"},
		"a department deserves its sum":       {input(10, false, q{name: "d", sum: true}, q{name: "a", parent: "d", deserved: 3, demand: 9}, q{name: "b", parent: "d", deserved: 2, demand: 9}, q{name: "c", weight: 1, demand: 9}), "a 3, b 2, c 5, d 5; left 0"},
		"unlimited is all there is":           {input(8, false, q{name: "root", unlimited: true}, q{name: "a", parent: "root", deserved: 2, weight: 1, demand: 9}), "a 8, root 8; left 0"},
		"a limit caps what is asked above":    {input(8, false, q{name: "d", sum: true, weight: 1}, q{name: "a", parent: "d", limit: 2, demand: 9, weight: 1}, q{name: "b", weight: 1, demand: 9}), "a 2, b 6, d 2; left 0"},
		"zero weights everywhere":             {input(8, false, q{name: "a", deserved: 1, demand: 9}, q{name: "b", demand: 9}), "a 1, b 0; left 7"},
		"the older gets the equal remainder":  {input(1, false, q{name: "z", weight: 1, demand: 1}, q{name: "a", weight: 1, demand: 1}), "a 0, z 1; left 0"},
		"who used more gets less":             {input(10, false, q{name: "a", weight: 1, demand: 10, used: 8}, q{name: "b", weight: 1, demand: 10, used: 1}), "a 2, b 8; left 0"},
		"who used far too much gets none now": {input(10, false, q{name: "a", weight: 1, demand: 10, used: 10}, q{name: "b", weight: 1, demand: 10, used: 0.001}), "a 0, b 10; left 0"},
		"nobody asks":                         {input(4, false, q{name: "a", deserved: 2, weight: 1}), "a 0; left 4"},
		"there is nothing":                    {input(0, false, q{name: "a", deserved: 2, weight: 1, demand: 3}), "a 0; left 0"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sharesOf(tc.in); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// More deserved may cost a part of a GPU, because remainders go elsewhere.
func TestMoreDeservedMayCostAPartOfAGPU(t *testing.T) {
	level := func(deserved float64) Input {
		return input(7, false, q{name: "a", deserved: deserved, weight: 3, demand: 7}, q{name: "b", deserved: 2, weight: 1, demand: 7}, q{name: "c", deserved: 2, weight: 2, demand: 7})
	}
	for deserved, want := range map[float64]string{0: "a 2, b 2, c 3; left 0", 0.5: "a 1.5, b 2.5, c 3; left 0", 1: "a 2, b 2, c 3; left 0"} {
		if got := sharesOf(level(deserved)); got != want {
			t.Errorf("deserved %v: got %s, want %s", deserved, got, want)
		}
	}
}

func TestTenThousandQueuesAndADeepChain(t *testing.T) {
	var flat, deep []q
	for i := range 10_000 {
		flat = append(flat, q{name: fmt.Sprintf("q%05d", i), weight: 1, demand: 1})
	}
	shares := Divide(input(5000, false, flat...))
	var sum quantity.MilliGPU
	for _, s := range shares.Share {
		sum = sum.Add(s)
	}
	if sum != 5_000_000 {
		t.Errorf("5000 GPUs among 10000 queues add up to %s", sum)
	}
	for i := range 1000 {
		one := q{name: fmt.Sprintf("c%04d", i), sum: true, weight: 1}
		if i > 0 {
			one.parent = fmt.Sprintf("c%04d", i-1)
		}
		deep = append(deep, one)
	}
	deep = append(deep, q{name: "leaf", parent: "c0999", deserved: 3, demand: 9})
	in := input(5, false, deep...)
	leaf, _ := in.Tree.Leaf("leaf")
	if got := Divide(in).Share[leaf]; got != 3000 {
		t.Errorf("the leaf has %s, want 3", got)
	}
}

func BenchmarkDivide(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		var list []q
		for i := range n / 20 {
			list = append(list, q{name: fmt.Sprintf("d%04d", i), sum: true, weight: 1})
		}
		for i := range n {
			list = append(list, q{name: fmt.Sprintf("q%05d", i), parent: fmt.Sprintf("d%04d", i%(n/20)), deserved: float64(i % 4), weight: float64(1 + i%3), demand: float64(i % 9)})
		}
		in := input(float64(n*2), false, list...)
		b.Run(fmt.Sprintf("queues=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Divide(in)
			}
		})
	}
}
