package ledger

import (
	"fmt"
	"strings"

	"github.com/fairshard/fairshard/classes/quantity"
	"github.com/fairshard/fairshard/driver/isolation"
)

// Event is one of the types below.
type Event interface{ event() }

// GPUs says which GPUs the node has and how many bytes each offers to claims.
type GPUs struct{ Usable map[string]quantity.Bytes }

// Prepare asks for a claim to be made ready, for the first time or again.
type Prepare struct{ Claim Claim }

// Prepared reports that every effect of a Prepare succeeded.
type Prepared struct{ UID string }

// Unprepare asks for a claim to be released.
type Unprepare struct{ UID string }

// Unprepared reports that every effect of an Unprepare succeeded.
type Unprepared struct{ UID string }

// Failed reports that an effect of a claim failed and the rest was not run.
type Failed struct{ UID string }

// Recover reports what was found on disk at start.
type Recover struct {
	Records []Entry
	Damaged []string                    // UIDs whose record could not be read
	Limits  map[string]isolation.Limits // UID -> limits file; the zero value if it could not be read
	CDI     []string                    // UIDs that have a CDI file
}

func (GPUs) event()       {}
func (Prepare) event()    {}
func (Prepared) event()   {}
func (Unprepare) event()  {}
func (Unprepared) event() {}
func (Failed) event()     {}
func (Recover) event()    {}

// Op is what an effect does. The list is closed.
type Op string

// The effects. All are idempotent: writing what is there, or removing what is
// not, succeeds.
const (
	SaveIntent   Op = "SaveIntent"   // record the claim as Preparing
	WriteLimits  Op = "WriteLimits"  // make the limits file what it should be
	WriteCDI     Op = "WriteCDI"     // make the CDI file what it should be
	SaveDone     Op = "SaveDone"     // record the claim as Prepared
	SaveLost     Op = "SaveLost"     // record the claim as Lost
	RemoveCDI    Op = "RemoveCDI"    // remove the CDI file
	RemoveLimits Op = "RemoveLimits" // remove the limits file
	RemoveRecord Op = "RemoveRecord" // remove the record
	Refuse       Op = "Refuse"       // answer with Refusal; always alone
)

// Effect is one thing the shell has to do.
type Effect struct {
	Op      Op
	Claim   Claim   // for the removals only UID is set
	Refusal Refusal // for Refuse
}

// Why is the closed list of reasons to refuse a claim.
type Why string

// The reasons.
const (
	NothingAllocated  Why = "NothingAllocated"
	UnknownGPU        Why = "UnknownGPU"
	InvalidAmount     Why = "InvalidAmount"
	TwoSharesOfOneGPU Why = "TwoSharesOfOneGPU"
	InUse             Why = "InUse"
	OverCommit        Why = "OverCommit"
	AllocationChanged Why = "AllocationChanged"
	GPUChanged        Why = "GPUChanged"
)

// Refusal says why a claim is not prepared.
type Refusal struct {
	Why     Why
	Device  string         // of the refused claim
	UUID    string         // the GPU it is about
	Asked   quantity.Bytes // what the claim wants of it
	Free    quantity.Bytes // what is left
	Holders []string       // namespace/name of the claims that have the rest, sorted
}

// String says what, why and what to do, in one line for a pod's event.
func (r Refusal) String() string {
	holders := strings.Join(r.Holders, ", ")
	switch r.Why {
	case NothingAllocated:
		return "the claim has no device of this driver: check its allocation"
	case UnknownGPU:
		return fmt.Sprintf("device %s: its GPU %s is not on this node (any more): delete the pod so that it is scheduled again", r.Device, r.UUID)
	case InvalidAmount:
		return fmt.Sprintf("device %s: a share of %d bytes is not a positive amount", r.Device, int64(r.Asked))
	case TwoSharesOfOneGPU:
		return fmt.Sprintf("device %s: the claim has two shares of GPU %s: use one request with a count, "+
			"or a distinctAttribute constraint over gpu.fairshard.dev/uuid", r.Device, r.UUID)
	case InUse:
		return fmt.Sprintf("device %s: GPU %s is still held by %s: it is tried again until the holder is gone", r.Device, r.UUID, holders)
	case OverCommit:
		return fmt.Sprintf("device %s: wants %s of GPU %s, %s are free, the rest is held by %s: it is tried again until a holder is gone",
			r.Device, r.Asked, r.UUID, r.Free, holders)
	case AllocationChanged:
		return "the claim is still prepared for an earlier allocation: it is tried again until the earlier pod is gone"
	case GPUChanged:
		return fmt.Sprintf("device %s: the GPU it was prepared for was replaced by %s: delete the pod so that it starts anew", r.Device, r.UUID)
	}
	return string(r.Why)
}
