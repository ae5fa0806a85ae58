// Package integration runs the admission controller in this process against
// a real API server, kube-scheduler, controller-manager and Kueue, with fake
// Nodes and hand-made ResourceSlices. No kubelet runs, so pods never start;
// what Kubernetes, Kueue and we write about them is what is tested.
//
// It turns the facts about Kueue that the design stands on into tests: when a
// new Kueue breaks one, it shows here.
//
// `make integration` sets FAIRSHARD_INTEGRATION=1, which starts a cluster and
// ends it; FAIRSHARD_KUBECONFIG names one that runs already. Without both the
// tests are skipped, unless FAIRSHARD_REQUIRE_CLUSTER=1 says that a cluster
// must be there.
package integration
