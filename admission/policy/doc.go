// Package policy turns the spec of a FairSharePolicy into the planner's policy:
// defaults filled in, and one clear error for everything that is wrong.
//
// Layer 2. Tested with tables.
package policy
