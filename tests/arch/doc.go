// Package arch holds the structure rules of the repository as tests: which
// package may import which, that every package has a doc.go and a row in
// ARCHITECTURE.md, and that no file names a machine or a registry.
//
// The rules are plain data (rules.go) with the reason as text. A test breaks
// each kind of rule on purpose, so that a rule that stopped biting is noticed.
package arch
