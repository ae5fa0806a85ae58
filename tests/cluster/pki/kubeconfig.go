package pki

import (
	"encoding/base64"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// Kubeconfig returns a kubeconfig with everything inside, for the client
// certificate of that name and the server at url.
func (s *Store) Kubeconfig(name, url string) ([]byte, error) {
	cert, err := os.ReadFile(s.File(name + ".crt"))
	if err != nil {
		return nil, fmt.Errorf("read certificate of %s: %w", name, err)
	}
	key, err := os.ReadFile(s.File(name + ".key"))
	if err != nil {
		return nil, fmt.Errorf("read key of %s: %w", name, err)
	}
	const context = "fairshard"
	data, err := yaml.Marshal(map[string]any{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": context,
		"clusters": []any{map[string]any{"name": context, "cluster": map[string]any{
			"server": url, "certificate-authority-data": encode(s.CA()),
		}}},
		"users": []any{map[string]any{"name": name, "user": map[string]any{
			"client-certificate-data": encode(cert), "client-key-data": encode(key),
		}}},
		"contexts": []any{map[string]any{"name": context, "context": map[string]any{
			"cluster": context, "user": name,
		}}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode kubeconfig of %s: %w", name, err)
	}
	return data, nil
}

func encode(pem []byte) string { return base64.StdEncoding.EncodeToString(pem) }
