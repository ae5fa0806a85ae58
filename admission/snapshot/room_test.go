package snapshot

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fairshard/fairshard/classes/quantity"
)

// room holds nodes, which must be in order.
func room(nodes ...Node) *Room { return NewRoom(&Snapshot{Nodes: nodes}) }

func node(name string, gpus []GPU) Node { return Node{Name: name, Schedulable: true, GPUs: gpus} }

func share(count int, size quantity.Bytes) Request {
	return Request{Kind: Share, Count: count, Bytes: size * gib}
}

func whole(count int) Request { return Request{Kind: Whole, Count: count} }

func apart(r Request) Request { r.Apart = 1; return r }

func mig(name string) Request {
	p, err := ParseMIG(name, 80*gib)
	if err != nil {
		panic(err)
	}
	return Request{Kind: MIG, Count: 1, Profile: p}
}

// state prints GiB held by shares per GPU, W = whole, M and the slices for MIG.
func state(gpus []GPU) string {
	var out []string
	for _, g := range gpus {
		switch {
		case g.WholeUsed:
			out = append(out, "W")
		case g.MIGUsed != 0:
			out = append(out, fmt.Sprintf("M%08b", g.MIGUsed))
		default:
			out = append(out, fmt.Sprint(int64(g.ShareUsed/gib)))
		}
	}
	return strings.Join(out, " ")
}

// held are GPUs with GiB taken by a share each.
func held(sizes ...quantity.Bytes) []GPU {
	out := gpus(len(sizes))
	for i, size := range sizes {
		if size > 0 {
			out[i].ShareUsed, out[i].Shares = size*gib, 1
		}
	}
	return out
}

func migGPUs(n int) []GPU {
	out := gpus(n)
	for i := range out {
		out[i].MIG, out[i].NoShares = true, true
	}
	return out
}

func TestTake(t *testing.T) {
	sick := gpus(3)
	sick[0].Healthy, sick[2].Healthy = false, false
	for name, tc := range map[string]struct {
		gpus     []GPU
		requests []Request
		want     string // as state prints it; "" = does not fit
	}{
		"shares come from the front":               {gpus(3), []Request{share(1, 40)}, "40 0 0"},
		"whole GPUs come from the back":            {gpus(3), []Request{whole(2)}, "0 W W"},
		"a count takes distinct GPUs":              {gpus(3), []Request{share(2, 20)}, "20 20 0"},
		"more than there are":                      {gpus(2), []Request{share(3, 1)}, ""},
		"two requests may land on one GPU":         {gpus(2), []Request{share(1, 20), share(1, 20)}, "40 0"},
		"kept apart they do not":                   {gpus(2), []Request{apart(share(1, 20)), apart(share(1, 20))}, "20 20"},
		"kept apart on one GPU they do not fit":    {gpus(1), []Request{apart(share(1, 20)), apart(share(1, 20))}, ""},
		"whole and share exclude each other":       {gpus(1), []Request{whole(1), share(1, 1)}, ""},
		"a second try in another order":            {held(20, 50), []Request{share(1, 30), share(1, 60)}, "80 80"},
		"the first request gives way":              {held(20, 50), []Request{share(1, 20), share(1, 60)}, "80 70"},
		"equal GPUs of other groups are tried too": {held(20, 0), []Request{apart(share(1, 20)), share(1, 60), apart(share(1, 60))}, "80 80"},
		"no size takes all":                        {gpus(2), []Request{share(1, 0), share(1, 80)}, "80 80"},
		"a share beyond what is left":              {held(20, 50), []Request{share(1, 61)}, ""},
		"a used GPU is not whole":                  {held(20, 50), []Request{whole(1)}, ""},
		"only healthy GPUs are taken":              {sick, []Request{whole(1)}, "0 W 0"},
		"sick GPUs are not counted":                {sick, []Request{share(2, 1)}, ""},
		"a part of whatever GPU it lands on":       {held(20, 50), []Request{{Kind: Share, Count: 1, PPM: 700_000}}, "76 50"},
		"MIG devices pack from the front":          {migGPUs(2), []Request{mig("3g.40gb"), mig("1g.10gb")}, "M00011111 0"},
		"a MIG device goes beside when full":       {migGPUs(2), []Request{mig("4g.40gb"), mig("4g.40gb")}, "M00001111 M00001111"},
		"whole GPUs and MIG exclude each other":    {migGPUs(2), []Request{mig("1g.10gb"), whole(1)}, "M00000001 W"},
		"no shares on a node for MIG":              {migGPUs(1), []Request{share(1, 1)}, ""},
		"no MIG on a node for shares":              {gpus(1), []Request{mig("1g.10gb")}, ""},
		"a count of 0 is one":                      {gpus(2), []Request{whole(0)}, "0 W"},
		"a pod without devices":                    {gpus(1), nil, "0"},
		"a pod without devices, node without any":  {nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := room(node("a", tc.gpus))
			before := slices.Clone(tc.gpus)
			devices, ok := r.Take(0, &PodSet{Requests: tc.requests})
			fits := tc.want != "" || tc.gpus == nil
			if ok != fits {
				t.Fatalf("fits: %t, want %q", ok, tc.want)
			}
			if got := state(r.GPUs(0)); ok && got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if !reflect.DeepEqual(before, tc.gpus) {
				t.Error("the snapshot was changed")
			}
			if !ok && (devices != nil || !reflect.DeepEqual(r, room(node("a", tc.gpus)))) {
				t.Error("a failed try took something")
			}
		})
	}
}

func TestAPodNeedsMoreThanDevices(t *testing.T) {
	free := Resources{MilliCPU: 1000, Memory: gib, Pods: 2, Extended: []Amount{{"rdma", 1}}}
	for name, tc := range map[string]struct {
		needs Resources
		want  int // pods that fit
	}{
		"nothing else":           {Resources{}, 8},
		"pods":                   {Resources{Pods: 1}, 2},
		"CPU":                    {Resources{MilliCPU: 300}, 3},
		"too much CPU":           {Resources{MilliCPU: 1001}, 0},
		"memory":                 {Resources{Memory: gib / 4}, 4},
		"an extended resource":   {Resources{Extended: []Amount{{"rdma", 1}}}, 1},
		"one that is not there":  {Resources{Extended: []Amount{{"other", 1}}}, 0},
		"the scarcest of it all": {Resources{MilliCPU: 300, Memory: gib / 2, Pods: 1}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			n := node("a", gpus(8))
			n.Free = &free
			r := room(n)
			set := &PodSet{Requests: []Request{whole(1)}, Needs: tc.needs}
			if got := r.Capacity(0, set, 100); got != tc.want {
				t.Errorf("capacity is %d, want %d", got, tc.want)
			}
			for got := range 9 {
				if _, ok := r.Take(0, set); !ok {
					if got != tc.want {
						t.Errorf("%d fit, want %d", got, tc.want)
					}
					break
				}
			}
		})
	}
}

func TestReserveOverridesWhatAPinnedPodNoLongerNeeds(t *testing.T) {
	sick := gpus(3)
	sick[2].Healthy = false
	n := Node{Name: "a", GPUs: sick, Free: &Resources{MilliCPU: 100}}
	r := room(n)
	set := &PodSet{Requests: []Request{whole(1)}, Needs: Resources{MilliCPU: 80}}
	if _, ok := r.Take(0, set); ok {
		t.Error("a cordoned node took a new pod")
	}
	for i, want := range []string{"0 W 0", "W W 0", "W W W"} {
		if _, ok := r.Reserve(0, set); !ok || state(r.GPUs(0)) != want {
			t.Errorf("pod %d: %t, %s, want %s", i, ok, state(r.GPUs(0)), want)
		}
	}
	if r.GPUs(0)[2].Healthy || r.Beside(0).MilliCPU != -140 {
		t.Errorf("want a sick GPU that stays sick and CPU below zero, got %+v, %+v", r.GPUs(0)[2], r.Beside(0))
	}
	if _, ok := r.Reserve(0, set); ok {
		t.Error("a fourth GPU of three")
	}
}

func TestPickOrders(t *testing.T) {
	full := gpus(4)
	full[0].WholeUsed, full[1].WholeUsed, full[2].WholeUsed = true, true, true
	nodes := []Node{
		node("a", gpus(4)), node("b", held(20, 20, 0, 0)), node("c", full), node("d", held(60, 0, 0, 60)), node("e", gpus(4)), node("f", gpus(4)),
	}
	nodes[5].Schedulable = false
	without := NewNodes(len(nodes))
	without.Add(4)
	for name, tc := range map[string]struct {
		request Request
		spread  bool
		allowed Nodes
		want    string
	}{
		"a whole GPU goes to the fullest":           {whole(1), false, nil, "c"},
		"two go to the fullest that has two":        {whole(2), false, nil, "b"},
		"four go to the first empty one":            {whole(4), false, nil, "a"},
		"spread goes to the emptiest":               {whole(1), true, nil, "a"},
		"spread shares too":                         {share(1, 10), true, nil, "a"},
		"a share goes beside others":                {share(1, 10), false, nil, "b"},
		"a large one too while it fits":             {share(1, 60), false, nil, "b"},
		"a larger one breaks a GPU of the fullest":  {share(1, 70), false, nil, "c"},
		"two shares go where both are beside":       {share(2, 60), false, nil, "b"},
		"the published order decides inside a node": {share(2, 20), false, nil, "b"},
		"only allowed nodes":                        {whole(1), false, without, "e"},
		"nothing fits":                              {whole(5), false, nil, ""},
		"five GPUs of one node exist nowhere":       {share(5, 1), true, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := room(nodes...)
			i, _, ok := r.Pick(Search{Set: &PodSet{Requests: []Request{tc.request}}, Spread: tc.spread, Allowed: tc.allowed})
			if ok != (tc.want != "") || ok && r.Node(i).Name != tc.want {
				t.Errorf("got %s, %t, want %q", r.Node(i).Name, ok, tc.want)
			}
		})
	}
	r := room(nodes...)
	if i, _, ok := r.Pick(Search{Set: &PodSet{}}); !ok || i != 0 {
		t.Errorf("a pod without devices goes to node %d, %t, want the first", i, ok)
	}
	if _, _, ok := r.Pick(Search{Pool: "other", Set: &PodSet{}}); ok {
		t.Error("a pool without nodes took a pod")
	}
}

func TestFreeAsksForTheVeryDevices(t *testing.T) {
	r := room(node("a", held(20, 0)))
	for name, tc := range map[string]struct {
		devices []Held
		want    bool
	}{
		"nothing":                     {nil, true},
		"a share beside a share":      {[]Held{{GPU: 0, Kind: Share, Bytes: 60 * gib}}, true},
		"two that exceed it together": {[]Held{{GPU: 0, Kind: Share, Bytes: 40 * gib}, {GPU: 0, Kind: Share, Bytes: 40 * gib}}, false},
		"a whole GPU under a share":   {[]Held{{GPU: 0, Kind: Whole}}, false},
		"a whole GPU":                 {[]Held{{GPU: 1, Kind: Whole}}, true},
		"the same one twice":          {[]Held{{GPU: 1, Kind: Whole}, {GPU: 1, Kind: Whole}}, false},
		"a GPU that is gone":          {[]Held{{GPU: 2, Kind: Whole}}, false},
		"no position":                 {[]Held{{GPU: -1, Kind: Whole}}, false},
	} {
		if got := r.Free(0, tc.devices); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
	if got := state(r.GPUs(0)); got != "20 0" {
		t.Errorf("asking changed the node: %s", got)
	}
}

func TestAnEqualGPUIsNotTriedAgain(t *testing.T) {
	// Without that, this would try about 16 over 4 times 16 over 4 combinations.
	c, possible := newChooser(gpus(16), []Request{share(4, 30), share(4, 40), whole(16)})
	if !possible || c.next() || maxSteps-c.steps > 100 {
		t.Errorf("an impossible pod took %d steps", maxSteps-c.steps)
	}
}

func TestAbsurdNumbersFitNowhere(t *testing.T) {
	huge := math.MaxInt
	for name, requests := range map[string][]Request{
		"whole GPUs":         {whole(huge), whole(huge), whole(huge)},
		"shares":             {share(huge, 1), share(huge, 1)},
		"bytes":              {{Kind: Share, Count: 1, Bytes: math.MaxInt64}},
		"MIG devices":        {{Kind: MIG, Count: huge, Profile: MIGProfile{Compute: 1, Slices: 1}}},
		"compute slices":     {{Kind: MIG, Count: 1, Profile: MIGProfile{Compute: huge, Slices: 1}}},
		"memory slices":      {{Kind: MIG, Count: 1, Profile: MIGProfile{Compute: 1, Slices: huge}}},
		"no slices":          {{Kind: MIG, Count: 1}},
		"a kind of its own":  {{Kind: 7, Count: 1}},
		"kinds all together": {whole(huge), share(huge, 1), {Kind: MIG, Count: huge}},
	} {
		t.Run(name, func(t *testing.T) {
			r := room(node("a", gpus(2)), node("b", migGPUs(2)), node("c", nil))
			set := &PodSet{Requests: requests}
			for _, spread := range []bool{false, true} {
				if _, _, ok := r.Pick(Search{Set: set, Spread: spread}); ok {
					t.Error("picked a node")
				}
			}
			for i := range r.Len() {
				_, took := r.Take(i, set)
				_, reserved := r.Reserve(i, set)
				if took || reserved || r.Capacity(i, set, huge) != 0 {
					t.Errorf("node %d takes it", i)
				}
			}
		})
	}
}
