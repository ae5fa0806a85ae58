package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	authorityLife = 10 * 365 * 24 * time.Hour
	servingLife   = 365 * 24 * time.Hour
	// renewBefore is how long before its end a certificate is replaced.
	renewBefore = 90 * 24 * time.Hour
	// clockSkew is how far in the past a certificate starts to be valid.
	clockSkew = time.Hour
)

// Keys of the Secret.
const (
	keyAuthority     = "ca.crt"
	keyAuthorityKey  = "ca.key"
	keyCertificate   = "tls.crt"
	keyCertificateOf = "tls.key"
)

// errNotUsable says that stored certificates must be replaced.
var errNotUsable = errors.New("certificate is not usable")

// bundle is one authority and one serving certificate signed by it, in PEM.
type bundle struct {
	authority, authorityKey     []byte
	certificate, certificateKey []byte
}

func bundleFrom(data map[string][]byte) bundle {
	return bundle{
		authority: data[keyAuthority], authorityKey: data[keyAuthorityKey],
		certificate: data[keyCertificate], certificateKey: data[keyCertificateOf],
	}
}

func (b bundle) data() map[string][]byte {
	return map[string][]byte{
		keyAuthority: b.authority, keyAuthorityKey: b.authorityKey,
		keyCertificate: b.certificate, keyCertificateOf: b.certificateKey,
	}
}

// check returns the serving certificate if it is valid for every name until
// renewBefore after now, else an error that wraps errNotUsable.
func (b bundle) check(names []string, now time.Time) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(b.certificate, b.certificateKey)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotUsable, err)
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotUsable, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(b.authority) {
		return nil, fmt.Errorf("%w: no authority", errNotUsable)
	}
	for _, name := range names {
		options := x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now.Add(renewBefore)}
		if _, err := leaf.Verify(options); err != nil {
			return nil, fmt.Errorf("%w for %s: %w", errNotUsable, name, err)
		}
	}
	pair.Leaf = leaf
	return &pair, nil
}

// renew returns a bundle with a new serving certificate. It keeps b's
// authority while that lives long enough, so that a renewal needs no change
// of the webhook configurations.
func (b bundle) renew(names []string, now time.Time) (bundle, error) {
	authority, key, err := b.loadAuthority(now)
	if err != nil {
		if authority, key, err = newAuthority(now); err != nil {
			return bundle{}, err
		}
	}
	serving, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return bundle{}, fmt.Errorf("generate serving key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: names[0]},
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(servingLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority, serving.Public(), key)
	if err != nil {
		return bundle{}, fmt.Errorf("sign serving certificate: %w", err)
	}
	return encodeBundle(authority.Raw, key, der, serving)
}

// loadAuthority returns b's authority if it outlives a new serving certificate.
func (b bundle) loadAuthority(now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	pair, err := tls.X509KeyPair(b.authority, b.authorityKey)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errNotUsable, err)
	}
	authority, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errNotUsable, err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || !authority.IsCA || authority.NotAfter.Before(now.Add(servingLife)) {
		return nil, nil, fmt.Errorf("%w: the authority cannot sign for a year", errNotUsable)
	}
	return authority, key, nil
}

func newAuthority(now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generate authority key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(now.UnixNano()),
		Subject:               pkix.Name{CommonName: "fairshard-admission-ca"},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(authorityLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("sign authority: %w", err)
	}
	authority, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("parse authority: %w", err)
	}
	return authority, key, nil
}

func encodeBundle(authority []byte, authorityKey *ecdsa.PrivateKey, certificate []byte, certificateKey *ecdsa.PrivateKey) (bundle, error) {
	authorityDER, err := x509.MarshalECPrivateKey(authorityKey)
	if err != nil {
		return bundle{}, fmt.Errorf("encode authority key: %w", err)
	}
	servingDER, err := x509.MarshalECPrivateKey(certificateKey)
	if err != nil {
		return bundle{}, fmt.Errorf("encode serving key: %w", err)
	}
	return bundle{
		authority:      pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority}),
		authorityKey:   pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: authorityDER}),
		certificate:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		certificateKey: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: servingDER}),
	}, nil
}
