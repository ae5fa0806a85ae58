// Package scenario reads scenario files: a small cluster written by hand, and
// what should happen in it. The format is documented in tests/scenarios.
//
// Parse checks everything it can know: unknown fields with their line, names
// that do not exist, numbers that cannot be, running work that does not fit.
// It decides nothing and reads no file.
//
// Layer 2. Tested with tables of bad files and a fuzz target; the good files
// are run in tests/scenarios.
package scenario
