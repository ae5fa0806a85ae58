package controller

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"

	"github.com/fairshard/fairshard/admission/apply"
	"github.com/fairshard/fairshard/admission/explain"
	"github.com/fairshard/fairshard/admission/observe"
	"github.com/fairshard/fairshard/admission/webhook"
	"github.com/fairshard/fairshard/classes"
)

// The client's own limits; one write per decision, and starts come in waves.
const (
	clientQPS   = 200
	clientBurst = 400
	// stopTimeout bounds how long a stop waits for the turn in progress.
	stopTimeout = 10 * time.Second
)

// Run is the admission controller. It returns when ctx ends, or with the
// error that stopped it.
func Run(ctx context.Context, options Options) error {
	options = options.withDefaults()
	mgr, rotator, err := build(options)
	if err != nil {
		return err
	}
	addWebhooks(mgr)
	if rotator != nil {
		if err := addRotator(mgr, rotator); err != nil {
			return err
		}
	}
	loop := newLoop(mgr, options)
	if options.DebugSnapshot {
		if err := mgr.AddMetricsServerExtraHandler(dumpPath, loop.dump); err != nil {
			return fmt.Errorf("serve %s: %w", dumpPath, err)
		}
	}
	if err := observe.Watch(ctx, mgr.GetCache(), loop.changed); err != nil {
		return err
	}
	// Read by the webhook only; started here so that no review waits for its first list.
	if _, err := mgr.GetCache().GetInformer(ctx, &nodev1.RuntimeClass{}); err != nil {
		return fmt.Errorf("watch RuntimeClasses: %w", err)
	}
	if err := mgr.Add(loop); err != nil {
		return fmt.Errorf("add loop: %w", err)
	}
	if err := addHealth(ctx, mgr, rotator); err != nil {
		return err
	}
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run manager: %w", err)
	}
	return nil
}

// Scheme knows the built-in types and Kueue's.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), kueuev1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("register API types: %w", err)
	}
	return scheme, nil
}

// build makes the manager, and the rotator unless certificates are given.
func build(options Options) (manager.Manager, *webhook.Rotator, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, nil, err
	}
	config := rest.CopyConfig(options.Config)
	config.QPS, config.Burst = clientQPS, clientBurst
	var rotator *webhook.Rotator
	server := ctrlwebhook.Options{Host: options.WebhookHost, Port: options.WebhookPort, CertDir: options.WebhookCertDir}
	if options.WebhookCertDir == "" {
		rotator = &webhook.Rotator{
			Secret:        types.NamespacedName{Namespace: options.Namespace, Name: options.CertSecret},
			Configuration: options.WebhookConfiguration,
			Names:         options.names(),
			Now:           time.Now,
		}
		server.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = rotator.GetCertificate }}
	}
	mgr, err := manager.New(config, manager.Options{
		Scheme:                        scheme,
		Cache:                         observe.CacheOptions(),
		WebhookServer:                 ctrlwebhook.NewServer(server),
		Metrics:                       metricsserver.Options{BindAddress: options.MetricsAddress},
		HealthProbeBindAddress:        options.HealthAddress,
		LeaderElection:                options.LeaderElection,
		LeaderElectionID:              classes.FieldManager,
		LeaderElectionNamespace:       options.Namespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       new(stopTimeout),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("build manager: %w", err)
	}
	return mgr, rotator, nil
}

func addRotator(mgr manager.Manager, rotator *webhook.Rotator) error {
	rotator.Reader, rotator.Writer = mgr.GetAPIReader(), mgr.GetClient()
	if err := mgr.Add(rotator); err != nil {
		return fmt.Errorf("add certificate rotator: %w", err)
	}
	return nil
}

// addWebhooks registers the handlers; the manager runs the server by itself.
func addWebhooks(mgr manager.Manager) {
	decoder := admission.NewDecoder(mgr.GetScheme())
	server := mgr.GetWebhookServer()
	server.Register(webhook.MutatePath, &admission.Webhook{Handler: &webhook.Workloads{Decoder: decoder, Reader: mgr.GetClient()}})
	server.Register(webhook.ValidatePath, &admission.Webhook{Handler: &webhook.Claims{Decoder: decoder}})
}

// addHealth: alive while the process answers; ready when a review can be
// answered: caches synced, server listening, certificate known to the API server.
func addHealth(ctx context.Context, mgr manager.Manager, rotator *webhook.Rotator) error {
	ready := func(*http.Request) error {
		check, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(check) {
			return errors.New("caches are not synced yet")
		}
		if rotator != nil {
			return rotator.Ready()
		}
		return nil
	}
	err := errors.Join(
		mgr.AddHealthzCheck("ping", func(*http.Request) error { return nil }),
		mgr.AddReadyzCheck("webhook", mgr.GetWebhookServer().StartedChecker()),
		mgr.AddReadyzCheck("caches", ready))
	if err != nil {
		return fmt.Errorf("add health checks: %w", err)
	}
	return nil
}

func newLoop(mgr manager.Manager, options Options) *loop {
	return &loop{
		reader:   mgr.GetClient(),
		writer:   mgr.GetClient(),
		policy:   options.Policy,
		dump:     &dump{},
		period:   options.Period,
		debounce: options.Debounce,
		now:      time.Now,
		trigger:  make(chan struct{}, 1),
		nudged:   nudges{},
		applier: &apply.Applier{
			Writer:          apply.ForClient(mgr.GetClient()),
			Events:          mgr.GetEventRecorder(classes.FieldManager),
			Text:            explain.Text,
			Now:             time.Now,
			MessageInterval: options.MessageInterval,
		},
	}
}
