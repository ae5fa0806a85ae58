package webhook

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

// conditions reads the matchConditions that the product is installed with.
func conditions(t *testing.T, kind, path string) []admissionv1.MatchCondition {
	t.Helper()
	content, err := os.ReadFile("../../deployments/base/webhooks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for document := range strings.SplitSeq(string(content), "\n---\n") {
		var configuration admissionv1.MutatingWebhookConfiguration // both kinds have the fields read here
		if err := yaml.Unmarshal([]byte(document), &configuration); err != nil {
			t.Fatal(err)
		}
		for _, hook := range configuration.Webhooks {
			if configuration.Kind == kind && *hook.ClientConfig.Service.Path == path && len(hook.MatchConditions) > 0 {
				return hook.MatchConditions
			}
		}
	}
	t.Fatalf("webhooks.yaml has no %s for %s with matchConditions", kind, path)
	return nil
}

// matches evaluates conditions the way the API server does: all must be true, an error refuses.
func matches(t *testing.T, conditions []admissionv1.MatchCondition, object string) bool {
	t.Helper()
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	var value map[string]any
	if err := json.Unmarshal([]byte(object), &value); err != nil {
		t.Fatal(err)
	}
	all := true
	for _, condition := range conditions {
		ast, issues := env.Compile(condition.Expression)
		if issues.Err() != nil {
			t.Fatalf("%s: %v", condition.Name, issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(err)
		}
		result, _, err := program.Eval(map[string]any{"object": value})
		if err != nil {
			t.Fatalf("%s must never fail: %v", condition.Name, err)
		}
		all = all && result.Value() == true
	}
	return all
}

func TestTheWorkloadWebhookIsCalledOnlyForOurUnreservedWork(t *testing.T) {
	for name, tc := range map[string]struct {
		object string
		want   bool
	}{
		"a plain job": {`{"metadata":{},"spec":{"podSets":[{"template":{"spec":{"containers":[{"name":"c"}]}}}]}}`, false},
		"a job with CPU only": {
			`{"metadata":{"annotations":{"a":"b"}},"spec":{"podSets":[{"template":{"spec":{"containers":[{"resources":{"limits":{"cpu":"1"},"requests":{"cpu":"1"}}}],"initContainers":[{"resources":{}}]}}}]}}`, false,
		},
		"no podSets":     {`{"metadata":{},"spec":{}}`, false},
		"empty claims":   {`{"metadata":{},"spec":{"podSets":[{"template":{"spec":{"resourceClaims":[]}}}]}}`, false},
		"empty template": {`{"metadata":{},"spec":{"podSets":[{"template":{}},{}]}}`, false},
		"claims of the second podSet": {
			`{"metadata":{},"status":{},"spec":{"podSets":[{"template":{"spec":{"containers":[]}}},{"template":{"spec":{"resourceClaims":[{"name":"gpu"}]}}}]}}`, true,
		},
		"our resource in limits":   {`{"metadata":{},"spec":{"podSets":[{"template":{"spec":{"containers":[{},{"resources":{"limits":{"fairshard.dev/gpu":"1"}}}]}}}]}}`, true},
		"our resource in requests": {`{"metadata":{},"spec":{"podSets":[{"template":{"spec":{"containers":[{"resources":{"requests":{"fairshard.dev/gpu":"1"}}}]}}}]}}`, true},
		"our resource of an init container": {
			`{"metadata":{},"spec":{"podSets":[{"template":{"spec":{"containers":[{}],"initContainers":[{"resources":{"limits":{"fairshard.dev/gpu":"1"}}}]}}}]}}`, true,
		},
		"charged before":    {`{"metadata":{"annotations":{"fairshard.dev/demand":"{}"}},"spec":{"podSets":[]}}`, true},
		"unresolved before": {`{"metadata":{"annotations":{"fairshard.dev/unresolved":"x"}},"spec":{"podSets":[]}}`, true},
		"reserved": {
			`{"metadata":{"annotations":{"fairshard.dev/demand":"{}"}},"status":{"admission":{}},"spec":{"podSets":[{"template":{"spec":{"resourceClaims":[{"name":"gpu"}]}}}]}}`, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := matches(t, conditions(t, "MutatingWebhookConfiguration", MutatePath), tc.object); got != tc.want {
				t.Fatalf("called: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestTheClaimWebhookIsCalledOnlyForOurDriver(t *testing.T) {
	for name, tc := range map[string]struct {
		object string
		want   bool
	}{
		"empty claim":         {`{"spec":{}}`, false},
		"empty template":      {`{"spec":{"spec":{}}}`, false},
		"another class":       {`{"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"other"}}]}}}`, false},
		"another driver":      {`{"spec":{"devices":{"requests":[{"name":"a"}],"config":[{"opaque":{"driver":"other"}},{}]}}}`, false},
		"our class":           {`{"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"gpu-share.fairshard.dev"}}]}}}`, true},
		"our class, template": {`{"spec":{"spec":{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"gpu.fairshard.dev"}}]}}}}`, true},
		"our alternative": {
			`{"spec":{"devices":{"requests":[{"name":"a","firstAvailable":[{"deviceClassName":"other"},{"deviceClassName":"gpu-share.fairshard.dev"}]}]}}}`, true,
		},
		"our parameters, template": {`{"spec":{"spec":{"devices":{"config":[{"opaque":{"driver":"gpu.fairshard.dev"}}]}}}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := matches(t, conditions(t, "ValidatingWebhookConfiguration", ValidatePath), tc.object); got != tc.want {
				t.Fatalf("called: %t, want %t", got, tc.want)
			}
		})
	}
}
