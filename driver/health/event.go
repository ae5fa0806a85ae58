package health

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind says what an Event reports.
type Kind string

// The kinds of events. All but KindBoot are about one GPU.
const (
	KindXID       Kind = "xid"       // the driver logged XID
	KindECC       Kind = "ecc"       // uncorrectable memory errors, where Reading cannot have them
	KindPoll      Kind = "poll"      // the GPU was read: Reading; so it is there and it answers
	KindLost      Kind = "lost"      // the GPU is absent, or NVML says that it is lost; sent at every failed read
	KindReturned  Kind = "returned"  // a GPU with the same UUID is there again
	KindSilent    Kind = "silent"    // NVML does not answer; sent at every failed read
	KindAnswering Kind = "answering" // NVML answers again
	KindReset     Kind = "reset"     // the GPU was reset
	KindBoot      Kind = "boot"      // the node runs with this Boot ID; sent at every start
	KindValidated Kind = "validated" // a validation of the GPU passed
	KindClear     Kind = "clear"     // the operator says that the GPU is repaired; its history is forgotten
	KindForget    Kind = "forget"    // the operator says that a lost GPU will not come back
)

// Event is one fact. Fields that its kind does not name are ignored.
type Event struct {
	Kind     Kind
	UUID     string  // of the GPU
	At       int64   // unix seconds
	XID      uint64  // for KindXID
	Instance string  // for KindXID: MIG instance (see Instance), "" for the whole GPU
	Boot     string  // for KindBoot
	Reading  Reading // for KindPoll
}

// Reading is what one poll of a GPU found. The zero value means that nothing
// could be read (old driver, MIG), which opens and closes nothing.
type Reading struct {
	Action        Action // NVML field 230
	RemapPending  Flag
	RemapFailed   Flag
	ECCRead       bool   // Uncorrectable was read
	Uncorrectable uint64 // uncorrectable memory errors since the driver was loaded
}

// Flag is a fact that may be unread.
type Flag int

// The values of a Flag.
const (
	Unread Flag = iota
	No
	Yes
)

// Action is what the driver wants done to a GPU.
type Action string

// The recovery actions. ActionOther stands for those of newer drivers.
const (
	ActionUnread        Action = ""
	ActionNone          Action = "none"
	ActionReset         Action = "gpu-reset"
	ActionReboot        Action = "node-reboot"
	ActionDrainP2P      Action = "drain-p2p"
	ActionDrainAndReset Action = "drain-and-reset"
	ActionRecoverIMEX   Action = "recover-imex"
	ActionBusReset      Action = "bus-reset"
	ActionSystemReboot  Action = "system-reboot"
	ActionOther         Action = "other"
)

// actions in the order of NVML's numbers.
var actions = []Action{
	ActionNone, ActionReset, ActionReboot, ActionDrainP2P, ActionDrainAndReset,
	ActionRecoverIMEX, ActionBusReset, ActionSystemReboot, ActionOther,
}

// ActionOf translates the value of NVML field 230.
func ActionOf(number uint64) Action {
	return actions[min(number, uint64(len(actions)-1))]
}

// proves is the repair that must have happened when a is over, "" for none.
func (a Action) proves() Repair {
	switch a {
	case ActionReset, ActionDrainAndReset, ActionBusReset:
		return RepairReset
	case ActionReboot, ActionSystemReboot:
		return RepairReboot
	default:
		return ""
	}
}

// noInstance is what NVML gives as ID when an event is about the whole GPU.
const noInstance = 0xFFFFFFFF

// Instance names a MIG GPU instance or compute instance: "gi-3", "gi-3-ci-0", or
// "" for the whole GPU.
func Instance(gpu, compute uint32) string {
	switch {
	case gpu == noInstance:
		return ""
	case compute == noInstance:
		return fmt.Sprintf("gi-%d", gpu)
	}
	return fmt.Sprintf("gi-%d-ci-%d", gpu, compute)
}

// Cause names a condition: "xid-79", "recovery-gpu-reset", or one of the below.
// It is the last part of a taint key and never renamed.
type Cause string

// The causes that are not made of a number or action.
const (
	CauseECC          Cause = "ecc"
	CauseRemapPending Cause = "remap-pending"
	CauseRemapFailed  Cause = "remap-failed"
	CauseLost         Cause = "lost"
	CauseUnmonitored  Cause = "unmonitored" // NVML does not answer
	CauseOtherXID     Cause = "xid-other"   // its rule is that of every XID without a row
)

const (
	xidPrefix      = "xid-"
	recoveryPrefix = "recovery-"
	// maxXID bounds the conditions of a GPU. Higher XIDs count as one.
	maxXID = 511
)

// MaxConditions is how many conditions a GPU can have, open or only counted.
const MaxConditions = maxXID + 14

// XIDCause is the condition that an XID belongs to.
func XIDCause(code uint64) Cause {
	if code == 0 || code > maxXID {
		return CauseOtherXID
	}
	return Cause(xidPrefix + strconv.FormatUint(code, 10))
}

func actionCause(a Action) Cause { return Cause(recoveryPrefix + string(a)) }

// known reports whether c can be the cause of a condition.
func (c Cause) known() bool {
	if _, ok := table[c]; ok {
		return true
	}
	number, isXID := strings.CutPrefix(string(c), xidPrefix)
	code, err := strconv.ParseUint(number, 10, 64)
	return isXID && err == nil && c == XIDCause(code)
}
