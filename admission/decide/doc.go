// Package decide is the planner: who starts, who waits, who gives way.
//
// Cycle takes one snapshot and returns decisions. Its steps, in order:
//
//	settle       what started work holds or was promised is set aside
//	keep         work that others were evicted for takes its place
//	allocate     waiting work takes free devices, the least served queue first
//	consolidate  others move so that it fits, if all of them fit elsewhere
//	reclaim      other queues give back what is above their share
//	preempt      less important work of the same queue gives way
//	stale        gangs that ran short for too long end
//
// Trials run on a copy of the devices and of the queues' usage that is kept or
// dropped; nothing is evicted unless the requester fits afterwards. Devices are
// kept in two rooms: hard is what is free now, soft is what will be free once
// everything that is leaving has left.
//
// What it must not do: read a clock, keep state between cycles, depend on the
// order of its input. Every loop is bounded by the number of workloads, pods or
// nodes, or by a constant that stands beside it.
//
// Layer 1. Tested with tables, with properties against slow oracles, and by the
// scenarios of tests/scenarios.
package decide
