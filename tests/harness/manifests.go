package harness

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// OneMachine is what differs from a real cluster: there is no service
// network and no cluster DNS, so pods use the host's network and the API
// server reaches webhooks by URL.
type OneMachine struct {
	APIHost, APIPort string
	WebhookPort      int
}

// Manifests returns deployments/base as YAML, changed for one machine.
func (c *Cluster) Manifests(ctx context.Context, m OneMachine) (string, error) {
	objects, err := c.render(ctx)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, object := range objects {
		if err := m.adapt(&object); err != nil {
			return "", fmt.Errorf("adapt %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			return "", fmt.Errorf("encode %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.String(), nil
}

// render runs kustomize over deployments/base.
func (c *Cluster) render(ctx context.Context) ([]unstructured.Unstructured, error) {
	text, err := output(exec.CommandContext(ctx, c.kubectl(), "kustomize", filepath.Join(c.root, "deployments", "base")))
	if err != nil {
		return nil, err
	}
	var objects []unstructured.Unstructured
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, fmt.Errorf("decode manifest: %w", err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func (m OneMachine) adapt(object *unstructured.Unstructured) error {
	switch object.GetKind() {
	case "DaemonSet":
		return m.adaptPods(object, PluginImage, nil)
	case "Deployment":
		return m.adaptPods(object, AdmissionImage, []any{
			"--webhook-port=" + strconv.Itoa(m.WebhookPort), "--webhook-host=127.0.0.1",
			"--metrics-addr=0", "--health-addr=0",
		})
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		return m.adaptWebhooks(object)
	}
	return nil
}

// adaptPods puts the pods of a DaemonSet or Deployment on the host's network
// and tells them where the API server is.
func (m OneMachine) adaptPods(object *unstructured.Unstructured, image string, args []any) error {
	pod, found, err := unstructured.NestedMap(object.Object, "spec", "template", "spec")
	if err != nil || !found {
		return fmt.Errorf("read pod template: found %t: %w", found, err)
	}
	pod["hostNetwork"] = true
	container := pod["containers"].([]any)[0].(map[string]any)
	container["image"], container["imagePullPolicy"] = image, "Never"
	given, _ := container["args"].([]any)
	container["args"] = append(given, args...)
	env, _ := container["env"].([]any)
	container["env"] = append(env,
		map[string]any{"name": "KUBERNETES_SERVICE_HOST", "value": m.APIHost},
		map[string]any{"name": "KUBERNETES_SERVICE_PORT", "value": m.APIPort})
	if ports, ok := container["ports"].([]any); ok {
		for _, port := range ports {
			port.(map[string]any)["containerPort"] = int64(m.WebhookPort)
		}
	}
	delete(container, "livenessProbe")
	delete(container, "readinessProbe")
	return unstructured.SetNestedMap(object.Object, pod, "spec", "template", "spec")
}

func (m OneMachine) adaptWebhooks(object *unstructured.Unstructured) error {
	hooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil {
		return fmt.Errorf("read webhooks: %w", err)
	}
	for _, hook := range hooks {
		config := hook.(map[string]any)["clientConfig"].(map[string]any)
		path := config["service"].(map[string]any)["path"].(string)
		hook.(map[string]any)["clientConfig"] = map[string]any{
			"url": fmt.Sprintf("https://localhost:%d%s", m.WebhookPort, path),
		}
	}
	return unstructured.SetNestedSlice(object.Object, hooks, "webhooks")
}
