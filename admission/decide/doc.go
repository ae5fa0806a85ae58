// Package decide is the planner: Cycle(Snapshot, Policy, now) []Decision.
//
// It is pure: integers only, no clock, no I/O, no map order; the same input
// gives the same output byte for byte. Decisions are data that `admission/apply`
// carries out and `admission/explain` turns into text. Every waiting workload
// gets exactly one decision in every cycle.
//
// The rule of this version is the simplest one: priority, then age; a gang is
// placed whole on free devices or waits; nothing is evicted.
//
// Layer 1: standard library, `classes`, `admission/snapshot` and `admission/tree` only.
package decide
