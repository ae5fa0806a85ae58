// Package partition turns a node's inventory into what the node offers: for
// every GPU one whole device, one share device, and one counter set that
// both consume entirely, so that the first use of one kind excludes the other.
//
// Input is an inventory.Inventory and a Config, output a Layout: plain values
// in published order. The order is policy: the scheduler takes the first
// device that fits, so shares (ascending by PCI address) pack from one end
// and whole GPUs (descending) from the other.
//
// It knows no Kubernetes type; `kubeletplugin/wire` translates a Layout to
// ResourceSlices. Same inventory, same layout, byte for byte.
//
// Layer 1. Tested with tables and properties.
package partition
