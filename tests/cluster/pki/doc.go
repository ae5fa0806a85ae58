// Package pki makes the certificates and kubeconfig files of a cluster: one
// authority, one key pair for service-account tokens, and a certificate per
// server and per client.
//
// Inputs are names, outputs are PEM bytes; Store keeps them as files below one
// folder and makes each only once, so a second `up` changes nothing. Keys are
// ECDSA P-256 and certificates live ten years: this is a test cluster.
//
// It imports nothing of Kubernetes. Not safe for concurrent use of one Store.
// Tested without root, by verifying what it made with crypto/x509.
package pki
