package api_test

import (
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fairshard/fairshard/tests/cluster/api"
	"github.com/fairshard/fairshard/tests/cluster/pki"
)

// client returns a client of a server with the handler.
func client(t *testing.T, handler http.HandlerFunc) *api.Client {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	store, err := pki.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Ensure(pki.Request{Name: "a", User: "a"}); err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	c, err := api.NewFromFiles(server.URL, ca, store.File("a.crt"), store.File("a.key"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestApplyPatchesTheObjectsURL(t *testing.T) {
	var got string
	c := client(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.Method + " " + r.URL.String() + " " + r.Header.Get("Content-Type") + " " + string(body)
	})
	role := api.Object{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
		"metadata": map[string]any{"name": "r", "namespace": "n"},
	}
	if err := c.DryRun(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"PATCH /apis/rbac.authorization.k8s.io/v1/namespaces/n/roles/r?fieldManager=fairshard-cluster&force=true&dryRun=All ",
		"application/apply-patch+yaml", `"kind":"Role"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in request %s", want, got)
		}
	}
	if err := c.Apply(t.Context(), api.Object{"kind": "Secret"}); err == nil {
		t.Error("a kind that we never apply: no error")
	}
}

func TestErrorsHoldTheServersWords(t *testing.T) {
	c := client(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind":"Status","message":"no such thing"}`)
	})
	err := c.Get(t.Context(), "/x", nil)
	var status *api.StatusError
	if !errors.As(err, &status) || status.Code != http.StatusNotFound || !strings.Contains(err.Error(), "no such thing") {
		t.Errorf("error %v", err)
	}
}

func TestCoreObjectsHaveShortPaths(t *testing.T) {
	path, err := api.Path(api.Object{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "x"}})
	if err != nil || path != "/api/v1/namespaces/x" {
		t.Errorf("path %s, %v", path, err)
	}
}
