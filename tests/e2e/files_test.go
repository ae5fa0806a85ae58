package e2e

import (
	"os"
	"path/filepath"
	"testing"
)

// recordPath is where the plugin of a node keeps the record of a claim.
func recordPath(kubeletDir, uid string) string {
	return filepath.Join(kubeletDir, "plugins", "gpu.fairshard.dev", "claims", uid+".json")
}

// records lists the records of all claims on all nodes.
func records(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, node := range cluster.Nodes {
		files, err := filepath.Glob(recordPath(node.KubeletDir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, files...)
	}
	return found
}

// removeQuarantine takes away what the plugin moved aside, after checking that it is there.
func removeQuarantine(t *testing.T) {
	t.Helper()
	for _, node := range cluster.Nodes {
		folder := filepath.Join(node.KubeletDir, "plugins", "gpu.fairshard.dev", "quarantine")
		entries, err := os.ReadDir(folder)
		if err != nil || len(entries) == 0 {
			t.Errorf("node %s kept nothing of the bad file in quarantine: %v", node.Name, err)
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	}
}
