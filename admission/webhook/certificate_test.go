package webhook

import (
	"bytes"
	"errors"
	"testing"
	"time"
)

func TestCertificates(t *testing.T) {
	now := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	names := []string{"fairshard-admission.fairshard-system.svc", "localhost", "127.0.0.1"}
	first, err := bundle{}.renew(names, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.check(names, now); err != nil {
		t.Fatalf("a new certificate is valid for every name: %v", err)
	}
	if _, err := bundleFrom(first.data()).check(names, now.Add(200*24*time.Hour)); err != nil {
		t.Fatalf("it is valid for most of a year, also out of the Secret: %v", err)
	}
	late := now.Add(300 * 24 * time.Hour)
	if _, err := first.check(names, late); !errors.Is(err, errNotUsable) {
		t.Fatalf("it is renewed before its end, got %v", err)
	}
	if _, err := first.check(append(names, "other"), now); !errors.Is(err, errNotUsable) {
		t.Fatalf("a new name needs a new certificate, got %v", err)
	}
	second, err := first.renew(names, late)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.check(names, late); err != nil || !bytes.Equal(first.authority, second.authority) {
		t.Fatalf("a renewal keeps the authority (%v)", err)
	}
	third, err := second.renew(names, now.Add(9*365*24*time.Hour+24*time.Hour))
	if err != nil || bytes.Equal(third.authority, second.authority) {
		t.Fatalf("an authority near its end is replaced (%v)", err)
	}
	broken := bundle{authority: []byte("x"), authorityKey: []byte("y"), certificate: first.certificate}
	if _, err := broken.check(names, now); !errors.Is(err, errNotUsable) {
		t.Fatalf("rubbish in the Secret is replaced, got %v", err)
	}
	if fixed, err := broken.renew(names, now); err != nil {
		t.Fatal(err)
	} else if _, err := fixed.check(names, now); err != nil {
		t.Fatal(err)
	}
}
