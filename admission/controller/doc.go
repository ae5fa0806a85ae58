// Package controller is the assembly of the admission controller: manager,
// caches, webhook server, certificate, leader election and the loop.
//
// One goroutine, the loop, owns everything that decides or writes. A turn
// reads a View (`admission/observe`), translates it (`admission/kueue`),
// decides (`admission/decide`), and carries the decisions out
// (`admission/apply`). The same turn keeps the few objects that are ours: the
// Active condition of our AdmissionChecks, the headroom of managed root
// Cohorts, and a nudge for Workloads whose charge could now be worked out.
// Any change in the cluster starts a turn after a short debounce, and a
// period does when nothing changes. The loop waits until the cache shows its
// own last writes, so it never decides twice on one picture.
//
// After a restart everything is rebuilt from the cluster.
//
// Layer 4. Tested against a real API server and Kueue in tests/integration.
package controller
