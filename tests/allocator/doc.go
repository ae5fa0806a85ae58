// Package allocator holds the planner's model of a node against the allocator
// that kube-scheduler runs: for random nodes, as the driver publishes them, and
// random pods, snapshot.Room must place a pod if and only if the allocator
// does, and on the same GPUs. Where the two differ, the allocator is right.
//
// It has tests only. MIG devices are not covered: the driver does not publish
// them yet.
package allocator
