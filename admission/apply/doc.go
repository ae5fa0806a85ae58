// Package apply carries out decisions: it writes our AdmissionCheck's state
// and message on Workloads, and releases pods.
//
// In: decisions and the objects they were made on (Seen). Out: server-side
// apply on the Workload's status and patches on pods, always with the
// resourceVersion of the object that was seen. A conflict drops the decision;
// the next cycle decides anew. The rules of each write:
//
//   - Ready only on a Workload with a quota reservation that is neither
//     evicted nor admitted, and always with the full podSetUpdates.
//   - A message never changes state or podSetUpdates. It is rewritten when
//     its reason changes; when only numbers changed, once a minute at most.
//   - A pod is released once: gate and pin in one patch.
//
// After a write the cache is behind for a moment. Behind says so, so that no
// cycle decides on a picture that lacks our own last writes.
//
// Concurrency: none; one goroutine owns an Applier. What it remembers may be
// lost at any time: at worst a message or an event is written once more.
//
// Layer 3: no import of `admission/observe`. Tested with a writer in memory
// here, and against a real API server and Kueue in tests/integration.
package apply
