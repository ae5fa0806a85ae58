// Package render turns a cluster's state into command lines and configuration
// files of its programs: etcd, API server, controller manager, scheduler,
// kubelet, containerd, CNI and Kueue.
//
// Pure: values in, bytes out; nothing is read or written here. Paths inside a
// node's mount namespace are the standard ones (/run, /var/lib/kubelet), paths
// outside are below the cluster's directory. Why a setting is there is said
// next to it; settings that only repeat a default are left out.
//
// Tested by golden checks of the points that must hold.
package render
