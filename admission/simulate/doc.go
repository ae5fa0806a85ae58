// Package simulate runs the planner on a scenario without any cluster.
//
// Run carries out the decisions of each cycle on plain values, with devices
// chosen as kube-scheduler would, until nothing changes; then it compares what
// happened with what the scenario expects. It decides nothing itself and knows
// no file format.
//
// Layer 1. Tested by the scenarios of tests/scenarios, and used by the property
// tests of the planner.
package simulate
