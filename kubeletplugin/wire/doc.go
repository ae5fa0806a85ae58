// Package wire translates between the API's objects and our values: offers to
// slices, an allocated ResourceClaim to a ledger claim, a ledger claim to a CDI
// spec and to the answer for the kubelet.
//
// In and out: values. No I/O and no client, and the upstream helper's types stay
// with the callers, because they bring a client with them.
// Names made here are part of the API between versions of the plugin: the CDI
// device IDs of a running container must not change over an update.
//
// Layer 2. No state, safe for concurrent use. Tested with golden files, and by
// giving our slices to the upstream allocator, which must place claims as the
// design says.
package wire
