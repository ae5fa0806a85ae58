package kueue_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fairshard/fairshard/tests/cluster/kueue"
)

var options = kueue.Options{WebhookURL: "https://127.0.0.1:9", CA: []byte("ca"), Frameworks: []string{"batch/job"}}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

// small has one of everything that is bent.
func small() fstest.MapFS {
	return fstest.MapFS{
		"config/components/crd/kustomization.yaml": file(`
resources: [bases/a.yaml]
patches:
- path: patches/a.yaml
#- path: patches/unused.yaml
`),
		"config/components/crd/bases/a.yaml":        file("apiVersion: v1\nkind: CustomResourceDefinition\nmetadata: {name: as.kueue.x-k8s.io}\nspec: {group: g}\n"),
		"config/components/crd/patches/a.yaml":      file("metadata: {name: as.kueue.x-k8s.io}\nspec: {conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: s, path: /convert}}}}}\n"),
		"config/components/rbac/kustomization.yaml": file("resources: [b.yaml]\n"),
		"config/components/rbac/b.yaml": file(`
kind: RoleBinding
metadata: {name: b, namespace: system}
roleRef: {kind: Role, name: r}
subjects: [{kind: ServiceAccount, name: controller-manager, namespace: system}]
`),
		"config/components/webhook/manifests.yaml": file(`---
kind: MutatingWebhookConfiguration
metadata: {name: m}
webhooks:
- {name: own, clientConfig: {service: {path: /own}}, rules: [{apiGroups: [kueue.x-k8s.io], resources: [workloads, workloads/status]}]}
- {name: job, clientConfig: {service: {path: /job}}, rules: [{apiGroups: [batch], resources: [jobs]}]}
- {name: pod, clientConfig: {service: {path: /pod}}, rules: [{apiGroups: [""], resources: [pods]}]}
- {name: deployment, clientConfig: {service: {path: /d}}, rules: [{apiGroups: [apps], resources: [deployments]}]}
- {name: jobset, clientConfig: {service: {path: /js}}, rules: [{apiGroups: [jobset.x-k8s.io], resources: [jobsets]}]}
`),
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func hookNames(set *kueue.Set) string {
	var names []string
	for _, w := range set.Webhooks[0]["webhooks"].([]any) {
		names = append(names, w.(map[string]any)["name"].(string))
	}
	return strings.Join(names, " ")
}

func TestServicesBecomeURLs(t *testing.T) {
	set, err := kueue.Build(small(), options)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"url":"https://127.0.0.1:9/own"`, `"url":"https://127.0.0.1:9/job"`, `"caBundle":"Y2E="`,
		`"name":"kueue-m"`,
	} {
		if got := text(t, set.Webhooks); !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if got := text(t, set.CRDs); !strings.Contains(got, `"url":"https://127.0.0.1:9/convert"`) || strings.Contains(got, "service") {
		t.Errorf("conversion: %s", got)
	}
}

func TestNamesAreThoseOfTheDefaultInstallation(t *testing.T) {
	set, err := kueue.Build(small(), options)
	if err != nil {
		t.Fatal(err)
	}
	got := text(t, set.RBAC)
	for _, want := range []string{
		`"kind":"Namespace","metadata":{"name":"kueue-system"}`, `"name":"kueue-b","namespace":"kueue-system"`,
		`"roleRef":{"kind":"Role","name":"kueue-r"}`, `"name":"kueue-controller-manager","namespace":"kueue-system"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}

func TestOnlyWebhooksOfEnabledKindsAreKept(t *testing.T) {
	for frameworks, want := range map[string]string{
		"batch/job":                          "own job",
		"batch/job pod deployment":           "own job pod deployment",
		"jobset.x-k8s.io/jobset":             "own jobset",
		"batch/job apps/unknown statefulset": "own job",
	} {
		o := options
		o.Frameworks = strings.Fields(frameworks)
		set, err := kueue.Build(small(), o)
		if err != nil {
			t.Fatal(err)
		}
		if got := hookNames(set); got != want {
			t.Errorf("%s: webhooks %q, want %q", frameworks, got, want)
		}
	}
}

func TestUnknownManifestsAreErrors(t *testing.T) {
	for name, change := range map[string]func(fstest.MapFS){
		"missing file": func(m fstest.MapFS) { delete(m, "config/components/rbac/b.yaml") },
		"other patch":  func(m fstest.MapFS) { m["config/components/crd/patches/a.yaml"] = file("metadata: {name: x}\n") },
		"patch for no CRD": func(m fstest.MapFS) {
			m["config/components/crd/patches/a.yaml"] = file("metadata: {name: x}\nspec: {conversion: {}}\n")
		},
		"damaged YAML": func(m fstest.MapFS) { m["config/components/webhook/manifests.yaml"] = file("a: [") },
	} {
		module := small()
		change(module)
		if _, err := kueue.Build(module, options); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestRealManifests reads those of the pinned version where they are in the cache.
func TestRealManifests(t *testing.T) {
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kueue")
	cmd.Dir, cmd.Env = "../programs/kueue", append(os.Environ(), "GOFLAGS=-mod=readonly", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		t.Skip("Kueue's module is not in Go's module cache: `fairshard-cluster build` puts it there")
	}
	set, err := kueue.Build(os.DirFS(dir), options)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.CRDs) < 10 || len(set.RBAC) < 20 || len(set.Webhooks) != 2 {
		t.Errorf("%d CRDs, %d RBAC objects, %d webhook configurations", len(set.CRDs), len(set.RBAC), len(set.Webhooks))
	}
	if all := text(t, set); strings.Contains(all, "webhook-service") || strings.Contains(all, `"namespace":"system"`) {
		t.Error("a reference to a Service or to the placeholder namespace is left")
	}
	if got := hookNames(set); !strings.Contains(got, "mjob.kb.io") || strings.Contains(got, "mpod.kb.io") {
		t.Errorf("webhooks: %s", got)
	}
}
