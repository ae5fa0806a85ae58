// Package daemon starts, finds and stops the long-running programs of a cluster.
//
// A daemon is a session leader whose environment names its cluster and itself
// (FAIRSHARD_CLUSTER, FAIRSHARD_DAEMON). Everything it starts inherits the first
// mark. So there are no pid files that could lie: what runs is read from /proc,
// and a crash of `up` between two steps loses nothing.
//
// Each daemon writes to one log file; Tail returns its end for error messages.
// The package knows no program by name and reads no cluster state.
//
// Safe for concurrent use. Tested with short-lived real processes, without root.
package daemon
