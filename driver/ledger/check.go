package ledger

import (
	"slices"

	"github.com/fairshard/fairshard/classes/quantity"
)

// use is what the other claims hold of one GPU.
type use struct {
	bytes   quantity.Bytes
	whole   bool
	holders []string
}

// check judges a claim against everything that the other claims hold. It is the
// last line of defence: the scheduler should never let it come to this.
func (s State) check(c Claim) (Refusal, bool) {
	if len(c.Devices) == 0 {
		return Refusal{Why: NothingAllocated}, false
	}
	others := s.usedByOthers(c)
	own := map[string]bool{}
	for _, d := range c.Devices {
		refusal := Refusal{Device: d.Name, UUID: d.UUID, Asked: d.Bytes}
		usable, known := s.usable[d.UUID]
		switch {
		case !known:
			refusal.Why = UnknownGPU
		case d.Kind == KindAdmin:
			continue
		case d.Kind == KindShare && d.Bytes <= 0:
			refusal.Why = InvalidAmount
		case own[d.UUID]:
			refusal.Why = TwoSharesOfOneGPU
		default:
			own[d.UUID] = true
			refusal.Why, refusal.Free = judge(d, others[d.UUID], usable)
			refusal.Holders = holdersOf(others[d.UUID])
		}
		if refusal.Why != "" {
			return refusal, false
		}
	}
	return Refusal{}, true
}

// judge says why d does not fit beside others, or "" if it does, and how much is free.
func judge(d Device, others use, usable quantity.Bytes) (Why, quantity.Bytes) {
	free := usable.Sub(others.bytes)
	switch {
	case others.whole, d.Kind == KindWhole && others.bytes > 0:
		return InUse, 0
	case d.Kind == KindShare && d.Bytes > free:
		return OverCommit, free
	}
	return "", free
}

// usedByOthers sums up what all claims but c hold of the GPUs of c.
func (s State) usedByOthers(c Claim) map[string]use {
	used := map[string]use{}
	for _, d := range c.Devices {
		used[d.UUID] = use{}
	}
	for uid, e := range s.entries {
		if uid == c.UID {
			continue
		}
		for _, d := range e.Claim.Devices {
			u, wanted := used[d.UUID]
			if !wanted || d.Kind == KindAdmin {
				continue
			}
			u.bytes = u.bytes.Add(d.Bytes)
			u.whole = u.whole || d.Kind == KindWhole
			u.holders = append(u.holders, e.Claim.label())
			used[d.UUID] = u
		}
	}
	return used
}

func holdersOf(u use) []string {
	slices.Sort(u.holders)
	return slices.Compact(u.holders)
}

// label names a claim for people.
func (c Claim) label() string {
	if c.Name == "" {
		return "claim " + c.UID
	}
	return c.Namespace + "/" + c.Name
}
