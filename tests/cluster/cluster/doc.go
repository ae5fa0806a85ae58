// Package cluster brings a cluster up on this machine and takes it down again:
// it joins the packages next to it and is the only one that knows the order.
//
// Order of start: etcd, API server, then at once controller manager, scheduler,
// Kueue and the nodes (mount namespace, containerd, pause image, kubelet). Every
// step first looks whether its work is already done, so a second Up repairs what
// died and touches nothing else. Everything is told from /proc and from the API;
// a record that could be wrong after a crash does not exist.
//
// Down does not stop things in order: it kills everything of the cluster, waits
// for the kernel to take away namespaces, cgroups and interfaces, and removes
// the files. Commands on one cluster exclude each other by a lock in its folder.
//
// Tested by cluster_test.go under root when FAIRSHARD_CLUSTER_TEST=1.
package cluster
