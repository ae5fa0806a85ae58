package health

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const sick = "GPU-a"

// node runs events on one state and answers questions about the GPU "sick".
type node struct {
	t *testing.T
	s State
	p Policy
}

func newNode(t *testing.T, overrides ...Override) *node {
	t.Helper()
	p, err := NewPolicy(0, overrides)
	if err != nil {
		t.Fatal(err)
	}
	return &node{t: t, p: p}
}

func (n *node) do(events ...Event) *node {
	for _, e := range events {
		if e.UUID == "" && e.Kind != KindBoot {
			e.UUID = sick
		}
		n.s = Step(n.s, e, n.p)
	}
	return n
}

// effect is the effect and cause of the taint that matters: "NoExecute xid-79", or "".
func (n *node) effect() string {
	for _, taint := range n.s.Taints(sick, n.p) {
		if taint.Key == KeyUnhealthy {
			return taint.Effect + " " + taint.Value
		}
	}
	return ""
}

// facts are the keys of the taints without effect, in their order.
func (n *node) facts() string {
	var keys []string
	for _, taint := range n.s.Taints(sick, n.p) {
		if taint.Effect == "None" {
			keys = append(keys, strings.TrimPrefix(taint.Key, "gpu.fairshard.dev/"))
		}
	}
	return strings.Join(keys, " ")
}

func (n *node) want(step, effect string, phase Phase) {
	n.t.Helper()
	if got := n.effect(); got != effect {
		n.t.Errorf("%s: the effect is %q, want %q", step, got, effect)
	}
	if got := n.s.Phase(sick, n.p); got != phase {
		n.t.Errorf("%s: the phase is %s, want %s", step, got, phase)
	}
}

func xid(at int64, code uint64) Event { return Event{Kind: KindXID, At: at, XID: code} }
func of(kind Kind, at int64) Event    { return Event{Kind: kind, At: at} }
func boot(at int64, id string) Event  { return Event{Kind: KindBoot, At: at, Boot: id} }

// clean is the reading of a GPU without any fault.
func clean(at int64) Event {
	return Event{Kind: KindPoll, At: at, Reading: Reading{Action: ActionNone, RemapPending: No, RemapFailed: No, ECCRead: true}}
}

func wants(at int64, a Action) Event {
	e := clean(at)
	e.Reading.Action = a
	return e
}

func repeat(n int, every int64, e Event) []Event {
	var events []Event
	for range n {
		events = append(events, e)
		e.At += every
	}
	return events
}

func TestWhatAnEventMeans(t *testing.T) {
	pending, failed := clean(10), clean(10)
	pending.Reading.RemapPending, failed.Reading.RemapFailed = Yes, Yes
	ecc := clean(10)
	ecc.Reading.Uncorrectable = 4
	for name, c := range map[string]struct {
		events        []Event
		effect, facts string
	}{
		"nothing":                               {nil, "", ""},
		"a clean reading":                       {[]Event{clean(1)}, "", ""},
		"an illegal access":                     {[]Event{xid(1, 31)}, "", ""},
		"two illegal accesses":                  {repeat(2, 60, xid(1, 13)), "", ""},
		"three illegal accesses in a day":       {repeat(3, 60, xid(1, 13)), "", "xid-13"},
		"three illegal accesses in three days":  {repeat(3, 50000, xid(1, 31)), "", ""},
		"three reports of one second":           {repeat(3, 0, xid(1, 31)), "", ""},
		"thousands of 45":                       {repeat(5000, 1, xid(1, 45)), "", ""},
		"43 for ever":                           {repeat(100, 1, xid(1, 43)), "", ""},
		"a contained error":                     {repeat(9, 60, xid(1, 94)), "", ""},
		"a changed recovery action alone":       {[]Event{xid(1, 154)}, "", ""},
		"an XID without a row":                  {[]Event{xid(1, 300)}, "", "xid-300"},
		"an XID beyond all":                     {[]Event{xid(1, 70000), xid(2, 0)}, "", "xid-other"},
		"a recorded remap":                      {[]Event{xid(1, 63)}, "", "xid-63"},
		"off the bus":                           {[]Event{xid(1, 79)}, "NoExecute xid-79", "xid-79"},
		"context switch timeout":                {[]Event{xid(1, 109)}, "NoExecute xid-109", "xid-109"},
		"uncontained error":                     {[]Event{xid(1, 95)}, "NoExecute xid-95", "xid-95"},
		"power cable":                           {[]Event{xid(1, 54)}, "NoSchedule xid-54", "xid-54"},
		"one NVLink error":                      {[]Event{xid(1, 74)}, "", "xid-74"},
		"two NVLink errors":                     {repeat(2, 60, xid(1, 74)), "NoSchedule xid-74", "xid-74"},
		"a remap waits":                         {[]Event{pending}, "", "remap-pending"},
		"a remap failed":                        {[]Event{failed}, "NoSchedule remap-failed", "remap-failed"},
		"uncorrectable errors":                  {[]Event{ecc, ecc}, "", "ecc"},
		"uncorrectable errors, reported thrice": {repeat(3, 60, of(KindECC, 1)), "NoSchedule ecc", "ecc"},
		"one reading of reset":                  {[]Event{wants(1, ActionReset)}, "", "recovery-gpu-reset"},
		"two readings too close":                {repeat(2, 2, wants(1, ActionReset)), "", "recovery-gpu-reset"},
		"two readings of reset":                 {repeat(2, 5, wants(1, ActionReset)), "NoExecute recovery-gpu-reset", "recovery-gpu-reset"},
		"two readings of reboot":                {repeat(2, 5, wants(1, ActionReboot)), "NoExecute recovery-node-reboot", "recovery-node-reboot"},
		"two readings of drain":                 {repeat(2, 5, wants(1, ActionDrainP2P)), "NoSchedule recovery-drain-p2p", "recovery-drain-p2p"},
		"two readings of drain and reset":       {repeat(2, 5, wants(1, ActionDrainAndReset)), "NoSchedule recovery-drain-and-reset", "recovery-drain-and-reset"},
		"two readings of the IMEX domain":       {repeat(2, 5, wants(1, ActionRecoverIMEX)), "", "recovery-recover-imex"},
		"two readings of a future action":       {repeat(2, 5, wants(1, ActionOf(99))), "NoSchedule recovery-other", "recovery-other"},
		"a misreading":                          {[]Event{wants(1, ActionReset), clean(6), wants(11, ActionReset), clean(16)}, "", ""},
		"lost once":                             {[]Event{of(KindLost, 1)}, "NoSchedule lost", "lost"},
		"lost":                                  {repeat(2, 5, of(KindLost, 1)), "NoExecute lost", "lost"},
		"silent once":                           {[]Event{of(KindSilent, 1)}, "", "unmonitored"},
		"silent":                                {repeat(3, 5, of(KindSilent, 1)), "NoSchedule unmonitored", "unmonitored"},
		"an unknown kind":                       {[]Event{of("flood", 1)}, "", ""},
		"a remap that cannot be read any more":  {[]Event{pending, of(KindPoll, 60)}, "", "remap-pending"},
		"worst first":                           {[]Event{xid(1, 63), xid(2, 54), xid(3, 79), xid(4, 48)}, "NoExecute xid-79", "xid-79 xid-48 xid-54 xid-63"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t).do(c.events...)
			if got := n.effect(); got != c.effect {
				t.Errorf("the effect is %q, want %q", got, c.effect)
			}
			if got := n.facts(); got != c.facts {
				t.Errorf("the facts are %q, want %q", got, c.facts)
			}
		})
	}
}

func TestALaterMilderEventChangesNothing(t *testing.T) {
	for _, later := range []Event{xid(2, 31), xid(2, 63), xid(2, 54), xid(2, 43), xid(2, 999), of(KindECC, 2), clean(2), of(KindAnswering, 2), of(KindReturned, 2), of(KindValidated, 2)} {
		n := newNode(t).do(xid(1, 79), later)
		n.want(string(later.Kind), "NoExecute xid-79", PhaseSick)
	}
}

func TestTheWayBackFromEveryRepair(t *testing.T) {
	t.Run("reset", func(t *testing.T) {
		n := newNode(t).do(xid(1, 119))
		n.do(of(KindReset, 10)).want("after the reset", "NoExecute xid-119", PhaseRecovering)
		n.do(of(KindValidated, 11)).want("after a validation that came too early", "NoExecute xid-119", PhaseRecovering)
		n.do(clean(20)).want("after a clean reading", "NoExecute xid-119", PhaseValidating)
		n.do(of(KindValidated, 30)).want("after the validation", "", PhaseHealthy)
	})
	t.Run("a reset does not do for a reboot", func(t *testing.T) {
		n := newNode(t).do(boot(0, "one"), xid(1, 79), of(KindReset, 2), clean(3), boot(4, "one"), clean(5))
		n.want("same boot", "NoExecute xid-79", PhaseSick)
		n.do(boot(6, "two"), clean(7), of(KindValidated, 8)).want("new boot", "", PhaseHealthy)
	})
	t.Run("recovery action gone", func(t *testing.T) {
		n := newNode(t).do(xid(1, 119), wants(2, ActionReset), wants(7, ActionReset), clean(12))
		n.want("the driver wants nothing more", "NoExecute xid-119", PhaseRecovering)
		n.do(clean(17), of(KindValidated, 18)).want("validated", "", PhaseHealthy)
	})
	t.Run("a misread action repairs nothing", func(t *testing.T) {
		newNode(t).do(xid(1, 119), wants(2, ActionReset), clean(7)).want("", "NoExecute xid-119", PhaseSick)
	})
	t.Run("no validation after NoSchedule", func(t *testing.T) {
		newNode(t).do(xid(1, 64), of(KindReset, 2)).want("reset", "", PhaseHealthy)
	})
	t.Run("only hands", func(t *testing.T) {
		n := newNode(t).do(boot(0, "one"), xid(1, 54), of(KindReset, 2), boot(3, "two"), of(KindValidated, 4))
		n.want("nothing helps", "NoSchedule xid-54", PhaseSick)
		n.do(of(KindClear, 5)).want("the operator's word", "", PhaseHealthy)
	})
	t.Run("the operator's word needs a validation too", func(t *testing.T) {
		n := newNode(t).do(xid(1, 79), of(KindClear, 2))
		n.want("cleared", "NoExecute xid-79", PhaseRecovering)
		n.do(clean(3), of(KindValidated, 4)).want("validated", "", PhaseHealthy)
	})
	t.Run("lost and back", func(t *testing.T) {
		n := newNode(t).do(of(KindLost, 1), of(KindLost, 6), of(KindReturned, 20))
		n.want("back", "NoExecute lost", PhaseRecovering)
		n.do(of(KindLost, 21)).want("lost again", "NoExecute lost", PhaseSick)
		n.do(clean(30), clean(40), of(KindValidated, 50)).want("back for good", "", PhaseHealthy)
	})
	t.Run("silent and back", func(t *testing.T) {
		newNode(t).do(repeat(3, 5, of(KindSilent, 1))...).do(of(KindAnswering, 20)).want("", "", PhaseHealthy)
	})
	t.Run("a suspicion ends by itself", func(t *testing.T) {
		n := newNode(t).do(repeat(3, 60, xid(1, 31))...).do(clean(3720))
		if n.facts() != "xid-31" {
			t.Error("it ended before its quiet time")
		}
		if n.do(clean(3721)); n.facts() != "" {
			t.Errorf("after the quiet time there is still %q", n.facts())
		}
	})
	t.Run("a validated override", func(t *testing.T) {
		n := newNode(t, Override{Cause: "xid-31", Class: ClassNoExecute, Repair: RepairValidate}).do(xid(1, 31), of(KindReset, 2))
		n.want("a reset is no validation", "NoExecute xid-31", PhaseSick)
		n.do(of(KindValidated, 3)).want("validated", "", PhaseHealthy)
	})
}

func TestANewFaultWhileComingBack(t *testing.T) {
	n := newNode(t).do(xid(1, 119), of(KindReset, 2), clean(3), xid(4, 54))
	n.want("new fault", "NoExecute xid-119", PhaseSick)
	n.do(of(KindValidated, 5)).want("the validation was overtaken", "NoExecute xid-119", PhaseSick)
	n.do(of(KindClear, 6)).want("the new fault is over", "NoExecute xid-119", PhaseRecovering)
}

func TestRepeatedFaultsNeedMore(t *testing.T) {
	n := newNode(t).do(boot(0, "1"))
	need := func() Repair {
		for _, taint := range n.s.Taints(sick, n.p) {
			if taint.Key == "gpu.fairshard.dev/xid-119" {
				return Repair(taint.Value)
			}
		}
		return ""
	}
	back := func(at int64, repair Event) { n.do(repair, clean(at), of(KindValidated, at)) }
	for i, want := range []Repair{RepairReset, RepairReboot, RepairReplace} {
		at := int64(1000 * (i + 1))
		if n.do(xid(at, 119)); need() != want {
			t.Fatalf("fault %d needs %q, want %q", i+1, need(), want)
		}
		back(at+10, boot(at, fmt.Sprint(i+2)))
	}
	n.want("a reboot is not enough", "NoExecute xid-119", PhaseSick)
	back(5000, of(KindClear, 5000))
	if n.do(xid(6000, 119)); need() != RepairReset {
		t.Errorf("the operator's word forgets the history, but it needs %q", need())
	}
	back(6100, of(KindReset, 6100))
	if n.do(xid(6000+2*day, 119)); need() != RepairReset {
		t.Errorf("a fault a day later needs %q", need())
	}
}

func TestOnlyTheSickGPUIsAffected(t *testing.T) {
	n := newNode(t).do(xid(1, 79), of(KindLost, 2), of(KindSilent, 3))
	n.do(Event{Kind: KindPoll, UUID: "GPU-b", At: 4}, Event{Kind: KindXID, UUID: "GPU-b", At: 4, XID: 31})
	if taints := n.s.Taints("GPU-b", n.p); len(taints) != 0 {
		t.Errorf("the other GPU has taints %v", taints)
	}
	if verdict, _ := n.s.Health("GPU-b", n.p); verdict != Healthy {
		t.Errorf("the other GPU is %s", verdict)
	}
	if got := n.s.UUIDs(); !slices.Contains(got, sick) {
		t.Errorf("known GPUs are %v", got)
	}
}

func TestALostGPUCanBeForgotten(t *testing.T) {
	n := newNode(t).do(xid(1, 79), of(KindForget, 2))
	n.want("a GPU that is there is not forgotten", "NoExecute xid-79", PhaseSick)
	if n.do(of(KindLost, 3), of(KindForget, 4)); len(n.s.UUIDs()) != 0 {
		t.Errorf("%v is still there", n.s.UUIDs())
	}
}

func TestSinceStaysWhileTheConditionStays(t *testing.T) {
	n := newNode(t).do(xid(100, 54), xid(200, 54), xid(300, 79), xid(400, 79), of(KindReset, 500))
	want := []Taint{
		{KeyUnhealthy, "xid-79", "NoExecute", 300},
		{"gpu.fairshard.dev/xid-79", "replace", "None", 300},
		{"gpu.fairshard.dev/xid-54", "replace", "None", 100},
	}
	if got := n.s.Taints(sick, n.p); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// A fact that became worse: the fact is as old as it was, its effect is new.
	n = newNode(t).do(xid(100, 74), xid(200, 74))
	want = []Taint{{KeyUnhealthy, "xid-74", "NoSchedule", 200}, {"gpu.fairshard.dev/xid-74", "gpu-reset", "None", 100}}
	if got := n.s.Taints(sick, n.p); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestHealthSaysWhyAndWhatItWaitsFor(t *testing.T) {
	for name, c := range map[string]struct {
		events  []Event
		verdict Verdict
		text    string
	}{
		"healthy":             {nil, Healthy, "The GPU is healthy."},
		"with a note":         {[]Event{xid(1, 63)}, Healthy, "The GPU is healthy; noted: xid-63 (a row remap was recorded) since 1970-01-01T00:00:01Z."},
		"sick":                {[]Event{xid(1, 79)}, Unhealthy, "xid-79 (the GPU has fallen off the bus) since 1970-01-01T00:00:01Z: needs a reboot of the node."},
		"recovering":          {[]Event{xid(1, 48), of(KindReset, 2)}, Unhealthy, "xid-48 (a double-bit memory error) since 1970-01-01T00:00:01Z: repaired, waits for a clean reading of the driver."},
		"validating":          {[]Event{xid(1, 48), of(KindReset, 2), clean(3)}, Unhealthy, "xid-48 (a double-bit memory error) since 1970-01-01T00:00:01Z: repaired, waits for a validation to pass."},
		"silent once":         {[]Event{of(KindSilent, 1)}, Unknown, "unmonitored (the driver does not answer) since 1970-01-01T00:00:01Z: lasts until the driver says that it is over."},
		"silent":              {repeat(3, 5, of(KindSilent, 1)), Unknown, "unmonitored (the driver does not answer) since 1970-01-01T00:00:01Z: lasts until the driver says that it is over."},
		"silent, then sick":   {append(repeat(3, 5, of(KindSilent, 1)), xid(20, 54)), Unhealthy, "xid-54 (auxiliary power is not connected) since 1970-01-01T00:00:20Z: needs a look at the hardware, and the operator's word that it is done."},
		"silent, unvalidated": {append([]Event{xid(0, 48), of(KindReset, 0)}, repeat(3, 5, of(KindSilent, 1))...), Unhealthy, "unmonitored (the driver does not answer) since 1970-01-01T00:00:01Z: lasts until the driver says that it is over."},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t).do(c.events...)
			if verdict, text := n.s.Health(sick, n.p); verdict != c.verdict || text != c.text {
				t.Errorf("got  %s %q\nwant %s %q", verdict, text, c.verdict, c.text)
			}
		})
	}
}

func TestAConditionKnowsItsMIGInstance(t *testing.T) {
	on := func(at int64, code uint64, instance string) Event {
		return Event{Kind: KindXID, At: at, XID: code, Instance: instance}
	}
	instance := func(n *node) string { return n.s.Conditions(sick)[0].Instance }
	override := Override{Cause: "xid-94", Class: ClassNoSchedule, Repair: RepairValidate}
	n := newNode(t, override).do(on(1, 94, Instance(3, 0)))
	if instance(n) != "gi-3-ci-0" {
		t.Errorf("the instance is %q", instance(n))
	}
	if n.do(on(2, 94, Instance(4, noInstance))); instance(n) != "" {
		t.Errorf("two instances have it, but it is confined to %q", instance(n))
	}
	if n = newNode(t).do(on(1, 95, Instance(3, 0))); instance(n) != "" {
		t.Errorf("an uncontained error is confined to %q", instance(n))
	}
	if got := Instance(noInstance, noInstance); got != "" {
		t.Errorf("the whole GPU is called %q", got)
	}
}

func TestAReadingWithoutNewsGivesAnEqualState(t *testing.T) {
	reading := wants(1, ActionDrainAndReset)
	reading.Reading.RemapPending, reading.Reading.Uncorrectable = Yes, 3
	n := newNode(t).do(repeat(2, 5, reading)...)
	before := encoded(t, n.s)
	n.do(repeat(100, 5, reading)...)
	if after := encoded(t, n.s); !bytes.Equal(before, after) {
		t.Errorf("got\n%s\nbefore it was\n%s", after, before)
	}
}

func TestCountersOfAResetGPUStartAnew(t *testing.T) {
	count := func(at int64, total uint64) Event {
		e := clean(at)
		e.Reading.Uncorrectable = total
		return e
	}
	n := newNode(t).do(count(1, 5), count(5000, 5))
	if n.facts() != "" {
		t.Fatal("a counter that stands still is no event")
	}
	if n.do(of(KindReset, 6000), count(6001, 1)); n.facts() != "ecc" {
		t.Errorf("the first error after a reset was not seen: %q", n.facts())
	}
}

// The policy may be another one after a restart.
func TestAnotherPolicyForOpenConditions(t *testing.T) {
	n := newNode(t).do(xid(1, 79))
	n.p = newNode(t, Override{Cause: "xid-79", Class: ClassIgnore}).p
	n.want("ignored now", "", PhaseHealthy)
	if verdict, text := n.s.Health(sick, n.p); verdict != Healthy {
		t.Errorf("it is %s: %s", verdict, text)
	}
	if n.do(clean(4000), clean(4001)); len(n.s.UUIDs()) != 0 {
		t.Error("the condition is still there")
	}
	n = newNode(t).do(xid(1, 79), of(KindClear, 2))
	n.p = newNode(t, Override{Cause: "xid-79", Class: ClassNoSchedule}).p
	n.do(clean(3)).want("repaired, and needs no validation now", "", PhaseHealthy)
}
