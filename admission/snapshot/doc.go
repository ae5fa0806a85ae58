// Package snapshot is one cycle's view of queues, workloads and capacity:
// plain values, sorted, immutable once built; and Room, what their nodes have
// free, which places pods on devices as kube-scheduler will.
//
// `admission/observe` builds it from the cluster, `admission/decide` reads it.
// A trial runs on a copy of a Room that is kept or dropped. Nothing here knows a
// Kubernetes type, a clock, or who deserves what.
//
// Layer 1: standard library and `classes` only. Tested with tables, against
// slow searches that try everything, and in tests/allocator against the
// allocator of kube-scheduler.
package snapshot
