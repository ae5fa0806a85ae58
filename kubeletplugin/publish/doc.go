// Package publish hands the node's pool to the upstream helper, which writes the
// ResourceSlices.
//
// In: a wire.Pool. Out: calls of PublishResources. The helper repairs slices that
// others change, but only half a minute later; Again publishes the same pool at
// once, for the moment when a kubelet registers, since a starting kubelet wipes
// all slices of its node.
//
// It must not decide what is offered: `driver/partition` does. Until the first
// Publish nothing is written, so that a node whose GPUs are not known yet keeps
// what it had.
//
// Layer 3: the API through the helper. Safe for concurrent use. Tested with a
// fake helper.
package publish
