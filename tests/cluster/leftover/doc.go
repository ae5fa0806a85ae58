// Package leftover finds and removes everything that a cluster has on the
// machine besides its directory: processes, cgroups, mounts and interfaces.
//
// It needs no record of what was started. Processes are known by the mark in
// their environment or by their cgroup, cgroups by the name that the cluster's
// directory gives, mounts by lying below the directory, interfaces by an address
// of the pod range. So it also cleans up after an `up` that was killed half way.
//
// Processes are killed, not asked: their data is removed next. Killing the last
// process of a node ends its mount and network namespaces, and with them nearly
// everything else; what the kernel has not yet taken away is waited for.
//
// Parsing is pure and tested on fixtures of cgroup v1 and v2; the rest by the
// cluster test under root.
package leftover
