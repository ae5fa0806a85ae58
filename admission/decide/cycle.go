package decide

import (
	"time"

	"github.com/fairshard/fairshard/admission/snapshot"
)

// Cycle decides what to do with every workload of s, which must be sorted.
// The same snapshot, policy and time give the same decisions, byte for byte.
func Cycle(s snapshot.Snapshot, policy Policy, now time.Time) []Decision {
	p := newPlanner(&s, policy, now.UnixNano())
	p.settle()
	p.keepPromises()
	p.allocate()
	p.makeRoom()
	p.endStaleGangs()
	p.explainWaiting()
	return p.decisions()
}

// makeRoom lets others give way for work that still waits. It goes on until a
// round changes nothing; every round that changes something settles at least
// one workload for the rest of the cycle, so there are at most as many as
// workloads.
func (p *planner) makeRoom() {
	for range len(p.jobs) + 1 {
		if !p.round() {
			return
		}
		// Who was evicted may fit into what is left over.
		p.allocate()
	}
}

// round tries everything that waits once per rule. Moves come first for work
// within its fair share, because nobody loses anything; for borrowers they come
// last, because what is freed for them might have to be given back at once.
func (p *planner) round() bool {
	changed := p.each(p.consolidateWithin)
	changed = p.each(p.reclaim) || changed
	changed = p.each(p.preempt) || changed
	return p.each(p.consolidate) || changed
}

// each calls try for everything that waits, the least served queue first, and
// reports whether one succeeded.
func (p *planner) each(try func(ask) bool) bool {
	line := p.newLine()
	p.line = line
	changed := false
	for a, more := line.next(); more; a, more = line.next() {
		switch {
		case p.freed && p.start(a) || try(a):
			changed = true
			line.pop(false)
			line.refresh(p.touched)
			p.touched = p.touched[:0]
			if more, grows := p.grows(a); grows {
				line.insert(more)
			}
		case p.strict(a):
			line.skipQueue()
		default:
			line.pop(true)
		}
	}
	line.close()
	return changed
}
