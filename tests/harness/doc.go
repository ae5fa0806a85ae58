// Package harness sets up what the demo, the integration tests and the
// end-to-end tests share: a one-machine cluster (tests/cluster, run as a
// program), simulated GPUs on its nodes (tests/gpusim), images of our own
// programs, and the product's manifests with the changes that one machine
// needs (no service network, so webhooks by URL).
//
// It expects the programs in bin/ (make build) and talks to the cluster
// through kubectl and a controller-runtime client. Every wait is on a
// condition with a deadline; a failed wait says what was seen last.
package harness
