// Package fairshare divides what a pool has among its queues.
//
// Divide is pure and exact: integers in thousandths of a GPU, whole GPUs where
// that is possible, the same result whatever the order of the input. The three
// steps at each level of the tree: what is deserved; over-quota by priority and
// weight; remainders by the largest fraction. Shares depend on what queues ask
// for, never on what they hold.
//
// Layer 1. Tested with the known results of tests/scenarios, and against a slow
// oracle in rational numbers.
package fairshare
