package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fairshard/fairshard/classes"
)

const (
	// checkInterval is how often certificates and webhook configurations are looked at.
	checkInterval = 10 * time.Second
	// retryInterval is how soon a failed look is repeated.
	retryInterval = time.Second
)

// Rotator keeps the serving certificate: in a Secret that all replicas share,
// in memory for the server, and its authority in the webhook configurations.
// Every replica runs it: a stale write loses on the Secret's resourceVersion.
type Rotator struct {
	Reader client.Reader // uncached: one Secret and two configurations every checkInterval
	Writer client.Client
	Secret types.NamespacedName
	// Configuration is the name of both webhook configurations.
	Configuration string
	// Names are the DNS names and addresses the certificate is for.
	Names []string
	Now   func() time.Time

	current  atomic.Pointer[tls.Certificate]
	injected atomic.Bool
}

// NeedLeaderElection makes every replica serve, leader or not.
func (*Rotator) NeedLeaderElection() bool { return false }

// Start keeps the certificate until ctx ends.
func (r *Rotator) Start(ctx context.Context) error {
	log := logf.FromContext(ctx).WithName("certificate")
	for {
		wait := checkInterval
		if err := r.Ensure(ctx); err != nil {
			log.Error(err, "certificate is not in place yet, trying again", "in", retryInterval.String())
			wait = retryInterval
		} else {
			r.logOnce(log)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

func (r *Rotator) logOnce(log logr.Logger) {
	if !r.injected.Swap(true) {
		log.Info("certificate is in place", "secret", r.Secret.String(), "until", r.current.Load().Leaf.NotAfter)
	}
}

// Ensure makes one pass: a usable certificate in the Secret, in memory and in
// the webhook configurations.
func (r *Rotator) Ensure(ctx context.Context) error {
	stored, pair, err := r.ensureSecret(ctx)
	if err != nil {
		return err
	}
	r.current.Store(pair)
	return errors.Join(
		r.inject(ctx, &admissionv1.MutatingWebhookConfiguration{}, stored.authority),
		r.inject(ctx, &admissionv1.ValidatingWebhookConfiguration{}, stored.authority))
}

// GetCertificate gives the server the newest certificate.
func (r *Rotator) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if pair := r.current.Load(); pair != nil {
		return pair, nil
	}
	return nil, errors.New("serve webhook: the certificate is not ready yet")
}

// Ready reports whether the API server can reach the webhook.
func (r *Rotator) Ready() error {
	if r.injected.Load() {
		return nil
	}
	return errors.New("webhook certificate is not in place yet")
}

func (r *Rotator) ensureSecret(ctx context.Context) (bundle, *tls.Certificate, error) {
	var secret corev1.Secret
	err := r.Reader.Get(ctx, r.Secret, &secret)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return bundle{}, nil, fmt.Errorf("read certificate secret %s: %w", r.Secret, err)
	}
	stored := bundleFrom(secret.Data)
	if pair, err := stored.check(r.Names, r.Now()); err == nil {
		return stored, pair, nil
	}
	fresh, err := stored.renew(r.Names, r.Now())
	if err != nil {
		return bundle{}, nil, err
	}
	pair, err := fresh.check(r.Names, r.Now())
	if err != nil {
		return bundle{}, nil, err
	}
	secret.Name, secret.Namespace, secret.Data = r.Secret.Name, r.Secret.Namespace, fresh.data()
	if missing {
		err = r.Writer.Create(ctx, &secret)
	} else {
		err = r.Writer.Update(ctx, &secret)
	}
	if err != nil {
		return bundle{}, nil, fmt.Errorf("write certificate secret %s: %w", r.Secret, err)
	}
	return fresh, pair, nil
}

// inject writes the authority into every webhook of one configuration that
// does not have it yet. Only caBundle is ours; the rest stays with its owner.
func (r *Rotator) inject(ctx context.Context, configuration client.Object, authority []byte) error {
	if err := r.Reader.Get(ctx, types.NamespacedName{Name: r.Configuration}, configuration); err != nil {
		return fmt.Errorf("read webhook configuration %s: %w", r.Configuration, err)
	}
	var kind string
	var hooks []any
	stale := false
	add := func(name string, have []byte) {
		stale = stale || !bytes.Equal(have, authority)
		hooks = append(hooks, map[string]any{
			"name":         name,
			"clientConfig": map[string]any{"caBundle": base64.StdEncoding.EncodeToString(authority)},
		})
	}
	switch c := configuration.(type) {
	case *admissionv1.MutatingWebhookConfiguration:
		kind = "MutatingWebhookConfiguration"
		for _, hook := range c.Webhooks {
			add(hook.Name, hook.ClientConfig.CABundle)
		}
	case *admissionv1.ValidatingWebhookConfiguration:
		kind = "ValidatingWebhookConfiguration"
		for _, hook := range c.Webhooks {
			add(hook.Name, hook.ClientConfig.CABundle)
		}
	}
	if !stale {
		return nil
	}
	patch := &unstructured.Unstructured{Object: map[string]any{"webhooks": hooks}}
	patch.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind(kind))
	patch.SetName(r.Configuration)
	patch.SetUID(configuration.GetUID())
	err := r.Writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(patch), client.FieldOwner(classes.FieldManager), client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("write authority into %s %s: %w", kind, r.Configuration, err)
	}
	return nil
}
