package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/controller"
	"github.com/fairshard/fairshard/tests/harness"
)

const (
	envKubeconfig = "FAIRSHARD_KUBECONFIG"
	envStart      = "FAIRSHARD_INTEGRATION"
	envRequire    = "FAIRSHARD_REQUIRE_CLUSTER"

	systemNamespace = "fairshard-system"
	ownName         = "fairshard-admission"
	checkName       = "fairshard"

	// soon is how long anything may take that should happen at once.
	soon = 30 * time.Second
)

// cluster is the one cluster that all tests of this package share.
var cluster struct {
	ctx    context.Context //nolint:containedctx // of the whole run; a restarted controller outlives its test
	config *rest.Config
	client client.Client
	admin  *running
	// tool runs the cluster program; nil for a cluster that others started.
	tool func(ctx context.Context, args ...string) error
	port int
}

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := runAll(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		code = 1
	}
	os.Exit(code)
}

func runAll(m *testing.M) (int, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	path, down, err := findCluster(ctx)
	if err != nil {
		return 1, err
	}
	defer down()
	if path == "" {
		return m.Run(), nil // every test skips
	}
	logs := io.Discard
	if testing.Verbose() {
		logs = io.Writer(os.Stderr)
	}
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(logs, nil)))
	cluster.ctx = ctx
	if err := connect(ctx, path); err != nil {
		return 1, err
	}
	if err := startController(); err != nil {
		return 1, err
	}
	code := m.Run()
	return code, stopController()
}

// findCluster returns the kubeconfig of the cluster to use, "" for none, and
// what ends the cluster if it was started for this run.
func findCluster(ctx context.Context) (kubeconfig string, down func(), err error) {
	if path := os.Getenv(envKubeconfig); path != "" {
		return path, func() {}, nil
	}
	if os.Getenv(envStart) != "1" {
		if os.Getenv(envRequire) == "1" {
			return "", nil, fmt.Errorf("%s=1 demands a cluster, but neither %s nor %s is set", envRequire, envKubeconfig, envStart)
		}
		return "", func() {}, nil
	}
	dir, err := os.MkdirTemp("", "fairshard-integration")
	if err != nil {
		return "", nil, fmt.Errorf("make the cluster's folder: %w", err)
	}
	started, err := harness.Up(ctx, harness.Options{Dir: dir, Log: os.Stderr})
	if err != nil {
		return "", nil, err
	}
	cluster.tool = started.Tool
	return started.Kubeconfig, func() {
		if err := started.Down(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "integration: end the cluster:", err)
		}
		_ = os.RemoveAll(dir)
	}, nil
}

// needCluster skips a test when there is no cluster, naming what is missing.
func needCluster(t *testing.T) {
	t.Helper()
	if cluster.client == nil {
		t.Skipf("needs a cluster: set %s to use one, or %s=1 to start one (make integration does)", envKubeconfig, envStart)
	}
}

func connect(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read %s: %w", envKubeconfig, err)
	}
	config.QPS, config.Burst = 200, 400
	c, err := client.New(config, client.Options{Scheme: harness.Scheme()})
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if cluster.port, err = harness.FreePort(ctx); err != nil {
		return err
	}
	cluster.config, cluster.client = config, c
	return install(ctx, c)
}

// install applies what deployments/base says about the API, but none of its
// pods: the controller runs in this process and is called by URL.
func install(ctx context.Context, c client.Client) error {
	for _, file := range []string{
		"namespace.yaml", "deviceclasses.yaml", "gate.yaml", "claimpolicies.yaml", "admission.yaml", "webhooks.yaml", "admissioncheck.yaml",
	} {
		content, err := os.ReadFile(filepath.Join("..", "..", "deployments", "base", file))
		if err != nil {
			return fmt.Errorf("read manifest: %w", err)
		}
		reader := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
		for {
			var object unstructured.Unstructured
			if err := reader.Decode(&object.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return fmt.Errorf("decode %s: %w", file, err)
			}
			if err := installObject(ctx, c, &object); err != nil {
				return fmt.Errorf("apply %s: %w", file, err)
			}
		}
	}
	return nil
}

func installObject(ctx context.Context, c client.Client, object *unstructured.Unstructured) error {
	if kind := object.GetKind(); kind == "Deployment" || kind == "Service" {
		return nil
	}
	if strings.HasSuffix(object.GetKind(), "WebhookConfiguration") {
		hooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
		if err != nil {
			return err
		}
		for _, hook := range hooks {
			path, _, _ := unstructured.NestedString(hook.(map[string]any), "clientConfig", "service", "path")
			hook.(map[string]any)["clientConfig"] = map[string]any{"url": fmt.Sprintf("https://localhost:%d%s", cluster.port, path)}
		}
		if err := unstructured.SetNestedSlice(object.Object, hooks, "webhooks"); err != nil {
			return err
		}
	}
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("integration"), client.ForceOwnership)
}

// running is one run of the controller.
type running struct {
	cancel context.CancelFunc
	done   chan error
}

// startController runs the controller and waits until it serves: its
// authority is in the webhook configurations and its check is active.
func startController() error {
	ctx, cancel := context.WithCancel(cluster.ctx)
	r := &running{cancel: cancel, done: make(chan error, 1)}
	// With the rights of the product's own ServiceAccount and no more.
	config := rest.CopyConfig(cluster.config)
	config.Impersonate.UserName = "system:serviceaccount:" + systemNamespace + ":" + ownName
	config.Impersonate.Groups = []string{"system:serviceaccounts", "system:authenticated"}
	go func() {
		r.done <- controller.Run(ctx, controller.Options{
			Config: config, Namespace: systemNamespace,
			WebhookHost: "127.0.0.1", WebhookPort: cluster.port,
			WebhookService: ownName, WebhookConfiguration: ownName, CertSecret: ownName + "-cert",
			MetricsAddress: "0", HealthAddress: "0", LeaderElection: true,
		})
	}()
	cluster.admin = r
	return harness.Wait(ctx, soon, "the admission controller", func() (bool, string) {
		select {
		case err := <-r.done:
			r.done <- err
			return false, fmt.Sprintf("it ended: %v", err)
		default:
		}
		var hooks admissionv1.MutatingWebhookConfiguration
		if err := cluster.client.Get(ctx, client.ObjectKey{Name: ownName}, &hooks); err != nil {
			return false, err.Error()
		}
		var check kueuev1.AdmissionCheck
		if err := cluster.client.Get(ctx, client.ObjectKey{Name: checkName}, &check); err != nil {
			return false, err.Error()
		}
		active := apimeta.IsStatusConditionTrue(check.Status.Conditions, kueuev1.AdmissionCheckActive)
		err := serves(hooks.Webhooks[0].ClientConfig.CABundle)
		return active && err == nil, fmt.Sprintf("check active %t, webhook: %v", active, err)
	})
}

// serves reports why a client that trusts authority cannot reach the webhook.
func serves(authority []byte) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	connection, err := tls.Dial("tcp", fmt.Sprintf("localhost:%d", cluster.port), &tls.Config{RootCAs: roots})
	if err != nil {
		return err
	}
	return connection.Close()
}

func stopController() error {
	cluster.admin.cancel()
	if err := <-cluster.admin.done; err != nil {
		return fmt.Errorf("stop the admission controller: %w", err)
	}
	return nil
}
