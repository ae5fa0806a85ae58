// Package nvml reads a node's GPUs from the driver library; it is the only
// importer of go-nvml.
//
// Open loads the library from an explicit path (FindLibrary looks for it below
// a driver root), Inventory describes every GPU as plain values. A GPU that
// fails does not hide the others: Inventory returns the good ones together with
// an error that says what is wrong with the rest. Calls that old drivers do not
// have are looked up first, since calling an absent symbol ends the process.
//
// It holds no state besides the open library and is safe for one goroutine.
//
// Layer 3. One contract suite runs over the real library path, on the
// simulated library of tests/gpusim, and over fakenvml.
package nvml
