// Package cli is the command line of fairshard-cluster: flags in, one call of
// package cluster, text or JSON out.
//
// It holds no logic of its own. The hidden command "internal" is how the program
// starts parts of itself inside mount namespaces.
package cli
