// Package kubeletplugin is the program on every GPU node: it answers the
// kubelet's calls to prepare and unprepare claims, and publishes the node's GPUs.
//
// It translates a call (`wire`), asks what to do (`driver/ledger`), does it
// (`store`, `cdi`) and translates the answer back. What may be prepared is
// decided in the ledger and nowhere else; which GPUs are offered in
// `driver/partition`.
//
// Start: load the records, compare them with the files containers see, complete
// or clean up, then serve, then publish. The driver library may be absent at any
// time: claims are still released, and prepared claims are still answered.
// Claims whose API object is gone are released by a periodic collection, so
// that nothing is left behind when the kubelet forgot them.
//
// Locks: a lock per claim is held while its effects run, so calls for different
// claims run side by side; Plugin.mu guards the ledger state and the hardware
// facts, is taken after a claim's lock, and never held during I/O.
//
// Layer 4. Tested over real unix sockets with the upstream helper, a fake API
// and temporary folders: repeated and concurrent calls, restarts without any
// clean-up, damaged and missing files.
package kubeletplugin
