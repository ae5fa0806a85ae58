package render

import (
	"fmt"
	"strconv"

	"sigs.k8s.io/yaml"

	"github.com/fairshard/fairshard/tests/cluster/state"
)

const loopback = "127.0.0.1"

// ServiceCIDR is the range of service addresses. Nothing routes them (no
// kube-proxy runs), so every cluster may use the same one.
const ServiceCIDR = "10.96.0.0/16"

// Etcd is the argument list of etcd. It never syncs to disk: the data of a test
// cluster need not survive a power cut, and syncing dominates every write.
func Etcd(s *state.State) []string {
	client := fmt.Sprintf("http://%s:%d", loopback, s.Port(state.PortEtcd))
	peer := fmt.Sprintf("http://%s:%d", loopback, s.Port(state.PortEtcdPeer))
	return []string{
		"--name=fairshard",
		"--data-dir=" + s.Path("etcd"),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=fairshard=" + peer,
		"--unsafe-no-fsync",
		"--quota-backend-bytes=2147483648",
		"--log-level=warn",
	}
}

// APIServer is the argument list of kube-apiserver. nodeIP is an address of this
// machine other than loopback, which the server insists on announcing; it
// listens on loopback only.
func APIServer(s *state.State, nodeIP string) []string {
	pki := func(name string) string { return s.Path("pki", name) }
	return []string{
		"--etcd-servers=" + fmt.Sprintf("http://%s:%d", loopback, s.Port(state.PortEtcd)),
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(s.Port(state.PortAPIServer)),
		"--advertise-address=" + nodeIP,
		"--service-cluster-ip-range=" + ServiceCIDR,
		"--client-ca-file=" + pki("ca.crt"),
		"--tls-cert-file=" + pki("kube-apiserver.crt"),
		"--tls-private-key-file=" + pki("kube-apiserver.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + pki("sa.pub"),
		"--service-account-signing-key-file=" + pki("sa.key"),
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		// For kubectl logs and exec: reach kubelets by address, names do not resolve.
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-certificate-authority=" + pki("ca.crt"),
		"--kubelet-client-certificate=" + pki("kubelet-client.crt"),
		"--kubelet-client-key=" + pki("kubelet-client.key"),
		"--max-requests-inflight=1200",
		"--max-mutating-requests-inflight=600",
		"--profiling=false",
		"--v=1",
	}
}

// ControllerManager is the argument list of kube-controller-manager, with all
// default controllers. The client limits are ten times the default, so that
// tests with many pods measure us and not the limiter.
func ControllerManager(s *state.State) []string {
	kubeconfig := s.Path("config", "kube-controller-manager.kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(s.Port(state.PortController)),
		"--root-ca-file=" + s.Path("pki", "ca.crt"),
		"--service-account-private-key-file=" + s.Path("pki", "sa.key"),
		"--cluster-signing-cert-file=" + s.Path("pki", "ca.crt"),
		"--cluster-signing-key-file=" + s.Path("pki", "ca.key"),
		"--use-service-account-credentials=true",
		"--leader-elect=false",
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		"--profiling=false",
		"--v=1",
	}
}

// Scheduler is the argument list of kube-scheduler.
func Scheduler(s *state.State) []string {
	kubeconfig := s.Path("config", "kube-scheduler.kubeconfig")
	return []string{
		"--config=" + s.Path("config", "kube-scheduler.yaml"),
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=" + loopback,
		"--secure-port=" + strconv.Itoa(s.Port(state.PortScheduler)),
		"--v=1",
	}
}

// SchedulerConfig is the scheduler's configuration file: the stock profile with
// higher client limits.
func SchedulerConfig(s *state.State) ([]byte, error) {
	return yaml.Marshal(map[string]any{
		"apiVersion":     "kubescheduler.config.k8s.io/v1",
		"kind":           "KubeSchedulerConfiguration",
		"leaderElection": map[string]any{"leaderElect": false},
		"clientConnection": map[string]any{
			"kubeconfig": s.Path("config", "kube-scheduler.kubeconfig"), "qps": 200, "burst": 400,
		},
	})
}
