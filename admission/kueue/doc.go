// Package kueue translates objects of Kueue, DRA and the core API to the
// planner's values and back: what a Workload demands and what that costs
// (Resolve, Charge), and one cycle's Snapshot.
//
// A Workload is charged in `spec.overhead` of its pod template, which Kueue
// adds per pod and never uses to create pods. Pod-level claims are stripped
// from that template, or Kueue's own DRA accounting would take over; they are
// kept in the demand annotation, so that charging again gives the same result.
// Containers stay byte-equal: Kueue compares them with the job's.
//
// It reads API objects and must not call a server, read a clock or log.
// Objects that come in are never changed, except the Workload given to Charge.
//
// Layer 2. Tested with tables; the annotation is fuzzed.
package kueue
