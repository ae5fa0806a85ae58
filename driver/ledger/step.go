package ledger

import (
	"maps"
	"slices"

	"github.com/fairshard/fairshard/classes/quantity"
)

// State is every claim of the node, and what its GPUs offer. The zero value is
// a node without GPUs and claims. A State is never changed, only replaced.
type State struct {
	usable  map[string]quantity.Bytes // GPU UUID -> bytes for claims
	entries map[string]Entry          // claim UID -> entry
}

// Entry returns the claim with that UID.
func (s State) Entry(uid string) (Entry, bool) {
	e, ok := s.entries[uid]
	return e, ok
}

// Entries returns every claim, sorted by UID.
func (s State) Entries() []Entry {
	entries := make([]Entry, 0, len(s.entries))
	for _, uid := range slices.Sorted(maps.Keys(s.entries)) {
		entries = append(entries, s.entries[uid])
	}
	return entries
}

// Step returns what follows from event, and what has to be done. The effects of
// one claim must be run in order, up to the first that fails, and then be
// answered with Prepared, Unprepared or Failed.
func Step(s State, event Event) (State, []Effect) {
	switch e := event.(type) {
	case GPUs:
		return State{usable: maps.Clone(e.Usable), entries: s.entries}, nil
	case Prepare:
		return s.prepare(e.Claim)
	case Prepared:
		return s.prepared(e.UID), nil
	case Unprepare:
		// A claim that is not known may still have files: removing none is fine.
		return s, removal(e.UID)
	case Unprepared:
		return s.without(e.UID), nil
	case Failed:
		// What was reserved stays reserved: files of the claim may be there. The
		// kubelet tries again, or unprepares.
		return s, nil
	case Recover:
		return s.recovered(e)
	}
	return s, nil
}

func (s State) prepare(c Claim) (State, []Effect) {
	old, known := s.entries[c.UID]
	if known && old.Phase == PhasePrepared {
		return s.prepareAgain(old.Claim, c)
	}
	if refusal, ok := s.check(c); !ok {
		return s, []Effect{{Op: Refuse, Claim: c, Refusal: refusal}}
	}
	next := s.with(Entry{Claim: c, Phase: PhasePreparing})
	return next, script(c, SaveIntent, WriteLimits, WriteCDI, SaveDone)
}

// prepareAgain checks the files of a claim that was answered before: the CDI
// folder does not survive a reboot. Only the minor number of a GPU may differ.
func (s State) prepareAgain(old, c Claim) (State, []Effect) {
	if !old.SameAllocation(c) {
		return s, []Effect{{Op: Refuse, Claim: c, Refusal: Refusal{Why: AllocationChanged}}}
	}
	for i, d := range c.Devices {
		if d.UUID != old.Devices[i].UUID {
			return s, []Effect{{Op: Refuse, Claim: c, Refusal: Refusal{Why: GPUChanged, Device: d.Name, UUID: d.UUID}}}
		}
	}
	if old.Equal(c) {
		return s, script(c, WriteLimits, WriteCDI)
	}
	return s.with(Entry{Claim: c, Phase: PhasePrepared}), script(c, WriteLimits, WriteCDI, SaveDone)
}

func (s State) prepared(uid string) State {
	e, ok := s.entries[uid]
	if !ok || e.Phase != PhasePreparing {
		return s
	}
	e.Phase = PhasePrepared
	return s.with(e)
}

// recovered takes over the records, completes what a crash or reboot left open,
// and removes the files that no record speaks for.
func (s State) recovered(found Recover) (State, []Effect) {
	var effects []Effect
	next := State{usable: s.usable, entries: map[string]Entry{}}
	for _, e := range found.Records {
		next.entries[e.Claim.UID] = e
		if e.Phase == PhasePrepared {
			effects = append(effects, script(e.Claim, WriteLimits, WriteCDI)...)
		}
	}
	for _, uid := range sorted(found.Damaged) {
		_, known := next.entries[uid]
		_, hasLimits := found.Limits[uid]
		// Limits and CDI file are written before a claim is answered: without
		// them no container can have got it, and it holds nothing.
		if known || !hasLimits && !slices.Contains(found.CDI, uid) {
			continue
		}
		c := FromLimits(found.Limits[uid])
		c.UID = uid
		next.entries[uid] = Entry{Claim: c, Phase: PhaseLost}
		effects = append(effects, Effect{Op: SaveLost, Claim: c})
	}
	for _, uid := range sorted(append(slices.Collect(maps.Keys(found.Limits)), found.CDI...)) {
		if _, known := next.entries[uid]; !known {
			effects = append(effects, removal(uid)...)
		}
	}
	return next, effects
}

func (s State) with(e Entry) State {
	entries := maps.Clone(s.entries)
	if entries == nil {
		entries = map[string]Entry{}
	}
	entries[e.Claim.UID] = e
	return State{usable: s.usable, entries: entries}
}

func (s State) without(uid string) State {
	entries := maps.Clone(s.entries)
	delete(entries, uid)
	return State{usable: s.usable, entries: entries}
}

func script(c Claim, ops ...Op) []Effect {
	effects := make([]Effect, len(ops))
	for i, op := range ops {
		effects[i] = Effect{Op: op, Claim: c}
	}
	return effects
}

// removal takes the record away last: while there is one, a crash is noticed.
func removal(uid string) []Effect {
	return script(Claim{UID: uid}, RemoveCDI, RemoveLimits, RemoveRecord)
}

func sorted(uids []string) []string {
	slices.Sort(uids)
	return slices.Compact(uids)
}
