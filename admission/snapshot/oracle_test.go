package snapshot

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"math/bits"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairshard/fairshard/classes/quantity"
)

// slowTake is Take by trying everything: each device of each request on every
// GPU, in the documented order, with the rules written down a second time.
func slowTake(gpus []GPU, requests []Request) ([]GPU, []Held, bool) {
	type device struct {
		request int
		Request
	}
	var wanted []device
	for i, r := range requests {
		for range max(r.Count, 1) {
			wanted = append(wanted, device{i, r})
		}
	}
	gpus = slices.Clone(gpus)
	var held []Held
	var try func(n int) bool
	try = func(n int) bool {
		if n == len(wanted) {
			return true
		}
		for at := range gpus {
			w := wanted[n]
			if w.Kind == Whole {
				at = len(gpus) - 1 - at
			}
			clash := false
			for before, d := range held {
				other := wanted[before]
				clash = clash || d.GPU == at && (other.request == w.request || w.Apart != 0 && other.Apart == w.Apart)
			}
			after, d, fits := slowFit(gpus[at], w.Request)
			if clash || !fits {
				continue
			}
			before := gpus[at]
			d.GPU = at
			gpus[at], held = after, append(held, d)
			if try(n + 1) {
				return true
			}
			gpus[at], held = before, held[:n]
		}
		return false
	}
	return gpus, held, try(0)
}

func slowFit(g GPU, r Request) (GPU, Held, bool) {
	shared := g.ShareUsed > 0 || g.Shares > 0
	if !g.Healthy || g.WholeUsed {
		return g, Held{}, false
	}
	switch r.Kind {
	case Whole:
		g.WholeUsed = true
		return g, Held{Kind: Whole}, !shared && g.MIGUsed == 0
	case Share:
		size := slowSize(g, r)
		if g.NoShares || g.MIGUsed != 0 || g.ShareUsed == g.Usable || g.ShareUsed+size > g.Usable {
			return g, Held{}, false
		}
		g.ShareUsed += size
		g.Shares++
		return g, Held{Kind: Share, Bytes: size}, true
	default:
		if shared || !g.MIG {
			return g, Held{}, false
		}
		for _, start := range starts[[2]int{r.Profile.Compute, r.Profile.Slices}] {
			mask := uint8(0)
			for s := start; s < start+r.Profile.Slices; s++ {
				mask |= 1 << s
			}
			if g.MIGUsed&mask == 0 {
				g.MIGUsed |= mask
				return g, Held{Kind: MIG, Mask: mask}, true
			}
		}
		return g, Held{}, false
	}
}

func slowSize(g GPU, r Request) quantity.Bytes {
	if r.PPM > 0 {
		part := new(big.Int).Mul(big.NewInt(int64(g.Usable)), big.NewInt(r.PPM))
		part.Div(part, big.NewInt(1_000_000))
		size := g.Min
		for next := size + g.Step; next <= g.Usable && part.Cmp(big.NewInt(int64(next))) >= 0; next += g.Step {
			size = next
		}
		return size
	}
	if r.Bytes == 0 {
		return g.Usable
	}
	size := g.Min
	for size < r.Bytes {
		size += g.Step
	}
	return size
}

func randomGPU(t *rapid.T) GPU {
	g := GPU{Usable: rapid.SampledFrom([]quantity.Bytes{8, 16}).Draw(t, "usable"), Step: 2, Min: 2, Healthy: rapid.IntRange(0, 7).Draw(t, "sick") > 0}
	if rapid.IntRange(0, 3).Draw(t, "odd") == 0 {
		g.Usable, g.Min = 11, 3
	}
	g.MIG = rapid.Bool().Draw(t, "mig")
	g.NoShares = g.MIG && rapid.Bool().Draw(t, "no shares")
	switch rapid.IntRange(0, 4).Draw(t, "held") {
	case 0:
		g.WholeUsed = true
	case 1, 2:
		g.Shares = rapid.IntRange(1, 2).Draw(t, "shares")
		g.ShareUsed = g.Min + g.Step*quantity.Bytes(rapid.IntRange(0, int((g.Usable-g.Min)/g.Step)).Draw(t, "used"))
	case 3:
		if g.MIG {
			g.MIGUsed = rapid.Byte().Draw(t, "slices")
		}
	}
	return g
}

func randomNodes(t *rapid.T, most int) []Node {
	var nodes []Node
	for i := range rapid.IntRange(1, most).Draw(t, "nodes") {
		n := Node{Name: fmt.Sprintf("n%d", i), Pool: rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "pool")}
		n.Schedulable = rapid.IntRange(0, 5).Draw(t, "cordoned") > 0
		n.GPUs = rapid.SliceOfN(rapid.Custom(randomGPU), 0, 4).Draw(t, "gpus")
		if rapid.Bool().Draw(t, "bound") {
			n.Free = &Resources{MilliCPU: rapid.Int64Range(0, 4).Draw(t, "cpu"), Pods: 3, Extended: []Amount{{"x", 2}}}
		}
		nodes = append(nodes, n)
	}
	return nodes
}

var profiles = []MIGProfile{{"1g", 1, 1}, {"1g+", 1, 2}, {"2g", 2, 2}, {"3g", 3, 4}, {"4g", 4, 4}, {"7g", 7, 8}}

func randomRequest(t *rapid.T) Request {
	r := Request{Kind: RequestKind(rapid.IntRange(0, 2).Draw(t, "kind")), Count: rapid.IntRange(1, 3).Draw(t, "count")}
	switch r.Kind {
	case Whole:
	case Share:
		r.Apart = rapid.IntRange(0, 2).Draw(t, "apart")
		if rapid.IntRange(0, 3).Draw(t, "relative") == 0 {
			r.PPM = rapid.Int64Range(1, 1_200_000).Draw(t, "ppm")
		} else {
			r.Bytes = quantity.Bytes(rapid.IntRange(0, 17).Draw(t, "bytes"))
		}
	case MIG:
		r.Profile = rapid.SampledFrom(profiles).Draw(t, "profile")
	}
	return r
}

func randomSet(t *rapid.T) *PodSet {
	s := &PodSet{Requests: rapid.SliceOfN(rapid.Custom(randomRequest), 0, 3).Draw(t, "requests")}
	if rapid.Bool().Draw(t, "needy") {
		s.Needs = Resources{MilliCPU: rapid.Int64Range(0, 2).Draw(t, "cpu"), Pods: 1, Extended: []Amount{{"x", rapid.Int64Range(0, 2).Draw(t, "x")}}}
	}
	return s
}

// slowBeside reports whether n pods fit beside GPUs.
func slowBeside(r *Room, i int, set *PodSet, n int64) bool {
	free, needs := r.Beside(i), set.Needs
	if r.Node(i).Free == nil {
		return true
	}
	ok := n*needs.MilliCPU <= free.MilliCPU && n*needs.Pods <= free.Pods
	for _, want := range needs.Extended {
		ok = ok && (want.Value == 0 || n*want.Value <= amount(free.Extended, want.Name))
	}
	return ok
}

func slowlyFits(r *Room, i int, set *PodSet) ([]GPU, []Held, bool) {
	gpus, held, ok := slowTake(r.GPUs(i), set.Requests)
	return gpus, held, ok && r.Node(i).Schedulable && slowBeside(r, i, set, 1)
}

// counted demands that what r keeps beside the GPUs is what a new count gives.
func counted(t *rapid.T, r *Room) {
	t.Helper()
	s := &Snapshot{Nodes: slices.Clone(r.facts.nodes)}
	for i := range s.Nodes {
		s.Nodes[i].GPUs = r.GPUs(i)
		if s.Nodes[i].Free != nil {
			free := r.Beside(i)
			s.Nodes[i].Free = &free
		}
	}
	if again := NewRoom(s); !same(again, r) {
		t.Fatalf("kept %+v\ncounted %+v", r, again)
	}
	for i := range s.Nodes {
		var milli int64
		n := 0
		for _, g := range r.GPUs(i) {
			if _, _, fits := slowFit(g, Request{Kind: Whole}); fits {
				n++
			}
			switch {
			case !g.Healthy || g.WholeUsed || !r.Node(i).Schedulable:
			case g.MIGUsed != 0:
				milli += int64(8-bits.OnesCount8(g.MIGUsed)) * 125
			default:
				milli += int64(g.Usable-g.ShareUsed) * 1000 / int64(g.Usable)
			}
		}
		if r.Whole(i) != n || r.FreeMilli(i) != quantity.MilliGPU(milli) {
			t.Fatalf("node %d: %d whole, %d free, want %d, %d", i, r.Whole(i), r.FreeMilli(i), n, milli)
		}
	}
}

// same compares everything but what the snapshot said at first.
func same(a, b *Room) bool {
	x, y := *a, *b
	x.facts, y.facts = nil, nil
	return reflect.DeepEqual(x, y)
}

func TestTakeIsTheExhaustiveSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, set := NewRoom(&Snapshot{Nodes: randomNodes(t, 1)}), randomSet(t)
		before := r.Fork()
		gpus, held, fits := slowlyFits(r, 0, set)
		got, ok := r.Take(0, set)
		if ok != fits {
			t.Fatalf("fits: %t, want %t", ok, fits)
		}
		if !ok {
			if !same(r, before) {
				t.Fatal("a failed try took something")
			}
			return
		}
		if !slices.Equal(got, held) || !slices.Equal(r.GPUs(0), gpus) {
			t.Fatalf("got %v, want %v", got, held)
		}
		counted(t, r)
		after := r.Fork()
		r.Give(0, got, &set.Needs)
		if !same(r, before) || !r.Free(0, got) {
			t.Fatalf("gave back: %+v\nat first: %+v", r, before)
		}
		r.Hold(0, got, &set.Needs)
		if !same(r, after) {
			t.Fatalf("held again: %+v\ntaken: %+v", r, after)
		}
	})
}

func TestCapacityIsHowOftenTakeSucceeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, set := NewRoom(&Snapshot{Nodes: randomNodes(t, 3)}), randomSet(t)
		most := rapid.IntRange(0, 20).Draw(t, "most")
		sum := 0
		for i := range r.Len() {
			trial, n := r.Fork(), 0
			for ; n < most; n++ {
				if _, ok := trial.Take(i, set); !ok {
					break
				}
			}
			if got := r.Capacity(i, set, most); got != n {
				t.Fatalf("node %d: capacity %d, but %d fit", i, got, n)
			}
			if r.Node(i).Pool == "a" {
				sum += n
			}
		}
		if got := r.CountFit(Search{Pool: "a", Set: set}, most); got != min(sum, most) {
			t.Fatalf("%d fit in the pool, want %d, at most %d", got, sum, most)
		}
		counted(t, r)
	})
}

// slowPick sorts all nodes by the documented order and takes the first that fits.
func slowPick(r *Room, q Search) (int, []Held, bool) {
	parts := len(q.Set.Requests) > 0 && !slices.ContainsFunc(q.Set.Requests, func(x Request) bool { return x.Kind == Whole })
	type seat struct {
		node, breaks, free int
		held               []Held
	}
	var seats []seat
	for i := range r.Len() {
		_, held, ok := slowlyFits(r, i, q.Set)
		if !ok || r.Node(i).Pool != q.Pool || q.Allowed != nil && !q.Allowed.Has(i) {
			continue
		}
		s := seat{node: i, held: held}
		if len(q.Set.Requests) > 0 {
			s.free = r.Whole(i)
		}
		for _, d := range held {
			if g := r.GPUs(i)[d.GPU]; parts && g.ShareUsed == 0 && g.Shares == 0 && g.MIGUsed == 0 {
				s.breaks = 1
			}
		}
		if q.Spread {
			s.breaks, s.free = 0, -s.free
		}
		seats = append(seats, s)
	}
	if len(seats) == 0 {
		return 0, nil, false
	}
	best := slices.MinFunc(seats, func(a, b seat) int {
		return cmp.Or(cmp.Compare(a.breaks, b.breaks), cmp.Compare(a.free, b.free), cmp.Compare(a.node, b.node))
	})
	return best.node, best.held, true
}

func TestPickIsTheFirstOfAllNodesInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := NewRoom(&Snapshot{Nodes: randomNodes(t, 6)})
		for range rapid.IntRange(1, 4).Draw(t, "pods") {
			q := Search{Pool: "a", Set: randomSet(t), Spread: rapid.Bool().Draw(t, "spread")}
			if rapid.Bool().Draw(t, "constrained") {
				q.Allowed = NewNodes(r.Len())
				for i := range r.Len() {
					if rapid.Bool().Draw(t, "allowed") {
						q.Allowed.Add(i)
					}
				}
			}
			node, held, ok := slowPick(r, q)
			want := r.Fork()
			gotNode, got, gotOK := r.Pick(q)
			if ok {
				want.Hold(node, held, &q.Set.Needs)
			}
			if gotNode != node || gotOK != ok || !slices.Equal(got, held) || !same(r, want) {
				t.Fatalf("got node %d %v %t, want %d %v %t", gotNode, got, gotOK, node, held, ok)
			}
			counted(t, r)
		}
	})
}

func TestReserveIsTakeOnceHealthDoesNotCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, set := NewRoom(&Snapshot{Nodes: randomNodes(t, 1)}), randomSet(t)
		_, want, fits := slowTake(r.GPUs(0), set.Requests)
		if !fits {
			well := slices.Clone(r.GPUs(0))
			for i := range well {
				well[i].Healthy = true
			}
			_, want, fits = slowTake(well, set.Requests)
		}
		before := r.Fork()
		got, ok := r.Reserve(0, set)
		if ok != fits || ok && !slices.Equal(got, want) {
			t.Fatalf("got %v %t, want %v %t", got, ok, want, fits)
		}
		counted(t, r)
		if ok {
			r.Give(0, got, &set.Needs)
		}
		if !same(r, before) {
			t.Fatal("giving back does not restore")
		}
	})
}

func written(t *rapid.T, s *Snapshot) string {
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestATrialLeavesNoTrace works on copies of a room in random order: the origin
// and the snapshot stay as they were, and a copy is equal to it when made.
func TestATrialLeavesNoTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &Snapshot{Nodes: randomNodes(t, 4)}
		file := written(t, s)
		r := NewRoom(s)
		trial, other := r.Fork(), r.Fork()
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			set, i := randomSet(t), rapid.IntRange(0, r.Len()-1).Draw(t, "node")
			switch rapid.IntRange(0, 4).Draw(t, "do") {
			case 0:
				trial.Take(i, set)
			case 1:
				trial.Reserve(i, set)
			case 2:
				trial.Pick(Search{Pool: "a", Set: set})
			case 3:
				mine := trial.Fork()
				if held, ok := mine.Take(i, set); ok {
					trial.Hold(i, held, &set.Needs)
					mine.CopyFrom(trial)
					mine.Give(i, held, &set.Needs)
				}
			case 4:
				other.CopyFrom(trial)
				if !same(other, trial) {
					t.Fatal("a copy is not equal")
				}
				kept := fmt.Sprintf("%+v", other)
				trial.Take(i, set)
				if fmt.Sprintf("%+v", other) != kept {
					t.Fatal("a copy changed with its origin")
				}
				trial.CopyFrom(r)
			}
			counted(t, trial)
			if !same(r, NewRoom(s)) || written(t, s) != file {
				t.Fatal("a trial changed its origin or the snapshot")
			}
		}
	})
}
