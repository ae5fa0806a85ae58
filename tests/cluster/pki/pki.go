package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/fairshard/fairshard/tests/cluster/state"
)

// lifetime of every certificate.
const lifetime = 10 * 365 * 24 * time.Hour

// Store is a folder with the files of one authority.
type Store struct {
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
}

// Request names one certificate. It serves (Hosts not empty) or identifies a client, or both.
type Request struct {
	// Name is the base name of the files: Name.crt and Name.key.
	Name string
	// User and Groups are what the API server takes a client for.
	User   string
	Groups []string
	// Hosts are DNS names and IP addresses that a server answers for.
	Hosts []string
}

// Open loads the authority in dir or creates it, with the service-account keys.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir}
	if _, err := os.Stat(s.File("ca.crt")); errors.Is(err, os.ErrNotExist) {
		if err := s.create(); err != nil {
			return nil, err
		}
	}
	return s, s.load()
}

// File is the path of a file of the store, for example "ca.crt".
func (s *Store) File(name string) string { return filepath.Join(s.dir, name) }

// CA is the authority's certificate in PEM.
func (s *Store) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.cert.Raw})
}

// create writes ca.crt last: it marks that the store is complete.
func (s *Store) create() error {
	for _, name := range []string{"ca.key", "sa.key"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return fmt.Errorf("generate %s: %w", name, err)
		}
		if err := s.writeKey(name, key); err != nil {
			return err
		}
		if name == "ca.key" {
			s.key = key
		} else if err := s.writePublic("sa.pub", key.Public()); err != nil {
			return err
		}
	}
	template := newTemplate("fairshard-cluster-ca", nil)
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	return s.sign(template, template, s.key.Public(), "ca.crt")
}

func (s *Store) load() error {
	pair, err := os.ReadFile(s.File("ca.crt"))
	if err != nil {
		return fmt.Errorf("read certificate authority: %w", err)
	}
	block, _ := pem.Decode(pair)
	if block == nil {
		return fmt.Errorf("read certificate authority %s: not PEM", s.File("ca.crt"))
	}
	if s.cert, err = x509.ParseCertificate(block.Bytes); err != nil {
		return fmt.Errorf("parse certificate authority: %w", err)
	}
	data, err := os.ReadFile(s.File("ca.key"))
	if err != nil {
		return fmt.Errorf("read the authority's key: %w", err)
	}
	if block, _ = pem.Decode(data); block == nil {
		return fmt.Errorf("read %s: not PEM", s.File("ca.key"))
	}
	if s.key, err = x509.ParseECPrivateKey(block.Bytes); err != nil {
		return fmt.Errorf("parse the authority's key: %w", err)
	}
	return nil
}

// Ensure makes the certificate unless it is there and still covers the hosts.
func (s *Store) Ensure(r Request) error {
	if s.covers(r) {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generate key of %s: %w", r.Name, err)
	}
	if err := s.writeKey(r.Name+".key", key); err != nil {
		return err
	}
	t := newTemplate(r.User, r.Groups)
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	for _, host := range r.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, host)
		}
	}
	return s.sign(t, s.cert, key.Public(), r.Name+".crt")
}

// covers is false also when the machine's address changed since the last `up`.
func (s *Store) covers(r Request) bool {
	data, err := os.ReadFile(s.File(r.Name + ".crt"))
	if err != nil {
		return false
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return false
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil || cert.CheckSignatureFrom(s.cert) != nil || cert.Subject.CommonName != r.User {
		return false
	}
	for _, host := range r.Hosts {
		if cert.VerifyHostname(host) != nil {
			return false
		}
	}
	return true
}

func newTemplate(user string, groups []string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: user, Organization: groups},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(lifetime),
	}
}

func (s *Store) sign(t, parent *x509.Certificate, public any, name string) error {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return fmt.Errorf("choose serial of %s: %w", name, err)
	}
	t.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, t, parent, public, s.key)
	if err != nil {
		return fmt.Errorf("sign %s: %w", name, err)
	}
	return s.write(name, "CERTIFICATE", der)
}

func (s *Store) writeKey(name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	return s.write(name, "EC PRIVATE KEY", der)
}

func (s *Store) writePublic(name string, key crypto.PublicKey) error {
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	return s.write(name, "PUBLIC KEY", der)
}

func (s *Store) write(name, kind string, der []byte) error {
	data := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := state.WriteFile(s.File(name), data, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
