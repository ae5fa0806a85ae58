// Package cli is what kubectl-fairshard does: files in, text out, and an exit
// code. It reads files and writes to the given writers; it decides nothing.
//
// Exit codes: 0 all as expected, 1 a mismatch, 2 a file or the command line is
// wrong; 2 wins.
//
// Layer 4. Tested by running commands on files.
package cli
