package cluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"github.com/fairshard/fairshard/tests/cluster/render"
	"github.com/fairshard/fairshard/tests/cluster/state"
)

func (r *run) etcd(ctx context.Context) error {
	d, err := r.ensure(Etcd, append([]string{r.program("etcd")}, render.Etcd(r.st)...)...)
	if err != nil {
		return err
	}
	return r.waitReady(ctx, d, answers(fmt.Sprintf("http://127.0.0.1:%d/health", r.st.Port(state.PortEtcd))))
}

func (r *run) apiServer(ctx context.Context) error {
	argv := append([]string{r.program("kube-apiserver")}, render.APIServer(r.st, r.nodeIP)...)
	d, err := r.ensure(APIServer, argv...)
	if err != nil {
		return err
	}
	return r.waitReady(ctx, d, func(ctx context.Context) error {
		return r.client.Get(ctx, "/readyz", nil)
	})
}

func (r *run) controllerManager(ctx context.Context) error {
	if err := r.writeKubeconfig(ControllerManager, r.st.Path("config", ControllerManager+".kubeconfig")); err != nil {
		return err
	}
	argv := append([]string{r.program("kube-controller-manager")}, render.ControllerManager(r.st)...)
	d, err := r.ensure(ControllerManager, argv...)
	if err != nil {
		return err
	}
	healthy := answers(fmt.Sprintf("https://127.0.0.1:%d/healthz", r.st.Port(state.PortController)))
	return r.waitReady(ctx, d, func(ctx context.Context) error {
		if err := healthy(ctx); err != nil {
			return err
		}
		// A pod cannot be created in a namespace without its service account.
		return r.client.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil)
	})
}

func (r *run) scheduler(ctx context.Context) error {
	if err := r.writeKubeconfig(Scheduler, r.st.Path("config", Scheduler+".kubeconfig")); err != nil {
		return err
	}
	config, err := render.SchedulerConfig(r.st)
	if err != nil {
		return fmt.Errorf("render scheduler configuration: %w", err)
	}
	if _, err := r.write(r.st.Path("config", Scheduler+".yaml"), config); err != nil {
		return err
	}
	d, err := r.ensure(Scheduler, append([]string{r.program("kube-scheduler")}, render.Scheduler(r.st)...)...)
	if err != nil {
		return err
	}
	return r.waitReady(ctx, d, answers(fmt.Sprintf("https://127.0.0.1:%d/readyz", r.st.Port(state.PortScheduler))))
}

// healthClient asks daemons on loopback that sign their own certificates.
var healthClient = &http.Client{
	Timeout:   5 * time.Second,
	Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
}

// answers returns a check that is nil when url answers 200.
func answers(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return fmt.Errorf("ask %s: %w", url, err)
		}
		resp, err := healthClient.Do(req)
		if err != nil {
			return err
		}
		if err := resp.Body.Close(); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("ask %s: %s", url, resp.Status)
		}
		return nil
	}
}
