package simulate

import (
	"strings"
	"testing"
	"time"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/admission/snapshot"
)

func TestBadDumpsAreRefused(t *testing.T) {
	good, err := Dump{}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":          {"", "EOF"},
		"an unknown field": {`{"version":1,"color":"red"}`, "unknown field"},
		"another version":  {`{"version":2}`, "version 2, this program reads 1"},
		"text after it":    {string(good) + "x", "text after the end"},
	} {
		if _, err := DecodeDump([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
	if _, err := DecodeDump(good); err != nil {
		t.Error(err)
	}
}

func TestReplayShowsWhatDiffers(t *testing.T) {
	made := func(kinds ...decide.Kind) []decide.Decision {
		var out []decide.Decision
		for _, kind := range kinds {
			out = append(out, decide.Decision{Kind: kind, Workload: "w"})
		}
		return out
	}
	for name, tc := range map[string]struct {
		was, is []decide.Decision
		want    []string
	}{
		"the same":       {made(decide.Start), made(decide.Start), nil},
		"another kind":   {made(decide.Start), made(decide.Hold), []string{"decision 1 was"}},
		"one more":       {made(decide.Start), made(decide.Start, decide.Hold), []string{"decision 2 is new"}},
		"one is missing": {made(decide.Start, decide.Hold), made(decide.Start), []string{"decision 2 was"}},
	} {
		got, err := Replay(Dump{Decisions: tc.was}, func(snapshot.Snapshot, decide.Policy, time.Time) []decide.Decision { return tc.is })
		if err != nil || len(got) != len(tc.want) {
			t.Errorf("%s: %v %v", name, got, err)
			continue
		}
		for i := range got {
			if !strings.HasPrefix(got[i], tc.want[i]) {
				t.Errorf("%s: %s", name, got[i])
			}
		}
	}
}

// Whatever can be read as a dump can be decided on without a panic.
func FuzzDecodeDump(f *testing.F) {
	s := snapshot.Snapshot{
		Nodes:     []snapshot.Node{{Name: "n", Pool: "p", Schedulable: true, GPUs: []snapshot.GPU{{UUID: "g", Usable: 80, Healthy: true}}}},
		Queues:    []snapshot.Queue{{Name: "q", Pool: "p", Deserved: 1000, Limit: 5000, Weight: 1000}},
		Workloads: []snapshot.Workload{{Name: "w", Queue: "q", PodSets: []snapshot.PodSet{{Count: 1, Charge: 1000, Requests: []snapshot.Request{{Count: 1}}}}}},
	}
	text, err := Dump{Snapshot: s, Policy: decide.Defaults()}.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Fuzz(func(t *testing.T, text string) {
		d, err := DecodeDump([]byte(text))
		if err != nil || tooLarge(d) {
			return
		}
		if _, err := Replay(d, decide.Cycle); err != nil {
			t.Fatal(err)
		}
	})
}

// tooLarge keeps absurd counts from taking the fuzzer's time; the planner itself
// is bounded by them.
func tooLarge(d Dump) bool {
	for _, w := range d.Snapshot.Workloads {
		for _, set := range w.PodSets {
			n := set.Count
			for _, r := range set.Requests {
				n = max(n, r.Count)
			}
			if n > 1000 {
				return true
			}
		}
	}
	return len(d.Snapshot.Workloads) > 100
}
