package kubeletplugin

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/fairshard/fairshard/driver/ledger"
	"github.com/fairshard/fairshard/kubeletplugin/wire"
)

// collector releases claims that the API no longer knows as they were prepared.
// The kubelet does that first; this is for what it forgot, so it waits a grace.
type collector struct {
	plugin *Plugin
	client kubernetes.Interface
	grace  time.Duration
	gone   map[string]time.Time // claim UID -> when it was first seen gone
}

// collect looks at every claim once.
func (c *collector) collect(ctx context.Context, now time.Time) {
	gone := map[string]time.Time{}
	for _, entry := range c.plugin.entries() {
		uid := entry.Claim.UID
		if !c.isGone(ctx, entry) {
			continue
		}
		since, seen := c.gone[uid]
		if !seen {
			since = now
		}
		if now.Sub(since) < c.grace {
			gone[uid] = since
			continue
		}
		c.release(ctx, entry)
	}
	c.gone = gone
}

// isGone is sure or false: an API that does not answer releases nothing.
func (c *collector) isGone(ctx context.Context, entry ledger.Entry) bool {
	if entry.Claim.Name == "" {
		return false // A damaged record; only the kubelet knows.
	}
	claim, err := c.client.ResourceV1().ResourceClaims(entry.Claim.Namespace).Get(ctx, entry.Claim.Name, metav1.GetOptions{})
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	return !wire.Holds(claim, entry)
}

func (c *collector) release(ctx context.Context, entry ledger.Entry) {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "claim", klog.KRef(entry.Claim.Namespace, entry.Claim.Name), "uid", entry.Claim.UID)
	if err := c.plugin.releaseIfUnchanged(entry); err != nil {
		logger.Error(err, "Release of a claim that is gone failed; it is tried again")
		return
	}
	logger.Info("Released a claim that is gone from the API")
}

// run collects at once and then every period, until ctx ends.
func (c *collector) run(ctx context.Context, period time.Duration) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		c.collect(ctx, time.Now())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (p *Plugin) entries() []ledger.Entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.Entries()
}

// releaseIfUnchanged unprepares a claim that is still as judged: it may have been
// prepared anew meanwhile.
func (p *Plugin) releaseIfUnchanged(judged ledger.Entry) error {
	uid := judged.Claim.UID
	defer p.locks.lock(uid)()
	p.mu.Lock()
	now, known := p.state.Entry(uid)
	p.mu.Unlock()
	if !known || now.Phase != judged.Phase || !now.Claim.Equal(judged.Claim) {
		return nil
	}
	return p.unprepareLocked(uid)
}
