// Program fairshard-admission decides which Kueue Workloads run on which
// GPUs: flags and environment in, controller.Run.
package main

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairshard/fairshard/admission/controller"
)

const long = `fairshard-admission is the fair-share admission controller.

It answers Kueue's AdmissionChecks with controllerName fairshard.dev/admission:
a Workload that asks for GPUs starts when its whole gang fits on free devices,
and waits with a message that says why otherwise. Its webhook charges Workloads
in milligpu; its placer pins every gated pod to the node it was planned for.

Every flag can also be set in the environment: --webhook-port is
FAIRSHARD_WEBHOOK_PORT. A flag wins over the environment.`

const example = `  # in a cluster, as deployments/base does
  fairshard-admission

  # on this machine against a cluster, with certificates that already exist
  fairshard-admission --kubeconfig ~/.kube/config --leader-elect=false --webhook-cert-dir ./certs`

func main() {
	if err := command().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "fairshard-admission:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	options := controller.Options{}
	var kubeconfig string
	var verbosity int
	cmd := &cobra.Command{
		Use:           "fairshard-admission",
		Short:         "Decide which Workloads run on which GPUs",
		Long:          long,
		Example:       example,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		PreRunE:       func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd.Flags()) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return fmt.Errorf("find the cluster: %w", err)
			}
			ctrl.SetLogger(logger(verbosity))
			options.Config = config
			return controller.Run(cmd.Context(), options)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "kubeconfig file; empty = the pod's service account")
	flags.IntVarP(&verbosity, "verbosity", "v", 0, "log level: 0 decisions and problems, 1 every cycle")
	addFlags(flags, &options)
	return cmd
}

func addFlags(flags *pflag.FlagSet, o *controller.Options) {
	flags.StringVar(&o.WebhookHost, "webhook-host", "", "address the webhook listens on; empty = every address")
	flags.IntVar(&o.WebhookPort, "webhook-port", 9443, "port the webhook listens on")
	flags.StringVar(&o.WebhookCertDir, "webhook-cert-dir", "",
		"folder with tls.crt and tls.key that somebody else keeps, with the caBundle of the webhook configurations; empty = keep both ourselves")
	flags.StringVar(&o.WebhookService, "webhook-service", "fairshard-admission", "name of the webhook's Service, part of the certificate's DNS names")
	flags.StringVar(&o.WebhookConfiguration, "webhook-configuration", "fairshard-admission", "name of the two webhook configurations that get the caBundle")
	flags.StringVar(&o.CertSecret, "cert-secret", "fairshard-admission-cert", "Secret that keeps the webhook's certificate")
	flags.StringVar(&o.Namespace, "namespace", namespace(), "namespace of the Secret and of the leader's Lease (default: POD_NAMESPACE)")
	flags.BoolVar(&o.LeaderElection, "leader-elect", true, "decide only while holding the leader's Lease; every replica serves the webhook")
	flags.StringVar(&o.MetricsAddress, "metrics-addr", ":8080", "address of the metrics server; 0 = none")
	flags.StringVar(&o.HealthAddress, "health-addr", ":8081", "address of /healthz and /readyz; 0 = none")
	flags.DurationVar(&o.Period, "cycle-period", 5*time.Second, "longest time between two cycles; every change starts one anyway")
	flags.DurationVar(&o.Debounce, "cycle-debounce", 75*time.Millisecond, "how long a cycle waits for more changes after the first")
	flags.BoolVar(&o.DebugSnapshot, "debug-snapshot", false,
		"serve the last cycle's input and decisions at /debug/snapshot of the metrics server, for kubectl-fairshard replay")
	flags.DurationVar(&o.MessageInterval, "message-interval", time.Minute, "shortest time between two messages on a waiting Workload that differ only in numbers")
}

// fromEnvironment sets every flag that was not given from FAIRSHARD_<FLAG>.
func fromEnvironment(flags *pflag.FlagSet) error {
	var failure error
	flags.VisitAll(func(f *pflag.Flag) {
		name := "FAIRSHARD_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if value, set := os.LookupEnv(name); set && !f.Changed && failure == nil {
			if err := flags.Set(f.Name, value); err != nil {
				failure = fmt.Errorf("read %s: %w", name, err)
			}
		}
	})
	return failure
}

func namespace() string {
	if n := os.Getenv("POD_NAMESPACE"); n != "" {
		return n
	}
	return "fairshard-system"
}

// logger writes JSON lines; logr's verbosity grows where slog's level falls.
func logger(verbosity int) logr.Logger {
	return logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.Level(-verbosity)}))
}
