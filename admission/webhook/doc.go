// Package webhook answers the API server's admission calls: it charges Kueue
// Workloads in milligpu and refuses claims that could never be prepared.
//
// In: admission reviews for Workloads (MutatePath), ResourceClaims and
// ResourceClaimTemplates (ValidatePath). Out: a JSON patch that touches only
// what the charge needs, or a refusal with a message. What a Workload asks
// for is read from informer caches and worked out by `admission/kueue`; this
// package only carries the answer. Work that names none of our devices is
// never changed and never blocked; when the caches cannot be read, the call
// fails with a clear text, because an uncharged Workload must not pass.
//
// It also keeps the serving certificate: Rotator stores it in one Secret,
// serves it from memory and writes its authority into the two webhook
// configurations. cert-controller was tried first: it serves only files that
// the kubelet mounts from the Secret (a minute late on the first start), and
// it ends the process to load a new one; neither works for a process that is
// started by a test or on the host.
//
// Concurrency: handlers hold no state; Rotator has one goroutine and hands
// the certificate over through an atomic pointer.
//
// Layer 4. Tested with reviews in memory here and against a real API server
// and Kueue in tests/integration.
package webhook
