// Package namespace runs a program in a mount namespace of its own or in the
// one of another process.
//
// It is how one machine looks like several: inside a node's namespace the
// standard paths (/run, /var/lib/kubelet, ...) are that node's folders. The new
// namespace is first cut off from the host (private), then made shared again,
// so mounts of pods spread inside the node and never reach the host. It ends,
// with all its mounts, when its last process ends.
//
// ExecNew and ExecIn replace the calling process, so the pid stays. They must be
// called on the process's first thread: a process whose other thread calls exec
// looks dead for a moment, and whoever watches it would believe that. Needs
// CAP_SYS_ADMIN.
//
// Tested by the cluster test under root; the argument format by a table.
package namespace
