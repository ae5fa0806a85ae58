package kueue

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	kyaml "sigs.k8s.io/yaml"
)

// Object is a decoded manifest.
type Object = map[string]any

// Names that Kueue's default kustomization gives.
const (
	Namespace      = "kueue-system"
	ServiceAccount = "kueue-controller-manager"
	namePrefix     = "kueue-"
	components     = "config/components"
)

// User is what Kueue's manager must authenticate as for its RBAC to apply.
const User = "system:serviceaccount:" + Namespace + ":" + ServiceAccount

// Options say where Kueue's webhook server is and what Kueue manages.
type Options struct {
	// WebhookURL is the server's base, for example https://127.0.0.1:9443.
	WebhookURL string
	// CA is the PEM certificate of the server's authority.
	CA []byte
	// Frameworks is integrations.frameworks of Kueue's configuration.
	Frameworks []string
}

// Set holds the objects of one installation. CRDs and RBAC come first; the
// webhooks belong in the cluster once the manager runs, or they refuse everything.
type Set struct {
	CRDs, RBAC, Webhooks []Object
}

// Build reads the manifests below module and transforms them.
func Build(module fs.FS, o Options) (*Set, error) {
	crds, err := buildCRDs(module, o)
	if err != nil {
		return nil, fmt.Errorf("read Kueue's CRDs: %w", err)
	}
	rbac, err := readKustomization(module, path.Join(components, "rbac"))
	if err != nil {
		return nil, fmt.Errorf("read Kueue's RBAC: %w", err)
	}
	for _, obj := range rbac {
		rename(obj)
	}
	hooks, err := readAll(module, path.Join(components, "webhook", "manifests.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read Kueue's webhooks: %w", err)
	}
	for _, obj := range hooks {
		rename(obj)
		pointWebhooks(obj, o)
	}
	namespace := Object{"apiVersion": "v1", "kind": "Namespace", "metadata": Object{"name": Namespace}}
	return &Set{CRDs: crds, RBAC: append([]Object{namespace}, rbac...), Webhooks: hooks}, nil
}

// buildCRDs applies the conversion patches that the kustomization lists.
func buildCRDs(module fs.FS, o Options) ([]Object, error) {
	dir := path.Join(components, "crd")
	crds, err := readKustomization(module, dir)
	if err != nil {
		return nil, err
	}
	patches, err := kustomizationList(module, dir, "patches")
	if err != nil {
		return nil, err
	}
	for _, p := range patches {
		entry, _ := p.(Object)
		file, _ := entry["path"].(string)
		if file == "" {
			continue
		}
		objs, err := readAll(module, path.Join(dir, file))
		if err != nil {
			return nil, err
		}
		for _, patch := range objs {
			if err := addConversion(crds, patch, o); err != nil {
				return nil, fmt.Errorf("patch with %s: %w", file, err)
			}
		}
	}
	return crds, nil
}

func addConversion(crds []Object, patch Object, o Options) error {
	conversion, ok := dig(patch, "spec", "conversion").(Object)
	if !ok {
		return errors.New("find spec.conversion: this Kueue version patches something else")
	}
	if config, ok := dig(conversion, "webhook", "clientConfig").(Object); ok {
		point(config, o)
	}
	for _, crd := range crds {
		if name(crd) == name(patch) {
			crd["spec"].(Object)["conversion"] = conversion
			return nil
		}
	}
	return fmt.Errorf("find CRD %s: not in the kustomization", name(patch))
}

// rename does what namePrefix, namespace and the reference rules of kustomize do.
func rename(obj Object) {
	meta := obj["metadata"].(Object)
	meta["name"] = namePrefix + name(obj)
	if _, ok := meta["namespace"]; ok {
		meta["namespace"] = Namespace
	}
	if ref, ok := obj["roleRef"].(Object); ok {
		ref["name"] = namePrefix + ref["name"].(string)
	}
	for _, s := range list(obj["subjects"]) {
		if subject := s.(Object); subject["kind"] == "ServiceAccount" {
			subject["name"] = namePrefix + subject["name"].(string)
			subject["namespace"] = Namespace
		}
	}
}

// pointWebhooks keeps the webhooks that this installation serves and gives each
// a URL. Pods of the system namespaces are never sent to Kueue.
func pointWebhooks(obj Object, o Options) {
	var kept []any
	for _, w := range list(obj["webhooks"]) {
		hook := w.(Object)
		own, enabled := relevance(hook, o.Frameworks)
		if !own && !enabled {
			continue
		}
		if !own {
			hook["namespaceSelector"] = Object{"matchExpressions": []any{Object{
				"key": "kubernetes.io/metadata.name", "operator": "NotIn",
				"values": []any{"kube-system", Namespace},
			}}}
		}
		point(hook["clientConfig"].(Object), o)
		kept = append(kept, hook)
	}
	obj["webhooks"] = kept
}

// relevance says whether the webhook is for Kueue's own objects, and whether it
// is for an enabled job kind.
func relevance(hook Object, frameworks []string) (own, enabled bool) {
	for _, r := range list(hook["rules"]) {
		rule := r.(Object)
		for _, g := range list(rule["apiGroups"]) {
			own = own || strings.HasSuffix(g.(string), "kueue.x-k8s.io")
			for _, res := range list(rule["resources"]) {
				enabled = enabled || matchesAny(g.(string), res.(string), frameworks)
			}
		}
	}
	return own, enabled
}

// matchesAny compares a rule with names such as "batch/job", "pod" or "deployment".
func matchesAny(group, resource string, frameworks []string) bool {
	resource, _, _ = strings.Cut(resource, "/")
	for _, f := range frameworks {
		fgroup, kind, qualified := strings.Cut(f, "/")
		if !qualified {
			kind = f
			if group != "" && group != "apps" {
				continue
			}
		} else if fgroup != group {
			continue
		}
		if resource == strings.ToLower(kind)+"s" {
			return true
		}
	}
	return false
}

// point replaces a Service reference by a URL with the same path.
func point(config Object, o Options) {
	if service, ok := config["service"].(Object); ok {
		p, _ := service["path"].(string)
		config["url"] = o.WebhookURL + p
		delete(config, "service")
	}
	config["caBundle"] = base64.StdEncoding.EncodeToString(o.CA)
}

// readKustomization reads every file listed under "resources".
func readKustomization(module fs.FS, dir string) ([]Object, error) {
	files, err := kustomizationList(module, dir, "resources")
	if err != nil {
		return nil, err
	}
	var objs []Object
	for _, f := range files {
		more, err := readAll(module, path.Join(dir, f.(string)))
		if err != nil {
			return nil, err
		}
		objs = append(objs, more...)
	}
	return objs, nil
}

func kustomizationList(module fs.FS, dir, field string) ([]any, error) {
	objs, err := readAll(module, path.Join(dir, "kustomization.yaml"))
	if err != nil {
		return nil, err
	}
	if len(objs) != 1 {
		return nil, fmt.Errorf("read %s/kustomization.yaml: %d documents, want 1", dir, len(objs))
	}
	return list(objs[0][field]), nil
}

// readAll decodes a file of YAML documents.
func readAll(module fs.FS, file string) ([]Object, error) {
	data, err := fs.ReadFile(module, file)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	var objs []Object
	for _, doc := range bytes.Split(data, []byte("\n---")) {
		var obj Object
		if err := kyaml.Unmarshal(bytes.TrimPrefix(doc, []byte("---")), &obj); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("decode %s: %w", file, err)
		}
		if len(obj) > 0 {
			objs = append(objs, obj)
		}
	}
	return objs, nil
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func name(obj Object) string {
	n, _ := dig(obj, "metadata", "name").(string)
	return n
}

func dig(obj Object, fields ...string) any {
	var v any = obj
	for _, f := range fields {
		m, ok := v.(Object)
		if !ok {
			return nil
		}
		v = m[f]
	}
	return v
}
