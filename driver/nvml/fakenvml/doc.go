// Package fakenvml answers from memory what driver/nvml answers from the
// driver library, for tests of what stands on top. The contract suite of
// driver/nvml runs over both. Safe for concurrent use.
//
// Layer 3; only tests use it.
package fakenvml
