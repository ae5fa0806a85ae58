// Package gpusim makes simulated GPUs: our own `libnvidia-ml.so.1` in C (lib/),
// which answers from a table file beside it, and the Go side that writes the
// table from a YAML profile and lays both out below a driver root, together
// with stand-ins for the device nodes.
//
// The driver runs on it unchanged, through go-nvml. It is a tool for tests and
// demos and is never shipped in the product's image. A call that the library
// does not know is absent from it, as it is from an old driver.
//
// The table's layout is written down twice, in table.go and lib/table.h; the
// static assertions there and a test that asks the C compiler keep them one.
package gpusim
