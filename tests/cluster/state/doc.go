// Package state is the written memory of one cluster: which directory it lives
// in, which ports and pod subnets it uses, which nodes it has, and where every
// file of it lies.
//
// A cluster is named by its absolute directory. Everything that must survive a
// crash of `up` is either in DIR/cluster.json or can be derived from the
// directory's name (its id, and through it the cgroup that holds its pods), so
// `down` works even when cluster.json was never written.
//
// The choice of ports and subnets is pure: the caller passes what is taken.
// Only Load, Save and Lock touch the disk. The package starts no process and
// opens no connection. Its values are not safe for concurrent writes; the lock
// file makes sure that one command at a time works on a cluster.
//
// Tested by tables in this folder, without root.
package state
