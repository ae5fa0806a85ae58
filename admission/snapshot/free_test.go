package snapshot

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairshard/fairshard/classes/quantity"
)

const gib = quantity.GiB

func gpus(n int) []GPU {
	var out []GPU
	for i := range n {
		out = append(out, GPU{UUID: fmt.Sprint(i), Usable: 80 * gib, Step: gib, Min: gib, Healthy: true})
	}
	return out
}

func free(nodes ...[]GPU) *Free {
	var s Snapshot
	for i, g := range nodes {
		s.Nodes = append(s.Nodes, Node{Name: fmt.Sprintf("n%d", i), Schedulable: true, GPUs: g})
	}
	return NewFree(s)
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

func TestTake(t *testing.T) {
	share := func(count int, size quantity.Bytes) Request {
		return Request{Kind: Share, Count: count, Bytes: size * gib}
	}
	whole := func(count int) Request { return Request{Kind: Whole, Count: count} }
	apart := func(r Request) Request { r.Apart = 1; return r }
	uneven := gpus(2)
	uneven[0].ShareUsed, uneven[0].Shares = 20*gib, 1
	uneven[1].ShareUsed, uneven[1].Shares = 50*gib, 1
	for name, tc := range map[string]struct {
		gpus     []GPU
		requests []Request
		want     string // GiB used per GPU, W = whole; "" = does not fit
	}{
		"shares come from the front":              {gpus(3), []Request{share(1, 40)}, "[40 0 0]"},
		"whole GPUs come from the back":           {gpus(3), []Request{whole(2)}, "[0 W W]"},
		"a count takes distinct GPUs":             {gpus(3), []Request{share(2, 20)}, "[20 20 0]"},
		"more than there are":                     {gpus(2), []Request{share(3, 1)}, ""},
		"two requests may land on one GPU":        {gpus(2), []Request{share(1, 20), share(1, 20)}, "[40 0]"},
		"kept apart they do not":                  {gpus(2), []Request{apart(share(1, 20)), apart(share(1, 20))}, "[20 20]"},
		"kept apart on one GPU they do not fit":   {gpus(1), []Request{apart(share(1, 20)), apart(share(1, 20))}, ""},
		"whole and share exclude each other":      {gpus(1), []Request{whole(1), share(1, 1)}, ""},
		"a second try in another order":           {uneven, []Request{share(1, 30), share(1, 60)}, "[80 80]"},
		"no size takes all":                       {gpus(2), []Request{share(1, 0), share(1, 80)}, "[80 80]"},
		"a share beyond what is left goes beside": {uneven, []Request{share(1, 61)}, ""},
		"a used GPU is not whole":                 {uneven, []Request{whole(1)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := free(tc.gpus)
			before := fmt.Sprint(f.GPUs(0))
			if ok := f.Take(0, tc.requests); ok != (tc.want != "") {
				t.Fatalf("fits: %t, want %q", ok, tc.want)
			}
			if tc.want == "" {
				if fmt.Sprint(f.GPUs(0)) != before {
					t.Fatal("a failed try took something")
				}
				return
			}
			var got []string
			for _, g := range f.GPUs(0) {
				if g.WholeUsed {
					got = append(got, "W")
				} else {
					got = append(got, fmt.Sprint(int64(g.ShareUsed/gib)))
				}
			}
			if fmt.Sprint(got) != tc.want {
				t.Errorf("got %v, want %s", got, tc.want)
			}
		})
	}
}

func TestADroppedForkLeavesNoTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Snapshot{Nodes: []Node{{Name: "n0", GPUs: gpus(3)}, {Name: "n1", GPUs: gpus(2)}}}
		f := NewFree(s)
		f.Take(rapid.IntRange(0, 1).Draw(t, "node"), []Request{{Kind: Share, Count: 1, Bytes: gib}})
		before := fmt.Sprint(f)
		trial := f.Fork()
		for range rapid.IntRange(1, 5).Draw(t, "takes") {
			trial.Take(rapid.IntRange(0, 1).Draw(t, "node"), []Request{{Kind: RequestKind(rapid.IntRange(0, 1).Draw(t, "kind")), Count: 1, Bytes: 30 * gib}})
		}
		if fmt.Sprint(f) != before || !reflect.DeepEqual(s.Nodes[0].GPUs, gpus(3)) {
			t.Fatal("a fork changed its origin or the snapshot")
		}
		for i := range trial.Len() {
			for _, g := range trial.GPUs(i) {
				if g.ShareUsed > g.Usable || g.WholeUsed && g.Shares > 0 {
					t.Fatalf("over capacity: %+v", g)
				}
			}
		}
	})
}

func TestSortBringsListsIntoOneOrder(t *testing.T) {
	s := Snapshot{
		Nodes:  []Node{{Name: "b", GPUs: []GPU{{UUID: "2"}, {UUID: "1"}}}, {Name: "a"}},
		Queues: []Queue{{Name: "b"}, {Name: "a"}},
		Workloads: []Workload{
			{Namespace: "b", Name: "a"}, {Namespace: "a", Name: "b", PodSets: []PodSet{{Pods: []Pod{{Name: "2"}, {Name: "1"}}}}}, {Namespace: "a", Name: "a"},
		},
	}
	s.Sort()
	if s.Nodes[0].Name != "a" || s.Queues[0].Name != "a" || s.Workloads[0].Key() != "a/a" || s.Workloads[2].Key() != "b/a" || s.Workloads[1].PodSets[0].Pods[0].Name != "1" {
		t.Errorf("got %+v", s)
	}
	if s.Nodes[1].GPUs[0].UUID != "2" {
		t.Error("GPUs lost their published order")
	}
}
