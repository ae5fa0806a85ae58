package health

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// oracle is the obvious book of one GPU. It keeps everything it ever heard, and
// is read from the first event each time. It knows nothing of what the State
// forgets, or of the order in which it looks at things.
type oracle struct {
	p      Policy
	log    map[Cause][]int64 // every occurrence that counts for repeats
	class  map[Cause]Class   // worst class of what is open, or repaired and unvalidated
	repair map[Cause]Repair
	since  map[Cause]int64
	done   map[Cause]bool // repaired, waits for a validation
	boot   string
	ecc    uint64
	ready  bool // a clean reading came after the last repair
}

func replay(history []Event, p Policy) *oracle {
	o := &oracle{p: p, log: map[Cause][]int64{}, class: map[Cause]Class{}, repair: map[Cause]Repair{}, since: map[Cause]int64{}, done: map[Cause]bool{}}
	for _, e := range history {
		wasRecovering := o.phase() == PhaseRecovering
		o.take(e)
		if e.Kind == KindPoll && wasRecovering && o.phase() == PhaseRecovering {
			o.ready = true
		}
		if o.phase() != PhaseValidating {
			o.ready = false
		}
	}
	return o
}

func (o *oracle) take(e Event) {
	switch e.Kind {
	case KindXID:
		o.seen(XIDCause(e.XID), e.At)
	case KindECC:
		o.seen(CauseECC, e.At)
	case KindLost:
		o.seen(CauseLost, e.At)
	case KindSilent:
		o.seen(CauseUnmonitored, e.At)
	case KindReturned:
		o.over(CauseLost)
	case KindAnswering:
		o.over(CauseUnmonitored)
	case KindPoll:
		o.poll(e)
	case KindReset:
		o.ecc = 0
		o.fix(RepairQuiet, RepairReset)
	case KindBoot:
		if o.boot != "" && o.boot != e.Boot {
			o.ecc = 0
			o.fix(RepairQuiet, RepairReset, RepairReboot)
		}
		o.boot = e.Boot
	case KindClear:
		o.fix(allRepairs...)
		clear(o.log)
	case KindValidated:
		validating := o.phase() == PhaseValidating
		for c := range maps.Clone(o.class) {
			if o.done[c] && validating || !o.done[c] && (o.repair[c] == RepairValidate || o.repair[c] == RepairQuiet) {
				o.forget(c)
			}
		}
	case KindForget:
		if _, lost := o.class[CauseLost]; lost {
			boot := o.boot
			*o = *replay(nil, o.p)
			o.boot = boot
		}
	}
}

func (o *oracle) seen(c Cause, at int64) {
	rule := o.p.rule(c)
	apart := int64(1)
	if rule.Repair == RepairSignal {
		apart = 5
	}
	for _, t := range o.log[c] {
		if at-t < apart {
			return
		}
	}
	o.log[c] = append(o.log[c], at)
	class, repair := rule.Class, rule.Repair
	for _, r := range rule.Repeats {
		n := 0
		for _, t := range o.log[c] {
			if at-t < r.Within {
				n++
			}
		}
		if n >= r.Times {
			class, repair = r.Class, r.Repair
		}
	}
	old, open := o.class[c]
	switch {
	case class == ClassIgnore && !open:
		return
	case !open:
		o.since[c] = at
	}
	// What it was once called for stays called for.
	if !open || class.rank() > old.rank() || class == old && slices.Index(allRepairs, repair) > slices.Index(allRepairs, o.repair[c]) {
		o.class[c], o.repair[c] = class, repair
	}
	o.done[c] = false
}

func (o *oracle) poll(e Event) {
	flags := map[Cause]Flag{CauseLost: No, CauseUnmonitored: No, CauseRemapPending: e.Reading.RemapPending, CauseRemapFailed: e.Reading.RemapFailed}
	proven := Repair("")
	for _, a := range actions[1:] {
		c := actionCause(a)
		switch e.Reading.Action {
		case ActionUnread:
			continue
		case a:
			flags[c] = Yes
		case ActionNone:
			rule := o.p.rule(c)
			last, _ := rule.at(len(rule.Repeats))
			if o.class[c] == last && !o.done[c] && a.proves() != "" {
				proven = a.proves()
			}
			fallthrough
		default:
			flags[c] = No
		}
	}
	for c, f := range flags {
		switch f {
		case Yes:
			o.seen(c, e.At)
		case No:
			o.over(c)
		case Unread:
		}
	}
	if proven == RepairReset {
		o.fix(RepairQuiet, RepairReset)
	}
	if proven == RepairReboot {
		o.fix(RepairQuiet, RepairReset, RepairReboot)
	}
	if proven != "" {
		o.ecc = 0
	}
	if e.Reading.ECCRead {
		if e.Reading.Uncorrectable > o.ecc {
			o.seen(CauseECC, e.At)
		}
		o.ecc = e.Reading.Uncorrectable
	}
	for c := range maps.Clone(o.class) {
		if !o.done[c] && o.repair[c] == RepairQuiet && e.At-slices.Max(o.log[c]) >= defaultQuiet {
			o.end(c)
		}
	}
}

// fix ends every condition that needs one of these repairs.
func (o *oracle) fix(repairs ...Repair) {
	for c := range maps.Clone(o.class) {
		if slices.Contains(repairs, o.repair[c]) {
			o.end(c)
		}
	}
}

func (o *oracle) over(c Cause) {
	delete(o.log, c)
	o.end(c)
}

func (o *oracle) end(c Cause) {
	if o.class[c] == ClassNoExecute {
		o.done[c] = true
	} else {
		o.forget(c)
	}
}

func (o *oracle) forget(c Cause) {
	delete(o.class, c)
	delete(o.since, c)
	delete(o.done, c)
}

func (o *oracle) phase() Phase {
	phase := PhaseHealthy
	for c, class := range o.class {
		if class.rank() >= ClassNoSchedule.rank() && !o.done[c] {
			return PhaseSick
		}
		if o.done[c] {
			phase = PhaseRecovering
		}
	}
	if phase == PhaseRecovering && o.ready {
		phase = PhaseValidating
	}
	return phase
}

func (o *oracle) worst() Class {
	worst := ClassIgnore
	for _, class := range o.class {
		if class.rank() > worst.rank() {
			worst = class
		}
	}
	return worst
}

func worst(s State, p Policy) Class {
	taints := s.Taints(sick, p)
	switch {
	case len(taints) == 0:
		return ClassIgnore
	case taints[0].Key == KeyUnhealthy:
		return Class(taints[0].Effect)
	}
	return ClassFact
}

// drawHistory draws events of one GPU in the order of their time.
func drawHistory(t *rapid.T) []Event {
	kinds := []Kind{KindXID, KindXID, KindXID, KindPoll, KindPoll, KindPoll, KindECC, KindLost, KindReturned, KindSilent, KindAnswering, KindReset, KindBoot, KindValidated, KindClear, KindForget}
	xids := []uint64{13, 31, 43, 45, 48, 54, 63, 64, 74, 79, 94, 95, 119, 121, 136, 300, 301, 600}
	flag := rapid.SampledFrom([]Flag{Unread, No, No, Yes})
	var events []Event
	at := int64(1_000_000)
	for range rapid.IntRange(1, 60).Draw(t, "events") {
		at += rapid.SampledFrom([]int64{0, 1, 4, 5, 60, 599, 600, 3600, day}).Draw(t, "gap")
		e := Event{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), UUID: sick, At: at}
		switch e.Kind {
		case KindXID:
			e.XID = rapid.SampledFrom(xids).Draw(t, "xid")
		case KindBoot:
			e.UUID, e.Boot = "", rapid.SampledFrom([]string{"one", "two"}).Draw(t, "boot")
		case KindPoll:
			e.Reading = Reading{
				Action:       rapid.SampledFrom(append([]Action{ActionUnread, ActionNone, ActionNone, ActionNone}, actions...)).Draw(t, "action"),
				RemapPending: flag.Draw(t, "pending"), RemapFailed: flag.Draw(t, "failed"), ECCRead: rapid.Bool().Draw(t, "ecc"),
			}
			e.Reading.Uncorrectable = uint64(rapid.IntRange(0, 3).Draw(t, "uncorrectable"))
		default:
		}
		events = append(events, e)
	}
	return events
}

func drawPolicy(t *rapid.T) Policy {
	class := func() Class { return rapid.SampledFrom(allClasses).Draw(t, "class") }
	repair := func() Repair { return rapid.SampledFrom(allRepairs[1:]).Draw(t, "repair") }
	var overrides []Override
	for _, c := range []Cause{"xid-31", "xid-54", "xid-79", CauseOtherXID} {
		if rapid.IntRange(0, 3).Draw(t, "override") == 0 {
			overrides = append(overrides, Override{Cause: c, Class: class(), Repair: repair()})
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "override") == 0 {
		overrides = append(overrides, Override{Cause: CauseLost, Class: class()})
	}
	p, err := NewPolicy(0, overrides)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAgainstTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, history := drawPolicy(t), drawHistory(t)
		var s State
		for i, e := range history {
			s = Step(s, e, p)
			o := replay(history[:i+1], p)
			if got, want := s.Phase(sick, p), o.phase(); got != want {
				t.Fatalf("after %+v: the phase is %s, want %s", e, got, want)
			}
			if got, want := worst(s, p), o.worst(); got != want {
				t.Fatalf("after %+v: the worst class is %s, want %s", e, got, want)
			}
			open := map[Cause]int64{}
			for _, c := range s.Conditions(sick) {
				if c.open() {
					open[c.Cause] = c.Since
				}
			}
			if !maps.Equal(open, o.since) {
				t.Fatalf("after %+v: open are %v, want %v", e, open, o.since)
			}
		}
	})
}

// What must hold after every single step.
func TestStepsKeepTheirPromises(t *testing.T) {
	key, value := regexp.MustCompile(`^gpu\.fairshard\.dev/[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$`), regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,61}[A-Za-z0-9]$`)
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		var s State
		last := map[Taint]int64{} // Since of a taint when it was seen last
		for _, e := range drawHistory(t) {
			before := encode(t, s)
			next := Step(s, e, p)
			if !bytes.Equal(before, encode(t, s)) {
				t.Fatal("Step changed the state it was given")
			}
			was, is := worst(s, p), worst(next, p)
			if was == ClassNoExecute && is != was && e.Kind != KindValidated && e.Kind != KindForget {
				t.Fatalf("%+v ended NoExecute without a validation", e)
			}
			if is.rank() < was.rank() && slices.Contains([]Kind{KindXID, KindECC, KindLost, KindSilent}, e.Kind) {
				t.Fatalf("%+v made %s of %s", e, is, was)
			}
			taints := next.Taints(sick, p)
			if len(taints) > MaxTaints || !slices.Equal(taints, next.Taints(sick, p)) {
				t.Fatalf("taints are too many or change: %v", taints)
			}
			for _, taint := range taints {
				name := Taint{taint.Key, taint.Value, taint.Effect, 0}
				if !key.MatchString(taint.Key) || !value.MatchString(taint.Value) {
					t.Fatalf("%+v is not valid", taint)
				}
				if taint.Since < last[name] {
					t.Fatalf("after %+v: %+v was since %d", e, taint, last[name])
				}
				last[name] = taint.Since
			}
			old := map[Cause]Condition{}
			for _, c := range s.Conditions(sick) {
				old[c.Cause] = c
			}
			for _, c := range next.Conditions(sick) {
				o := old[c.Cause]
				if e.Kind == KindPoll && e.Reading.Action == ActionNone {
					continue // it may prove a reset, after which errors are new ones
				}
				if o.Status != "" && o.open() && c.open() && (o.Since != c.Since || o.Raised != c.Raised && o.class(p) == c.class(p)) {
					t.Fatalf("after %+v: %+v became %+v", e, o, c)
				}
			}
			s = next
		}
	})
}

func TestThereIsAlwaysAShortWayBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		var s State
		var at int64
		for _, e := range drawHistory(t) {
			s, at = Step(s, e, p), e.At
		}
		for _, e := range []Event{of(KindClear, at+1), clean(at + 2), clean(at + 3), of(KindValidated, at+4)} {
			e.UUID = sick
			s = Step(s, e, p)
		}
		if verdict, text := s.Health(sick, p); verdict != Healthy || len(s.Taints(sick, p)) != 0 {
			t.Fatalf("it is %s: %s", verdict, text)
		}
	})
}

func TestTheOrderBetweenGPUsIsIrrelevant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		streams := map[string][]Event{}
		for _, uuid := range []string{"a", "b", "c"} {
			for _, e := range drawHistory(t) {
				if e.UUID = uuid; e.Kind != KindBoot {
					streams[uuid] = append(streams[uuid], e)
				}
			}
		}
		var one, mixed State
		for _, uuid := range []string{"a", "b", "c"} {
			for _, e := range streams[uuid] {
				one = Step(one, e, Policy{})
			}
		}
		for len(streams) > 0 {
			uuid := rapid.SampledFrom(slices.Sorted(maps.Keys(streams))).Draw(t, "next")
			if mixed = Step(mixed, streams[uuid][0], Policy{}); len(streams[uuid]) == 1 {
				delete(streams, uuid)
			} else {
				streams[uuid] = streams[uuid][1:]
			}
		}
		if !bytes.Equal(encode(t, one), encode(t, mixed)) {
			t.Fatalf("got %s, want %s", encode(t, mixed), encode(t, one))
		}
	})
}

func TestRestartsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		var through, restarted State
		for _, e := range drawHistory(t) {
			through, restarted = Step(through, e, p), Step(restarted, e, p)
			again, err := Decode(encode(t, restarted))
			if err != nil {
				t.Fatal(err)
			}
			if restarted = again; !bytes.Equal(encode(t, through), encode(t, restarted)) {
				t.Fatalf("got %s, want %s", encode(t, restarted), encode(t, through))
			}
		}
	})
}

func encode(t *rapid.T, s State) []byte {
	content, err := Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestAMillionEventsDoNotGrowTheState(t *testing.T) {
	var s State
	random := rand.New(rand.NewPCG(1, 2))
	size := func() int { return len(encoded(t, s)) }
	xids := []uint64{13, 31, 54, 63, 74, 79, 119, 300}
	var at int64
	run := func(n int) {
		for range n {
			at += int64(random.IntN(3))
			e := Event{Kind: KindXID, UUID: sick, At: at, XID: xids[random.IntN(len(xids))]}
			if random.IntN(4) == 0 {
				e = Event{Kind: KindPoll, UUID: sick, At: at, Reading: Reading{Action: actions[random.IntN(len(actions))]}}
			}
			s = Step(s, e, Policy{})
		}
	}
	run(10_000)
	small := size()
	run(990_000)
	if size() > small+small/2 {
		t.Errorf("the state grew from %d to %d bytes", small, size())
	}
}

func TestConditionsAreBounded(t *testing.T) {
	var s State
	for code := range uint64(3000) {
		s = Step(s, Event{Kind: KindXID, UUID: sick, At: 1, XID: code}, Policy{})
	}
	for _, kind := range []Kind{KindECC, KindLost, KindSilent} {
		s = Step(s, Event{Kind: kind, UUID: sick, At: 2}, Policy{})
	}
	conditions, taints := s.Conditions(sick), s.Taints(sick, Policy{})
	if len(conditions) > MaxConditions || len(taints) != MaxTaints {
		t.Errorf("%d conditions, %d taints", len(conditions), len(taints))
	}
	if taints[0].Effect != "NoExecute" {
		t.Errorf("the worst is not first: %v", taints)
	}
	if all := maxXID + len(factRows); all != MaxConditions {
		t.Errorf("there are %d causes, but MaxConditions is %d", all, MaxConditions)
	}
}
