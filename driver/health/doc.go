// Package health decides what the health facts of a node's GPUs mean: which
// conditions are open, which taints follow, and what a GPU needs to come back.
//
// In: State, one Event with its time, and a Policy (the table of rules with the
// administrator's overrides). Out: the next State; from it Taints, Health and
// Phase of each GPU. State: per GPU at most MaxConditions conditions with at
// most eight times each, however many events there were; it lives in a file
// between restarts (Encode, Decode).
//
// Each cause ("xid-79", "lost", "recovery-gpu-reset") is one condition. It opens
// as the table says, at once or when it repeats, and closes only by what the
// table names: a signal that is over, a quiet time, a reset, a new boot, a
// passed validation, or the operator. The worst open condition decides, so a
// milder event never makes a GPU look better. A GPU comes back like this:
//
//	Healthy -> Sick         a condition of class NoSchedule or NoExecute is open
//	Sick -> Healthy         all closed, and none was of class NoExecute
//	Sick -> Recovering      all closed; the taint stays, since one was NoExecute
//	Recovering -> Validating  the next reading finds nothing that keeps work away
//	Validating -> Healthy   a validation passed; a new fault leads back to Sick
//
// Taints are about the whole GPU; a condition that is confined to a MIG instance
// names it.
//
// Promises, each held by a test: only the GPU of an event changes, except for a
// new boot; a GPU that was NoExecute is never healthy again without a validation;
// there is always a short way back to Healthy; Since stays while its condition
// stays; a reading that tells nothing new gives an equal State; Step is total
// and never changes the State it was given.
//
// It must not touch NVML, clocks, files or APIs. No locks; the shell calls Step
// under its own lock. Rules of change of the file: fields are only added with a
// new version, and the fixtures under testdata stay readable.
//
// Layer 1. Tested by tables, properties against a slow oracle that replays the
// whole history, a fixture and a fuzz test of Decode.
package health
