package scenarios_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/admission/scenario"
	"github.com/fairshard/fairshard/admission/simulate"
)

// load reads all scenarios of this folder.
func load(t *testing.T) []simulate.Scenario {
	t.Helper()
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	var all []simulate.Scenario
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		list, err := scenario.Parse(file, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			if s.Name+".yaml" != file {
				t.Errorf("%s holds scenario %s", file, s.Name)
			}
			all = append(all, s)
		}
	}
	return all
}

func TestScenarios(t *testing.T) {
	for _, s := range load(t) {
		t.Run(s.Name, func(t *testing.T) {
			r := simulate.Run(s, decide.Cycle)
			for _, mismatch := range r.Mismatches {
				t.Error(mismatch)
			}
			if !r.Stable || r.Cycles > 3 && s.Policy.Evictions < 0 {
				t.Errorf("stable %t after %d cycles", r.Stable, r.Cycles)
			}
		})
	}
}

// The same where evicted pods take a while to leave.
func TestScenariosWhereEvictionsTakeTime(t *testing.T) {
	for _, s := range load(t) {
		t.Run(s.Name, func(t *testing.T) {
			s.ReleaseCycles = 2
			r := simulate.Run(s, decide.Cycle)
			for _, mismatch := range r.Mismatches {
				t.Error(mismatch)
			}
		})
	}
}

// The plan of the first cycle holds: what comes to the same end in two cycles
// would have promised a place that is not free.
func TestWhatIsMovedNeedsCPUToo(t *testing.T) {
	all := load(t)
	at := slices.IndexFunc(all, func(s simulate.Scenario) bool { return s.Name == "what-is-moved-needs-cpu-too" })
	if at < 0 {
		t.Fatal("the scenario is missing")
	}
	var evicted []string
	for _, d := range decisions(all[at]) {
		if d.Kind == decide.Evict {
			evicted = append(evicted, d.Workload)
		}
	}
	if !slices.Equal(evicted, []string{"greedy", "mover"}) {
		t.Errorf("the first cycle evicts %v", evicted)
	}
}

// Every cycle of every scenario can be dumped, read back, and decides the same.
func TestADumpReplays(t *testing.T) {
	for _, s := range load(t) {
		d := simulate.Dump{Now: s.Now, Policy: s.Policy, Snapshot: s.Snapshot}
		if differ, err := simulate.Replay(d, decide.Cycle); err != nil {
			t.Fatal(err)
		} else if len(differ) == 0 && len(s.Snapshot.Workloads) > 0 && !s.FairShareOnly {
			t.Fatalf("%s: no decisions equal those that were made", s.Name)
		}
		d.Decisions = decisions(s)
		text, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := simulate.DecodeDump(text)
		if err != nil {
			t.Fatal(err)
		}
		differ, err := simulate.Replay(back, decide.Cycle)
		if err != nil || len(differ) > 0 {
			t.Fatalf("%s: %v %v", s.Name, differ, err)
		}
		again, err := back.Encode()
		if err != nil || !bytes.Equal(text, again) {
			t.Fatalf("%s: a dump changes when it is read and written: %v", s.Name, err)
		}
		if !json.Valid(text) {
			t.Fatal("not JSON")
		}
	}
}

func decisions(s simulate.Scenario) []decide.Decision {
	return decide.Cycle(s.Snapshot, s.Policy, time.Unix(0, s.Now))
}
