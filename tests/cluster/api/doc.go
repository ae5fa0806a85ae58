// Package api is a very small client of the Kubernetes API server: server-side
// apply of decoded manifests, reads, and nothing else.
//
// The cluster program uses it instead of client-go so that it builds in seconds
// on a cold machine, before anything else is there. It knows the few kinds that
// `up` applies; other kinds are an error.
//
// Safe for concurrent use. Tested against an httptest server.
package api
