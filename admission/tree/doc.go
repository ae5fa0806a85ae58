// Package tree is the queues of a snapshot as a forest.
//
// Build never fails and never loops: what is wrong with a queue is returned as
// a Problem, and everything below it is unusable. It knows no workload and no
// capacity.
//
// Layer 1. Tested with tables and with a property that feeds it random parents.
package tree
