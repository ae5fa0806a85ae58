package health

import (
	"strings"
	"testing"
)

func TestOverridesAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		quiet     int64
		overrides []Override
		want      string // "" when it is fine
	}{
		"none":                  {0, nil, ""},
		"an XID":                {0, []Override{{Cause: "xid-94", Class: ClassNoSchedule, Repair: RepairReset}}, ""},
		"an XID without a row":  {0, []Override{{Cause: "xid-300", Class: ClassNoExecute, Repair: RepairReboot}}, ""},
		"all XIDs without row":  {0, []Override{{Cause: CauseOtherXID, Class: ClassIgnore}}, ""},
		"a signal":              {0, []Override{{Cause: CauseLost, Class: ClassFact}}, ""},
		"repeats":               {0, []Override{{Cause: "xid-31", Class: ClassIgnore, Repeats: []Repeat{{2, 60, ClassFact, RepairQuiet}, {8, 600, ClassNoSchedule, RepairReset}}}}, ""},
		"quiet time too long":   {31 * day, nil, "the quiet time is 2678400 s: give 0 to 2592000"},
		"an unknown cause":      {0, []Override{{Cause: "smoke", Class: ClassFact}}, `cause "smoke" is not known: give xid-1 to xid-511`},
		"an XID out of range":   {0, []Override{{Cause: "xid-512", Class: ClassFact}}, "is not known"},
		"an XID with zeros":     {0, []Override{{Cause: "xid-079", Class: ClassFact}}, "is not known"},
		"two for one cause":     {0, []Override{{Cause: "ecc", Class: ClassFact}, {Cause: "ecc", Class: ClassIgnore}}, `cause "ecc" has two overrides: remove one`},
		"no class":              {0, []Override{{Cause: "ecc"}}, `override of ecc: class "" is not known: give one of [Ignore`},
		"an unknown repair":     {0, []Override{{Cause: "ecc", Class: ClassFact, Repair: "hope"}}, `repair "hope" is not known`},
		"a signal with repair":  {0, []Override{{Cause: CauseLost, Class: ClassFact, Repair: RepairReset}}, "it is over when the driver says so"},
		"an XID that ends":      {0, []Override{{Cause: "xid-79", Class: ClassFact, Repair: RepairSignal}}, "would never close it"},
		"repeats that fall":     {0, []Override{{Cause: "ecc", Class: ClassFact, Repeats: []Repeat{{3, 60, ClassFact, RepairQuiet}, {2, 60, ClassFact, RepairQuiet}}}}, "a repeat after 2 times follows 3"},
		"a repeat after one":    {0, []Override{{Cause: "ecc", Class: ClassFact, Repeats: []Repeat{{1, 60, ClassFact, RepairQuiet}}}}, "from 2 to 8"},
		"a repeat after nine":   {0, []Override{{Cause: "ecc", Class: ClassFact, Repeats: []Repeat{{9, 60, ClassFact, RepairQuiet}}}}, "from 2 to 8"},
		"a repeat without time": {0, []Override{{Cause: "ecc", Class: ClassFact, Repeats: []Repeat{{2, 0, ClassFact, RepairQuiet}}}}, "a repeat is within 0 s"},
		"a repeat that heals":   {0, []Override{{Cause: "ecc", Class: ClassNoSchedule, Repair: RepairReset, Repeats: []Repeat{{2, 60, ClassFact, RepairQuiet}}}}, "must not make it better"},
		"a repeat's bad repair": {0, []Override{{Cause: "ecc", Class: ClassFact, Repeats: []Repeat{{2, 60, ClassFact, "hope"}}}}, `repair "hope" is not known`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewPolicy(c.quiet, c.overrides)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want %q", err, c.want)
			}
		})
	}
}

func TestEveryProblemOfAPolicyIsReported(t *testing.T) {
	_, err := NewPolicy(-1, []Override{{Cause: "smoke"}, {Cause: "ecc"}})
	for _, want := range []string{"quiet time", "smoke", "override of ecc"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// What holds for overrides holds for the table too, and it names no XID twice.
func TestTheTableKeepsItsOwnRules(t *testing.T) {
	seen := map[uint64]bool{}
	for _, row := range xidRows {
		for _, code := range row.xids {
			if seen[code] || code > maxXID {
				t.Errorf("XID %d is in two rows or out of range", code)
			}
			seen[code] = true
		}
	}
	for cause, rule := range table {
		if _, err := NewPolicy(0, []Override{{cause, rule.Class, rule.Repair, rule.Repeats}}); err != nil || rule.What == "" || rule.Scope == "" {
			t.Errorf("%s: %v, %+v", cause, err, rule)
		}
	}
	for number, want := range map[uint64]Action{0: ActionNone, 1: ActionReset, 2: ActionReboot, 3: ActionDrainP2P, 4: ActionDrainAndReset, 5: ActionRecoverIMEX, 6: ActionBusReset, 7: ActionSystemReboot, 8: ActionOther, 1 << 40: ActionOther} {
		if got := ActionOf(number); got != want {
			t.Errorf("action %d is %q, want %q", number, got, want)
		}
	}
	if len(table) >= MaxConditions {
		t.Errorf("%d rules", len(table))
	}
}

func TestAnOverrideReplacesTheRowWithItsRepeats(t *testing.T) {
	n := newNode(t, Override{Cause: "xid-119", Class: ClassFact, Repair: RepairQuiet}, Override{Cause: CauseOtherXID, Class: ClassNoSchedule, Repair: RepairReset})
	if n.do(repeat(9, 10, xid(1, 119))...); n.effect() != "" {
		t.Errorf("repeats of the row are left: %s", n.effect())
	}
	n.do(xid(500, 300)).want("an XID without a row", "NoSchedule xid-300", PhaseSick)
	n.do(of(KindReset, 501), xid(502, 63)).want("an XID with a row", "", PhaseHealthy)
}
