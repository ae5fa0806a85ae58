package kubeletplugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"k8s.io/client-go/kubernetes"
	drahelper "k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/klog/v2"

	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/kubeletplugin/cdi"
	"github.com/fairshard/fairshard/kubeletplugin/publish"
	"github.com/fairshard/fairshard/kubeletplugin/store"
)

// Config is everything the plugin is told from outside.
type Config struct {
	NodeName       string
	Client         kubernetes.Interface
	Open           OpenLibrary
	DriverRoot     string // the GPU driver's root, as seen by this process
	HostDriverRoot string // the same, as seen by the container runtime
	PluginsDir     string // the kubelet's folder of plugins
	RegistryDir    string // the kubelet's folder of registration sockets
	CDIDir         string
	HealthAddr     string // empty: no health server

	RetryPeriod   time.Duration // between tries to find the driver library
	CollectPeriod time.Duration // between collections of claims that are gone
	CollectGrace  time.Duration // how long a claim must be gone
}

// withDefaults fills in periods that were left out.
func (c Config) withDefaults() Config {
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{{&c.RetryPeriod, 5 * time.Second}, {&c.CollectPeriod, time.Minute}, {&c.CollectGrace, time.Minute}} {
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	return c
}

// DataDir is where the plugin keeps its sockets and its claims.
func (c Config) DataDir() string { return filepath.Join(c.PluginsDir, classes.DriverName) }

// Run serves until ctx ends or something fails that a fresh process might mend.
// Its sockets are gone when it returns.
func Run(ctx context.Context, config Config) error {
	config = config.withDefaults()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p, err := newPlugin(ctx, config, func(err error) { cancel(fatalError{err}) })
	if err != nil {
		return err
	}
	registered := make(registrations, 1)
	helper, err := startHelper(ctx, config, p, registered)
	if err != nil {
		return err
	}
	defer helper.Stop()
	publisher := publish.New(helper, config.NodeName)

	var loops sync.WaitGroup
	defer loops.Wait()
	gone := &collector{plugin: p, client: config.Client, grace: config.CollectGrace}
	loops.Go(func() { gone.run(ctx, config.CollectPeriod) })
	loops.Go(func() { registered.republish(ctx, publisher) })
	loops.Go(func() { discover(ctx, config, p, publisher) })
	loops.Go(func() { serveHealth(ctx, config.HealthAddr, p) })
	<-ctx.Done()
	klog.FromContext(ctx).Info("Stopping")
	var fatal fatalError
	if errors.As(context.Cause(ctx), &fatal) {
		return fatal
	}
	return nil
}

// newPlugin takes over the claims of an earlier process.
func newPlugin(ctx context.Context, config Config, fatal func(error)) (*Plugin, error) {
	if config.NodeName == "" {
		return nil, errors.New("start the plugin: the name of the node is not set")
	}
	claims, err := store.Open(config.DataDir())
	if err != nil {
		return nil, err
	}
	files, err := cdi.Open(config.CDIDir, claims.Dir())
	if err != nil {
		return nil, err
	}
	p := &Plugin{pool: config.NodeName, records: claims, files: files, fatal: fatal}
	p.setPaths(devicePaths(config.DriverRoot, config.HostDriverRoot))
	if err := p.recover(ctx); err != nil {
		return nil, fmt.Errorf("take over claims: %w", err)
	}
	return p, nil
}

func startHelper(ctx context.Context, config Config, p *Plugin, registered registrations) (*drahelper.Helper, error) {
	if err := os.MkdirAll(config.RegistryDir, 0o750); err != nil {
		return nil, fmt.Errorf("create registration folder: %w", err)
	}
	helper, err := drahelper.Start(ctx, p,
		drahelper.DriverName(classes.DriverName),
		drahelper.NodeName(config.NodeName),
		drahelper.KubeClient(config.Client),
		drahelper.PluginDataDirectoryPath(config.DataDir()),
		drahelper.RegistrarDirectoryPath(config.RegistryDir),
		// Claims have their own locks: one slow claim must not hold up the others.
		drahelper.Serialize(false),
		drahelper.HealthService(false),
		drahelper.GRPCInterceptor(registered.intercept),
	)
	if err != nil {
		return nil, fmt.Errorf("start the kubelet's services: %w", err)
	}
	return helper, nil
}

// registrations tells when a kubelet has registered the plugin.
type registrations chan struct{}

func (r registrations) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	response, err := handler(ctx, request)
	if strings.HasSuffix(info.FullMethod, "/NotifyRegistrationStatus") {
		select {
		case r <- struct{}{}:
		default:
		}
	}
	return response, err
}

// republish publishes again after every registration: a starting kubelet wipes
// the slices of its node, a little before or after it registers us. A publish
// that changes nothing costs no request.
func (r registrations) republish(ctx context.Context, publisher *publish.Publisher) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r:
		}
		for _, delay := range []time.Duration{0, time.Second, 3 * time.Second, 6 * time.Second} {
			select {
			case <-ctx.Done():
				return
			case <-time.After(delay):
			}
			if err := publisher.Again(ctx); err != nil {
				klog.FromContext(ctx).Error(err, "Publish after registration failed")
			}
		}
	}
}

// fatalError marks the cause of an end that was not asked for.
type fatalError struct{ error }

func (f fatalError) Unwrap() error { return f.error }
