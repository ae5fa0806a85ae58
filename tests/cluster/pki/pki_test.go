package pki_test

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fairshard/fairshard/tests/cluster/pki"
)

func open(t *testing.T, dir string) *pki.Store {
	t.Helper()
	s, err := pki.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func parse(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatal("not PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestCertificatesAreTrustedAndMadeOnce(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	r := pki.Request{Name: "server", User: "u", Groups: []string{"g"}, Hosts: []string{"127.0.0.1", "node-1"}}
	if err := s.Ensure(r); err != nil {
		t.Fatal(err)
	}
	first := read(t, s.File("server.crt"))
	cert, pool := parse(t, first), x509.NewCertPool()
	pool.AppendCertsFromPEM(s.CA())
	for _, host := range r.Hosts {
		if _, err := cert.Verify(x509.VerifyOptions{DNSName: host, Roots: pool}); err != nil {
			t.Errorf("verify for %s: %v", host, err)
		}
	}
	if cert.Subject.CommonName != "u" || !slices.Equal(cert.Subject.Organization, []string{"g"}) {
		t.Errorf("subject %v", cert.Subject)
	}
	again := open(t, dir)
	if err := again.Ensure(r); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(first, read(t, s.File("server.crt"))) {
		t.Error("the second run made a new certificate")
	}
	r.Hosts = append(r.Hosts, "192.0.2.9")
	if err := again.Ensure(r); err != nil {
		t.Fatal(err)
	}
	if parse(t, read(t, s.File("server.crt"))).VerifyHostname("192.0.2.9") != nil {
		t.Error("a new address did not make a new certificate")
	}
}

func TestHalfMadeAuthorityIsMadeAgain(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	if err := os.Remove(s.File("ca.crt")); err != nil {
		t.Fatal(err)
	}
	if again := open(t, dir); len(again.CA()) == 0 {
		t.Error("no authority")
	}
	if err := os.WriteFile(s.File("ca.crt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pki.Open(dir); err == nil {
		t.Error("a damaged authority was accepted")
	}
}

func TestKubeconfigNamesTheServer(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Ensure(pki.Request{Name: "admin", User: "a"}); err != nil {
		t.Fatal(err)
	}
	data, err := s.Kubeconfig("admin", "https://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Clusters []struct{ Cluster struct{ Server string } }
		Users    []struct{ Name string }
	}
	if err := yaml.Unmarshal(data, &config); err != nil || config.Clusters[0].Cluster.Server != "https://127.0.0.1:1" || config.Users[0].Name != "admin" {
		t.Errorf("%v\n%s", err, data)
	}
	if _, err := s.Kubeconfig("nobody", ""); err == nil {
		t.Error("kubeconfig of a certificate that is not there: no error")
	}
}
