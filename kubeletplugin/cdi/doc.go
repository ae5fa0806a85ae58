// Package cdi keeps the files of a claim that a container sees: its CDI spec in
// the runtime's CDI folder, and its limits file in the claim folder.
//
// In: a finished spec or finished limits. Out: files, written to a temporary
// name and renamed. Writing what is already there does nothing, so Prepare can
// ask for it every time. Nothing is synced to disk: both files can be built again
// from the claim's record, and are, at start and at every Prepare.
//
// It only ever touches files that carry our prefix or lie in our claim folder.
// It must not know how a spec comes about: `kubeletplugin/wire` builds it.
//
// Layer 3: the file system and nothing else. Safe for concurrent use for
// different claims. Tested on real folders.
package cdi
