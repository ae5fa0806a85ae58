// Package inventory is the immutable picture of one node's GPUs: plain values,
// sorted by PCI address, comparable with ==.
//
// `driver/nvml` fills it, `driver/partition` turns it into offers. It knows no
// NVML, no Kubernetes and no policy.
//
// Layer 1: standard library and `classes` only. Tested with tables.
package inventory
