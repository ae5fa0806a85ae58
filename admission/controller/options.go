package controller

import (
	"reflect"
	"time"

	"k8s.io/client-go/rest"

	"github.com/fairshard/fairshard/admission/decide"
)

// Options are what an administrator may choose.
type Options struct {
	Config *rest.Config
	// Namespace holds the certificate's Secret and the leader's Lease.
	Namespace string

	WebhookHost    string // "" = every address
	WebhookPort    int
	WebhookCertDir string // tls.crt and tls.key kept by others; "" = kept by us
	// WebhookService is the Service's name; with Namespace it makes the DNS names.
	WebhookService       string
	WebhookConfiguration string // name of the two webhook configurations
	CertSecret           string

	LeaderElection bool
	MetricsAddress string // "0" = none
	HealthAddress  string // "0" = none

	Period          time.Duration // longest time between two turns
	Debounce        time.Duration // how long a turn waits for more changes
	MessageInterval time.Duration

	Policy decide.Policy // zero = the defaults
	// DebugSnapshot serves the last cycle's input and decisions beside the metrics.
	DebugSnapshot bool
}

// names are what the webhook's certificate is valid for: the Service inside a
// cluster, and this machine for webhook configurations that name a URL.
func (o Options) names() []string {
	service := o.WebhookService + "." + o.Namespace + ".svc"
	return []string{service, service + ".cluster.local", "localhost", "127.0.0.1"}
}

// withDefaults fills what would otherwise make no sense.
func (o Options) withDefaults() Options {
	if reflect.ValueOf(o.Policy).IsZero() {
		o.Policy = decide.Defaults()
	}
	if o.Period <= 0 {
		o.Period = 5 * time.Second
	}
	if o.Debounce <= 0 {
		o.Debounce = 75 * time.Millisecond
	}
	if o.MessageInterval <= 0 {
		o.MessageInterval = time.Minute
	}
	return o
}
