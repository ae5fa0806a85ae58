// Package v1alpha1 is the opaque parameters that a claim may carry for our
// driver, and the rules that a claim spec must keep.
//
// In: raw parameters or a ResourceClaim spec. Out: a ShareConfig with defaults
// filled in, or errors that say what is wrong, why, and what to do.
// The validating webhook and the kubelet plugin call the same functions, so
// what the webhook admits is what the plugin prepares.
// Rules of change: a field is only added, with a default that keeps old claims
// as they are; anything else is a new version next to this one.
//
// Layer 2: API types only, no client and no I/O. No state, safe for concurrent
// use. Tested with tables and a fuzz test of Decode.
package v1alpha1
