// Command fairshard-kubelet-plugin is the program on every GPU node: it
// publishes the node's GPUs and prepares claims for the kubelet.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/fairshard/fairshard/driver/nvml"
	"github.com/fairshard/fairshard/kubeletplugin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	defer klog.Flush()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "fairshard-kubelet-plugin:", err)
		klog.Flush()
		os.Exit(1) //nolint:gocritic // what is deferred was done by hand.
	}
}

// options are the flags that do not go into the plugin as they are.
type options struct {
	kubeconfig string
	qps        float32
	burst      int
}

func command() *cobra.Command {
	var config kubeletplugin.Config
	var o options
	c := &cobra.Command{
		Use:           "fairshard-kubelet-plugin",
		Short:         "Publishes the GPUs of a node and prepares claims for its kubelet",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(c *cobra.Command, _ []string) error {
			return run(c.Context(), config, o)
		},
	}
	f := c.Flags()
	text := func(p *string, name, env, def, usage string) {
		if value, set := os.LookupEnv(env); set {
			def = value
		}
		f.StringVar(p, name, def, usage+" [$"+env+"]")
	}
	text(&config.NodeName, "node-name", "NODE_NAME", "", "name of this node; mandatory")
	text(&config.DriverRoot, "driver-root", "DRIVER_ROOT", "/driver-root", "root of the GPU driver, as this process sees it")
	text(&config.HostDriverRoot, "host-driver-root", "HOST_DRIVER_ROOT", "/run/nvidia/driver", "root of the GPU driver on the host")
	text(&config.PluginsDir, "kubelet-plugins-dir", "KUBELET_PLUGINS_DIR", "/var/lib/kubelet/plugins", "the kubelet's folder of plugins; the same path here and on the host")
	text(&config.RegistryDir, "kubelet-registry-dir", "KUBELET_REGISTRY_DIR", "/var/lib/kubelet/plugins_registry", "the kubelet's folder of registration sockets")
	text(&config.CDIDir, "cdi-dir", "CDI_DIR", "/var/run/cdi", "the container runtime's folder of CDI specs")
	text(&config.HealthAddr, "health-addr", "HEALTH_ADDR", "", "address of /healthz and /readyz, e.g. 127.0.0.1:8099; empty for none")
	text(&o.kubeconfig, "kubeconfig", "KUBECONFIG", "", "kubeconfig file; empty for the service account of the pod")
	f.Float32Var(&o.qps, "kube-api-qps", 50, "requests per second to the API server: one or more per claim of a burst")
	f.IntVar(&o.burst, "kube-api-burst", 100, "requests to the API server at once")
	addLogFlags(c)
	return c
}

// addLogFlags adds klog's verbosity, without the rest of its flags.
func addLogFlags(c *cobra.Command) {
	set := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(set)
	c.Flags().AddGoFlag(set.Lookup("v"))
	c.Flags().AddGoFlag(set.Lookup("vmodule"))
}

func run(ctx context.Context, config kubeletplugin.Config, o options) error {
	client, err := newClient(o)
	if err != nil {
		return err
	}
	config.Client = client
	config.Open = openLibrary
	klog.FromContext(ctx).Info("Starting", "node", config.NodeName, "driverRoot", config.DriverRoot, "dataDir", config.DataDir())
	return kubeletplugin.Run(ctx, config)
}

// openLibrary finds and loads the driver's own NVML below root.
func openLibrary(root string) (kubeletplugin.Library, error) {
	path, err := nvml.FindLibrary(root)
	if err != nil {
		return nil, err
	}
	return nvml.Open(path)
}

func newClient(o options) (kubernetes.Interface, error) {
	config, err := restConfig(o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("load the identity for the API server: %w", err)
	}
	config.QPS, config.Burst = o.qps, o.burst
	config.UserAgent = "fairshard-kubelet-plugin"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create API client: %w", err)
	}
	return client, nil
}

func restConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}
