// Package store keeps the claims of the node on disk: one JSON file per claim,
// <dir>/<claim UID>.json.
//
// In: ledger entries to save or remove. Out: at start, every entry that can be
// read, and the UIDs of those that cannot. A file is written to a temporary
// name, synced, renamed and its folder synced, so after a crash there is the old
// file or the new one, never half of one. A file that cannot be read is moved to
// <dir>/../quarantine with its reason in a file next to it, and never stops the
// others.
//
// The files are an interface between versions of the plugin: they hold our own
// structs only, never an upstream or ledger type. Rules of change: a field is
// only added and may be missing; a change of meaning raises the version, and the
// fixtures under testdata are kept for every version.
//
// Layer 3: the file system and nothing else. Safe for concurrent use for
// different claims. Tested on real folders, with fixtures, and with damaged files.
package store
