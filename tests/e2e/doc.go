// Package e2e runs the product as a user would: the example of the README on
// a real one-machine cluster with real kubelets and containers, then more
// work, bad input and kills on the same cluster, then its end.
//
// `make e2e` runs it. Without FAIRSHARD_E2E=1 it skips, because it needs
// root, the programs in bin/ and some minutes; with it, anything missing is a
// failure.
package e2e
