package controller

import (
	"net/http"
	"sync"
	"time"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/admission/simulate"
	"github.com/fairshard/fairshard/admission/snapshot"
)

// dumpPath is where the metrics server gives the last cycle's input.
const dumpPath = "/debug/snapshot"

// dump keeps the last cycle for `kubectl-fairshard replay`.
type dump struct {
	mu   sync.Mutex
	last simulate.Dump // guarded by mu; its parts are never changed
}

func (d *dump) keep(now time.Time, policy decide.Policy, s snapshot.Snapshot, decisions []decide.Decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = simulate.Dump{Now: now.UnixNano(), Policy: policy, Snapshot: s, Decisions: decisions}
}

// ServeHTTP writes the last cycle as JSON.
func (d *dump) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	d.mu.Lock()
	last := d.last
	d.mu.Unlock()
	text, err := last.Encode()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // the reader went away: nothing to do
}
