package health

import (
	"cmp"
	"maps"
	"slices"
)

// How many seconds two occurrences must be apart to count as two. The same XID in
// the same second is one that was reported on two ways, or read again from a log.
const (
	apartSignals = 5
	apartXIDs    = 1
)

// Step returns what follows from e. A clock that jumps can only keep a condition
// open for longer.
func Step(s State, e Event, p Policy) State {
	if e.Kind == KindBoot {
		return s.booted(e, p)
	}
	if e.UUID == "" {
		return s
	}
	return s.with(e.UUID, stepGPU(s.gpus[e.UUID], e, p))
}

// booted closes what a reboot repairs. The first boot ID is only remembered: what
// happened before it is not known.
func (s State) booted(e Event, p Policy) State {
	if e.Boot == "" || e.Boot == s.boot {
		return s
	}
	next := State{boot: e.Boot, gpus: s.gpus}
	if s.boot != "" {
		for _, uuid := range s.UUIDs() {
			next = next.with(uuid, stepGPU(s.gpus[uuid], e, p))
		}
	}
	return next
}

func (s State) with(uuid string, g gpu) State {
	gpus := maps.Clone(s.gpus)
	if gpus == nil {
		gpus = map[string]gpu{}
	}
	if gpus[uuid] = g; g.ECC == 0 && len(g.Conditions) == 0 {
		delete(gpus, uuid)
	}
	return State{boot: s.boot, gpus: gpus}
}

func stepGPU(g gpu, e Event, p Policy) gpu {
	before := g.phase(p)
	g.Conditions = slices.Clone(g.Conditions) // their Times are only replaced
	switch e.Kind {
	case KindXID:
		g.seen(XIDCause(e.XID), e, p)
	case KindECC:
		g.seen(CauseECC, e, p)
	case KindPoll:
		g.polled(e, p)
	case KindLost:
		g.seen(CauseLost, e, p)
	case KindReturned:
		g.over(CauseLost, p)
	case KindSilent:
		g.seen(CauseUnmonitored, e, p)
	case KindAnswering:
		g.over(CauseUnmonitored, p)
	case KindReset:
		g.ECC = 0
		g.repaired(RepairReset, p)
	case KindBoot:
		g.ECC = 0
		g.repaired(RepairReboot, p)
	case KindValidated:
		g.validated(before, p)
	case KindClear:
		g.cleared(p)
	case KindForget:
		if i, found := g.find(CauseLost); found && g.Conditions[i].open() {
			return gpu{}
		}
	}
	g.settle(p)
	// The reading that ends a signal does not confirm itself: the next one does.
	if e.Kind == KindPoll && before == PhaseRecovering && g.phase(p) == PhaseRecovering {
		g.Confirmed = true
	}
	return g
}

// seen records an occurrence of cause, and opens the condition or makes it worse
// as its rule says.
func (g *gpu) seen(cause Cause, e Event, p Policy) {
	rule := p.rule(cause)
	at, found := g.find(cause)
	if !found {
		if rule.Class == ClassIgnore && len(rule.Repeats) == 0 {
			return
		}
		g.Conditions = slices.Insert(g.Conditions, at, Condition{Cause: cause, Status: StatusWatched})
	}
	c := &g.Conditions[at]
	signal := rule.Repair == RepairSignal
	if c.repeated(e.At, signal) || signal && c.Status == StatusOpen && c.Level >= len(rule.Repeats) {
		return
	}
	before := c.class(p)
	wasOpen := c.open()
	c.count(e.At, rule)
	class := c.class(p)
	instance := e.Instance
	if rule.Scope == ScopeGPU {
		instance = ""
	}
	switch {
	case class == ClassIgnore:
		return
	case !wasOpen:
		c.Since, c.Raised, c.Instance = e.At, e.At, instance
	case class != before:
		c.Raised = e.At
	}
	if c.Instance != instance {
		c.Instance = "" // two instances of one GPU: its whole
	}
	c.Status = StatusOpen
}

// repeated reports whether an occurrence at this time is one that c knows.
func (c *Condition) repeated(at int64, signal bool) bool {
	apart := int64(apartXIDs)
	if signal {
		apart = apartSignals
	}
	return slices.ContainsFunc(c.Times, func(t int64) bool { return max(t-at, at-t) < apart })
}

// count adds an occurrence and raises the level to what the repeats of rule say.
func (c *Condition) count(at int64, rule Rule) {
	times := append(slices.Clone(c.Times), at)
	slices.Sort(times)
	c.Times = times[max(0, len(times)-keptTimes):]
	for i, repeat := range rule.Repeats {
		recent := 0
		for _, t := range c.Times {
			if t > at-repeat.Within {
				recent++
			}
		}
		if recent >= repeat.Times {
			c.Level = max(c.Level, i+1)
		}
	}
}

// polled takes over a reading: the GPU is there, it answers, and every signal
// that was read holds or is over.
func (g *gpu) polled(e Event, p Policy) {
	g.over(CauseLost, p)
	g.over(CauseUnmonitored, p)
	r := e.Reading
	g.signal(CauseRemapPending, r.RemapPending, e, p)
	g.signal(CauseRemapFailed, r.RemapFailed, e, p)
	if slices.Contains(actions, r.Action) {
		g.action(e, p)
	}
	if r.ECCRead {
		if r.Uncorrectable > g.ECC {
			g.seen(CauseECC, e, p)
		}
		g.ECC = r.Uncorrectable
	}
	for i := range g.Conditions {
		c := &g.Conditions[i]
		if c.Status == StatusOpen && c.repair(p) == RepairQuiet && c.quietFor(e.At) >= p.quietTime() {
			c.close(p)
		}
	}
	g.Conditions = slices.DeleteFunc(g.Conditions, func(c Condition) bool {
		return !c.open() && c.quietFor(e.At) >= max(p.quietTime(), p.rule(c.Cause).horizon())
	})
}

func (g *gpu) signal(cause Cause, f Flag, e Event, p Policy) {
	switch f {
	case Yes:
		g.seen(cause, e, p)
	case No:
		g.over(cause, p)
	case Unread:
	}
}

// action takes over what the driver wants. That it wanted a reset, and now wants
// nothing, is how most resets are noticed.
func (g *gpu) action(e Event, p Policy) {
	for _, a := range actions[1:] {
		cause := actionCause(a)
		if a == e.Reading.Action {
			g.seen(cause, e, p)
			continue
		}
		i, found := g.find(cause)
		// A single misreading that is over proves nothing.
		confirmed := found && g.Conditions[i].Status == StatusOpen && g.Conditions[i].Level >= len(p.rule(cause).Repeats)
		g.over(cause, p)
		if did := a.proves(); did != "" && confirmed && e.Reading.Action == ActionNone {
			g.ECC = 0
			g.repaired(did, p)
		}
	}
}

// quietFor is how many seconds ago c was seen last.
func (c *Condition) quietFor(at int64) int64 {
	if len(c.Times) == 0 {
		return maxSeconds
	}
	return at - c.Times[len(c.Times)-1]
}

// over closes the condition of a signal. Its readings are forgotten, so that the
// next time it has to be read as often again.
func (g *gpu) over(cause Cause, p Policy) {
	if i, found := g.find(cause); found {
		g.Conditions[i].Times = nil
		g.Conditions[i].close(p)
	}
}

// repaired closes every open condition that did repairs.
func (g *gpu) repaired(did Repair, p Policy) {
	for i := range g.Conditions {
		if g.Conditions[i].repair(p).doneBy(did) {
			g.Conditions[i].close(p)
		}
	}
}

// validated ends the way back, if it was at its end. A validation that was
// overtaken by a new fault closes only what asks for no more.
func (g *gpu) validated(before Phase, p Policy) {
	for i := range g.Conditions {
		c := &g.Conditions[i]
		if c.Status == StatusRepaired && before == PhaseValidating ||
			c.Status == StatusOpen && c.repair(p).doneBy(RepairValidate) {
			c.watch()
		}
	}
}

// cleared closes everything and forgets the history. What still holds is seen
// again at the next reading.
func (g *gpu) cleared(p Policy) {
	for i := range g.Conditions {
		g.Conditions[i].Times = nil
		g.Conditions[i].close(p)
	}
}

// close ends c, or leaves it to a validation if it evicted.
func (c *Condition) close(p Policy) {
	switch {
	case c.Status != StatusOpen:
	case c.class(p) == ClassNoExecute:
		c.Status = StatusRepaired
	default:
		c.watch()
	}
}

func (c *Condition) watch() {
	*c = Condition{Cause: c.Cause, Status: StatusWatched, Times: c.Times}
}

// settle drops what says nothing any more, also because the policy is another
// than before.
func (g *gpu) settle(p Policy) {
	for i := range g.Conditions {
		c := &g.Conditions[i]
		class := c.class(p)
		if class == ClassIgnore || c.Status == StatusRepaired && class != ClassNoExecute {
			c.watch()
		}
	}
	g.Conditions = slices.DeleteFunc(g.Conditions, func(c Condition) bool { return !c.open() && len(c.Times) == 0 })
	g.Confirmed = g.Confirmed && g.phase(p) == PhaseValidating
}

// find returns where the condition of cause is, or belongs.
func (g *gpu) find(cause Cause) (int, bool) {
	return slices.BinarySearchFunc(g.Conditions, cause, func(c Condition, want Cause) int {
		return cmp.Compare(c.Cause, want)
	})
}
