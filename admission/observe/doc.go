// Package observe turns the cluster, as informers see it, into one View per
// cycle: the objects, read once, that the snapshot is built from and that
// decisions are written on.
//
// In: a cached reader. Out: a View, whose lists are copies: nothing in it
// changes during the cycle. It only reads: it writes nothing, decides nothing
// and translates nothing (`admission/kueue` does). What it caches is kept
// small: of all pods only those of work that we started, and of no object
// its managedFields.
//
// Concurrency: Read and Watch may be called from any goroutine.
//
// Layer 3: no import of `admission/apply`. Tested against a real API server
// in tests/integration.
package observe
