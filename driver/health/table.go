package health

import "slices"

// Class is how bad a condition is.
type Class string

// The classes, from mild to bad.
const (
	ClassIgnore     Class = "Ignore"     // not open, at most counted
	ClassFact       Class = "Fact"       // a taint without effect
	ClassNoSchedule Class = "NoSchedule" // no new work
	ClassNoExecute  Class = "NoExecute"  // work that is there is evicted
)

var allClasses = []Class{ClassIgnore, ClassFact, ClassNoSchedule, ClassNoExecute}

// rank orders classes; -1 for none of them.
func (c Class) rank() int { return slices.Index(allClasses, c) }

func (c Class) serious() bool { return c.rank() >= ClassNoSchedule.rank() }

// Scope is whom a condition can hurt.
type Scope string

// The scopes.
const (
	ScopeApp Scope = "app" // the program that caused it; the MIG instance is kept
	ScopeMIG Scope = "mig" // the MIG instance it names
	ScopeGPU Scope = "gpu" // the GPU with everything on it, whatever instance it names
)

// Repair is what closes a condition.
type Repair string

// The repairs. From reset on, each does what the ones before it do.
const (
	RepairSignal   Repair = "signal"      // what reported it says that it is over
	RepairQuiet    Repair = "quiet"       // it was not seen for the policy's quiet time, or any repair
	RepairValidate Repair = "validate"    // a validation passed
	RepairReset    Repair = "gpu-reset"   // the GPU was reset
	RepairReboot   Repair = "node-reboot" // the node booted again
	RepairReplace  Repair = "replace"     // hands are needed; the operator says when it is done
)

var allRepairs = []Repair{RepairSignal, RepairQuiet, RepairValidate, RepairReset, RepairReboot, RepairReplace}

// doneBy reports whether a condition that needs r is closed when did happened.
func (r Repair) doneBy(did Repair) bool {
	switch {
	case did == RepairReplace, did == r:
		return true
	case r == RepairSignal, r == RepairValidate, did == RepairSignal:
		return false
	}
	return slices.Index(allRepairs, did) >= slices.Index(allRepairs, r)
}

// Repeat makes a condition worse when it is seen Times times within Within seconds.
type Repeat struct {
	Times  int
	Within int64
	Class  Class
	Repair Repair
}

// Rule is what a cause means.
type Rule struct {
	What    string // for messages: "the GPU has fallen off the bus"
	Scope   Scope
	Class   Class // when it is seen once
	Repair  Repair
	Repeats []Repeat // by rising Times, none milder than the one before
}

// at returns class and repair after level repeats were reached.
func (r Rule) at(level int) (Class, Repair) {
	level = min(level, len(r.Repeats))
	if level == 0 {
		return r.Class, r.Repair
	}
	return r.Repeats[level-1].Class, r.Repeats[level-1].Repair
}

// horizon is how long an occurrence can matter for a repeat, in seconds.
func (r Rule) horizon() int64 {
	var longest int64
	for _, repeat := range r.Repeats {
		longest = max(longest, repeat.Within)
	}
	return longest
}

const day = 24 * 60 * 60

// Repeats that several rows share; "ask" needs a human.
var (
	suspect     = []Repeat{{3, day, ClassFact, RepairQuiet}}
	thenReset   = []Repeat{{2, day, ClassNoSchedule, RepairReset}}
	thenAsk     = []Repeat{{2, day, ClassNoExecute, RepairReplace}}
	rebootAsk   = []Repeat{{2, day, ClassNoExecute, RepairReboot}, {3, day, ClassNoExecute, RepairReplace}}
	twiceEvict  = []Repeat{{2, 600, ClassNoExecute, RepairSignal}}
	twiceDrain  = []Repeat{{2, 600, ClassNoSchedule, RepairSignal}}
	thriceDrain = []Repeat{{3, 600, ClassNoSchedule, RepairSignal}}
)

// xidRows is NVIDIA's catalog of XIDs as we act on it. Classes and repairs follow
// the catalog's immediate action; where it leaves the choice to the recovery
// action that the driver reports (XID 154), the XID itself is only a fact.
var xidRows = []struct {
	xids []uint64
	rule Rule
}{
	// The program's fault, or no fault: no condition.
	{[]uint64{11, 25, 32, 69, 80, 60}, Rule{"the program failed", ScopeApp, ClassIgnore, RepairQuiet, nil}},
	{[]uint64{14, 37, 38, 43, 44, 66, 67, 93, 106, 107, 108, 137, 141, 152, 153, 160, 161}, Rule{"informational", ScopeApp, ClassIgnore, RepairQuiet, nil}},
	{[]uint64{45}, Rule{"work was removed, by another error or a kill", ScopeApp, ClassIgnore, RepairQuiet, nil}}, // thousands on healthy nodes
	{[]uint64{78}, Rule{"a vGPU did not start", ScopeApp, ClassIgnore, RepairQuiet, nil}},
	{[]uint64{94}, Rule{"a contained memory error", ScopeMIG, ClassIgnore, RepairQuiet, nil}},                        // only its program dies
	{[]uint64{154}, Rule{"the recovery action changed", ScopeGPU, ClassIgnore, RepairQuiet, nil}},                    // the next reading has the action
	{[]uint64{13, 31}, Rule{"illegal accesses by programs", ScopeApp, ClassIgnore, RepairQuiet, suspect}},            // repeated on one GPU: worth a diagnosis
	{[]uint64{8, 39, 40, 41, 68}, Rule{"engine errors", ScopeApp, ClassIgnore, RepairQuiet, suspect}},                // restart the program
	{[]uint64{70, 71, 72, 75, 76, 77}, Rule{"copy engine errors", ScopeApp, ClassIgnore, RepairQuiet, suspect}},      // restart the program
	{[]uint64{82, 83, 84, 85, 86, 88, 89}, Rule{"video engine errors", ScopeApp, ClassIgnore, RepairQuiet, suspect}}, // restart the program
	{[]uint64{96, 97, 98, 99, 100, 101, 102, 103, 104, 105}, Rule{"engine errors", ScopeApp, ClassIgnore, RepairQuiet, suspect}},
	{[]uint64{126, 127, 128, 129, 130, 131, 132, 133, 134, 135, 139}, Rule{"engine errors", ScopeApp, ClassIgnore, RepairQuiet, suspect}},

	// Memory.
	{[]uint64{63}, Rule{"a row remap was recorded", ScopeGPU, ClassFact, RepairQuiet, nil}}, // remap-pending lasts until it is done
	{[]uint64{92}, Rule{"many corrected memory errors", ScopeGPU, ClassFact, RepairQuiet, nil}},
	{[]uint64{171, 172}, Rule{"where a memory error was", ScopeGPU, ClassFact, RepairQuiet, nil}}, // goes with 48
	{[]uint64{48}, Rule{"a double-bit memory error", ScopeGPU, ClassNoExecute, RepairReset, nil}},
	{[]uint64{95, 140}, Rule{"an uncontained memory error", ScopeGPU, ClassNoExecute, RepairReset, thenAsk}}, // also with MIG all instances
	{[]uint64{64, 156}, Rule{"a row remap or retirement failed", ScopeGPU, ClassNoSchedule, RepairReset, nil}},
	{[]uint64{157}, Rule{"a row retirement failed", ScopeGPU, ClassNoSchedule, RepairReplace, nil}},
	{[]uint64{168}, Rule{"the GPU has less memory", ScopeGPU, ClassNoSchedule, RepairReplace, nil}},

	// The GPU does not work until it is reset.
	{[]uint64{46, 62, 109, 110, 119, 120, 143, 155, 158}, Rule{"the GPU hangs or its firmware failed", ScopeGPU, ClassNoExecute, RepairReset, rebootAsk}},

	// NVLink: the register words that tell a fault from an echo are not decoded here.
	{[]uint64{74}, Rule{"an NVLink error", ScopeGPU, ClassFact, RepairQuiet, thenReset}},
	{[]uint64{136}, Rule{"NVLink training failed", ScopeGPU, ClassNoSchedule, RepairReset, []Repeat{{2, day, ClassNoSchedule, RepairReplace}}}},
	{[]uint64{144, 145, 146, 147, 148, 149, 150}, Rule{"an NVLink error", ScopeGPU, ClassFact, RepairQuiet, nil}}, // the recovery action decides

	// Bus, power, board.
	{[]uint64{79}, Rule{"the GPU has fallen off the bus", ScopeGPU, ClassNoExecute, RepairReboot, []Repeat{{2, 7 * day, ClassNoExecute, RepairReplace}}}},
	{[]uint64{151}, Rule{"a key rotation failed", ScopeGPU, ClassNoExecute, RepairReboot, nil}},
	{[]uint64{167}, Rule{"a fatal PCIe timeout", ScopeGPU, ClassNoSchedule, RepairReboot, nil}},
	{[]uint64{54}, Rule{"auxiliary power is not connected", ScopeGPU, ClassNoSchedule, RepairReplace, nil}},
	{[]uint64{121}, Rule{"a C2C link error", ScopeGPU, ClassFact, RepairQuiet, []Repeat{{3, day, ClassNoSchedule, RepairReplace}}}},
	{[]uint64{142}, Rule{"the video encoder failed", ScopeGPU, ClassNoSchedule, RepairReplace, nil}},
	{[]uint64{159}, Rule{"a CHI error", ScopeGPU, ClassFact, RepairQuiet, nil}},

	// Without an action in the catalog: shown, and the recovery action decides.
	{[]uint64{162, 163, 164, 165, 166, 169, 170}, Rule{"power smoothing, confidential compute or a halt", ScopeGPU, ClassFact, RepairQuiet, nil}},
}

// factRows are the causes that are no XIDs. A single reading may be wrong, so
// what evicts has to be read twice.
var factRows = map[Cause]Rule{
	CauseOtherXID:     {"an XID without a rule", ScopeGPU, ClassFact, RepairQuiet, nil},
	CauseECC:          {"uncorrectable memory errors", ScopeGPU, ClassFact, RepairQuiet, []Repeat{{3, day, ClassNoSchedule, RepairReset}}}, // contained ones count too
	CauseRemapPending: {"a row remap waits for a reset", ScopeGPU, ClassFact, RepairSignal, nil},                                           // work is safe meanwhile
	CauseRemapFailed:  {"a row could not be remapped", ScopeGPU, ClassNoSchedule, RepairSignal, nil},
	CauseLost:         {"the GPU is lost", ScopeGPU, ClassNoSchedule, RepairSignal, twiceEvict},
	CauseUnmonitored:  {"the driver does not answer", ScopeGPU, ClassFact, RepairSignal, thriceDrain}, // says nothing about the work on it

	actionCause(ActionReset):         {"the driver wants a reset of the GPU", ScopeGPU, ClassFact, RepairSignal, twiceEvict},
	actionCause(ActionReboot):        {"the driver wants a reboot of the node", ScopeGPU, ClassFact, RepairSignal, twiceEvict},
	actionCause(ActionDrainP2P):      {"the driver wants peer traffic drained", ScopeGPU, ClassFact, RepairSignal, twiceDrain},
	actionCause(ActionDrainAndReset): {"the driver wants a reset once work has ended", ScopeGPU, ClassFact, RepairSignal, twiceDrain},
	actionCause(ActionRecoverIMEX):   {"the IMEX domain needs recovery", ScopeGPU, ClassFact, RepairSignal, nil}, // not the GPU's fault
	actionCause(ActionBusReset):      {"the driver wants a reset of the bus", ScopeGPU, ClassFact, RepairSignal, twiceEvict},
	actionCause(ActionSystemReboot):  {"the driver wants a reboot of the system", ScopeGPU, ClassFact, RepairSignal, twiceEvict},
	actionCause(ActionOther):         {"the driver wants an action unknown to us", ScopeGPU, ClassFact, RepairSignal, twiceDrain},
}

// table is every built-in rule.
var table = func() map[Cause]Rule {
	all := map[Cause]Rule{}
	for cause, rule := range factRows {
		all[cause] = rule
	}
	for _, row := range xidRows {
		for _, xid := range row.xids {
			all[XIDCause(xid)] = row.rule
		}
	}
	return all
}()
