package render

import (
	"fmt"
	"maps"

	"sigs.k8s.io/yaml"

	"github.com/fairshard/fairshard/tests/cluster/state"
)

// KueueSettings are the settings of Kueue that Fairshard needs (a user may
// override them with a file) and those that this cluster dictates.
func KueueSettings(s *state.State, override []byte) (map[string]any, error) {
	settings := map[string]any{
		"integrations": map[string]any{"frameworks": []any{"batch/job"}},
		// A queue that covers only milligpu must not refuse jobs that ask for CPU.
		"resources": map[string]any{"quotaCheckStrategy": "IgnoreUndeclared"},
		// Beyond use: a workload that is not placed in time is handed back by us.
		"waitForPodsReady": map[string]any{"timeout": "87600h"},
		"clientConnection": map[string]any{"qps": 300, "burst": 600},
	}
	if len(override) > 0 {
		var given map[string]any
		if err := yaml.Unmarshal(override, &given); err != nil {
			return nil, fmt.Errorf("parse Kueue settings: %w", err)
		}
		maps.Copy(settings, given)
	}
	maps.Copy(settings, map[string]any{
		"apiVersion":             "config.kueue.x-k8s.io/v1beta2",
		"kind":                   "Configuration",
		"namespace":              "kueue-system",
		"health":                 map[string]any{"healthProbeBindAddress": fmt.Sprintf("%s:%d", loopback, s.Port(state.PortKueueHealth))},
		"metrics":                map[string]any{"bindAddress": fmt.Sprintf("%s:%d", loopback, s.Port(state.PortKueueMetrics)), "enableClusterQueueResources": true},
		"webhook":                map[string]any{"host": loopback, "port": s.Port(state.PortKueueWebhook), "certDir": s.Path("kueue", "certs")},
		"leaderElection":         map[string]any{"leaderElect": false},
		"internalCertManagement": map[string]any{"enable": false},
	})
	gates, _ := settings["featureGates"].(map[string]any)
	if gates == nil {
		gates = map[string]any{}
	}
	// The visibility API needs the API aggregator and certificates of its own.
	gates["VisibilityOnDemand"] = false
	settings["featureGates"] = gates
	return settings, nil
}
