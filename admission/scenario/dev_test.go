package scenario

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/admission/simulate"
)

func TestDev(t *testing.T) {
	files, _ := filepath.Glob(os.Getenv("SCENARIOS"))
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			text, _ := os.ReadFile(f)
			list, err := Parse(f, text)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range list {
				r := simulate.Run(s, decide.Cycle)
				for _, m := range r.Mismatches {
					t.Error(m)
				}
				if len(r.Mismatches) > 0 || os.Getenv("V") != "" {
					for _, d := range r.Decisions {
						t.Logf("%+v", d)
					}
					for _, q := range r.Queues {
						t.Logf("%+v", q)
					}
					for _, w := range r.Workloads {
						t.Logf("%+v", w)
					}
				}
			}
		})
	}
}
