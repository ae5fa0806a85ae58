// Package snapshot is one cycle's view of queues, workloads and capacity:
// plain values, sorted, immutable once built.
//
// `admission/observe` builds it from the cluster, `admission/decide` reads it.
// A trial runs on a Fork of the free devices that is kept or dropped; nothing
// is undone by hand. It holds no Kubernetes type and no clock.
//
// Layer 1: standard library and `classes` only.
package snapshot
