// Package isolation is what a claim is told about its limits: the enforcement
// tier, the bytes of every GPU it holds, and the limits file that carries both
// into the container.
//
// In: the devices of one claim. Out: Limits, and its text form.
// The limits file is an interface between the driver, the containers and, later,
// the preloaded C library, so its format is defined here once, by Encode and
// Parse. Rules of change: a reader refuses another version and ignores keys it
// does not know; a key never changes its meaning.
//
// Layer 1: standard library and `classes` only; it must not touch files, since
// the same bytes are written by the plugin and compared by tests.
// No state, safe for concurrent use. Tested with tables, a property (parse what
// was encoded) and a fuzz test of Parse.
package isolation
