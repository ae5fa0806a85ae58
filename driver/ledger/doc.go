// Package ledger is the life cycle of the claims of one node: who holds how
// many bytes of which GPU, and what has to be done to prepare or release a claim.
//
// In: State and one Event (the GPUs known, a claim to prepare or unprepare, the
// result of effects, what was found on disk). Out: the next State and the
// Effects that the shell has to run in that order. A refusal is an Effect too:
// data with a closed reason and numbers, never an error.
//
// Promises, each held by a test: no GPU is promised beyond what it offers; a
// whole GPU is never shared; a claim never has two shares of one GPU; files are
// written only after the record of the intent and removed before the record;
// the same event twice gives the same effects; Step is total and never changes
// the State it was given.
//
// It must not touch files, clocks or APIs: that is what makes the kill-point
// test possible, which stops after every prefix of effects and recovers.
// No locks; the shell calls Step under its own lock, and runs the effects of one
// claim one after the other. Layer 1. Tested with tables, properties against a
// slow oracle, and the kill-point test.
package ledger
