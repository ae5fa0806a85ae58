package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/fairshard/fairshard/tests/cluster/api"
	"github.com/fairshard/fairshard/tests/cluster/daemon"
	"github.com/fairshard/fairshard/tests/cluster/kueue"
	"github.com/fairshard/fairshard/tests/cluster/namespace"
	"github.com/fairshard/fairshard/tests/cluster/pki"
	"github.com/fairshard/fairshard/tests/cluster/render"
	"github.com/fairshard/fairshard/tests/cluster/state"
)

// kueueGrace is how long Kueue may take to end when its settings changed.
const kueueGrace = 10 * time.Second

// kueueCertificate serves the webhooks and authenticates the manager as the
// service account that Kueue's own RBAC is for.
func kueueCertificate() pki.Request {
	return pki.Request{
		Name: Kueue, User: kueue.User, Hosts: []string{"127.0.0.1"},
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + kueue.Namespace},
	}
}

// kueue installs Kueue and starts its manager. Its webhooks enter the cluster
// last: before the manager listens they would refuse everything.
func (r *run) kueue(ctx context.Context) error {
	settings, err := r.kueueSettings()
	if err != nil {
		return err
	}
	changed, err := r.writeKueueFiles(settings)
	if err != nil {
		return err
	}
	if !changed && r.find(Kueue).Alive() && r.kueueAnswers(ctx) == nil {
		return nil
	}
	module, err := r.Builder.ModuleDir(ctx, "kueue", "sigs.k8s.io/kueue")
	if err != nil {
		return err
	}
	set, err := kueue.Build(os.DirFS(module), kueue.Options{
		WebhookURL: fmt.Sprintf("https://127.0.0.1:%d", r.st.Port(state.PortKueueWebhook)),
		CA:         r.store.CA(), Frameworks: frameworks(settings),
	})
	if err != nil {
		return err
	}
	if err := r.applyAll(ctx, append(set.RBAC, set.CRDs...)); err != nil {
		return fmt.Errorf("install Kueue: %w", err)
	}
	if err := r.waitEstablished(ctx, set.CRDs); err != nil {
		return err
	}
	if err := r.startKueue(ctx, changed); err != nil {
		return err
	}
	if err := r.applyAll(ctx, set.Webhooks); err != nil {
		return fmt.Errorf("install Kueue's webhooks: %w", err)
	}
	return r.waitKueueAnswers(ctx)
}

func (r *run) kueueSettings() (map[string]any, error) {
	var override []byte
	if r.st.KueueConfig != "" {
		data, err := os.ReadFile(r.st.KueueConfig)
		if err != nil {
			return nil, fmt.Errorf("read Kueue settings: %w", err)
		}
		override = data
	}
	return render.KueueSettings(r.st, override)
}

func frameworks(settings map[string]any) []string {
	integrations, _ := settings["integrations"].(map[string]any)
	listed, _ := integrations["frameworks"].([]any)
	var names []string
	for _, f := range listed {
		if name, ok := f.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

// writeKueueFiles says whether the settings changed. Kueue reads its metrics
// certificate from a fixed path below /etc, so it gets a small /etc of its own.
func (r *run) writeKueueFiles(settings map[string]any) (changed bool, err error) {
	cert, err1 := os.ReadFile(r.store.File(Kueue + ".crt"))
	key, err2 := os.ReadFile(r.store.File(Kueue + ".key"))
	if err := errors.Join(err1, err2); err != nil {
		return false, fmt.Errorf("read Kueue's certificate: %w", err)
	}
	files := map[string][]byte{}
	for _, dir := range []string{r.st.Path("kueue", "certs"), r.st.Path("kueue", "etc", "kueue", "metrics", "certs")} {
		files[dir+"/tls.crt"], files[dir+"/tls.key"] = cert, key
	}
	for _, name := range []string{"hosts", "resolv.conf", "nsswitch.conf"} {
		if data, err := os.ReadFile("/etc/" + name); err == nil {
			files[r.st.Path("kueue", "etc", name)] = data
		}
	}
	if err := r.writeAll(files); err != nil {
		return false, err
	}
	if err := r.writeKubeconfig(Kueue, r.st.Path("config", "kueue.kubeconfig")); err != nil {
		return false, err
	}
	config, err := yaml.Marshal(settings)
	if err != nil {
		return false, fmt.Errorf("encode Kueue settings: %w", err)
	}
	return r.write(r.st.Path("config", "kueue.yaml"), config)
}

// startKueue starts the manager, or starts it again when its settings changed.
func (r *run) startKueue(ctx context.Context, changed bool) error {
	if changed && r.find(Kueue).Alive() {
		r.printf("%s: settings changed, restarting", Kueue)
		if err := daemon.Stop(r.find(Kueue).PID, syscall.SIGTERM, kueueGrace); err != nil {
			return err
		}
	}
	etc := namespace.Bind{Source: r.st.Path("kueue", "etc"), Target: "/etc"}
	d, err := r.ensure(Kueue, r.inNewNamespace([]namespace.Bind{etc}, r.program("kueue"),
		"--config="+r.st.Path("config", "kueue.yaml"), "--kubeconfig="+r.st.Path("config", "kueue.kubeconfig"),
		"--zap-log-level=2")...)
	if err != nil {
		return err
	}
	healthy := answers(fmt.Sprintf("http://127.0.0.1:%d/readyz", r.st.Port(state.PortKueueHealth)))
	return r.waitReady(ctx, d, func(ctx context.Context) error {
		if err := healthy(ctx); err != nil {
			return err
		}
		return r.webhookListens(ctx)
	})
}

// webhookListens asks the port itself: Kueue reports ready seconds before it listens.
func (r *run) webhookListens(ctx context.Context) error {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(r.st.Port(state.PortKueueWebhook)))
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("reach Kueue's webhooks: %w", err)
	}
	return conn.Close()
}

func (r *run) waitKueueAnswers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	return r.find(Kueue).WaitReady(ctx, r.kueueAnswers)
}

// kueueAnswers sends a queue through the API server and Kueue's webhooks; nothing is stored.
func (r *run) kueueAnswers(ctx context.Context) error {
	return r.client.DryRun(ctx, api.Object{
		"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue",
		"metadata": map[string]any{"name": "fairshard-webhook-probe"},
		"spec":     map[string]any{"namespaceSelector": map[string]any{}},
	})
}

// applyAll applies in order.
func (r *run) applyAll(ctx context.Context, objs []kueue.Object) error {
	for _, obj := range objs {
		if err := r.client.Apply(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

// waitEstablished waits for the API server to serve the kinds; Kueue exits without them.
func (r *run) waitEstablished(ctx context.Context, crds []kueue.Object) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	for _, crd := range crds {
		path, err := api.Path(crd)
		if err != nil {
			return err
		}
		established := func(ctx context.Context) error { return r.hasCondition(ctx, path, "Established") }
		if err := r.find(APIServer).WaitReady(ctx, established); err != nil {
			return err
		}
	}
	return nil
}

// hasCondition is nil when the object's condition of that type is True.
func (r *run) hasCondition(ctx context.Context, path, kind string) error {
	var obj struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := r.client.Get(ctx, path, &obj); err != nil {
		return err
	}
	for _, c := range obj.Status.Conditions {
		if c.Type == kind {
			if c.Status == "True" {
				return nil
			}
			return fmt.Errorf("%s: %s is %s: %s", path, kind, c.Status, c.Message)
		}
	}
	return fmt.Errorf("%s: no condition %s yet", path, kind)
}
