// Package explain turns decisions and refusals into the one sentence that
// their owner reads: on the admission check of a Workload, in events, later in
// the command line tool.
//
// One table holds every reason code with who can act. Sentences carry numbers,
// stay below 300 characters and are stable: the same facts, the same text, since
// every change is a write and an event.
//
// Layer 1. Golden-tested; a test walks all reasons so that none lacks text.
package explain
