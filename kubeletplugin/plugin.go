package kubeletplugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	drahelper "k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"

	"github.com/fairshard/fairshard/classes/quantity"
	"github.com/fairshard/fairshard/driver/ledger"
	"github.com/fairshard/fairshard/kubeletplugin/cdi"
	"github.com/fairshard/fairshard/kubeletplugin/store"
	"github.com/fairshard/fairshard/kubeletplugin/wire"
)

// records is what the plugin needs of the claim store.
type records interface {
	Load() ([]ledger.Entry, []store.Damaged, error)
	Save(entry ledger.Entry) error
	Remove(uid string) error
}

// Plugin implements the upstream helper's DRAPlugin.
type Plugin struct {
	pool    string // of this node
	records records
	files   *cdi.Files
	// fatal ends the program; the kubelet's next call finds a fresh one.
	fatal func(error)
	locks claimLocks

	mu    sync.Mutex
	state ledger.State // guarded by mu
	facts wire.Facts   // guarded by mu; nil until the GPUs are known
	paths wire.Paths   // guarded by mu
}

var _ drahelper.DRAPlugin = (*Plugin)(nil)

// PrepareResourceClaims makes claims ready. Errors are per claim: one bad claim
// does not keep a pod's others from being ready.
func (p *Plugin) PrepareResourceClaims(ctx context.Context, claims []*resourcev1.ResourceClaim) (map[types.UID]drahelper.PrepareResult, error) {
	results := make(map[types.UID]drahelper.PrepareResult, len(claims))
	for _, claim := range claims {
		devices, err := p.prepare(claim)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Prepare failed", "claim", klog.KObj(claim), "uid", claim.UID)
			results[claim.UID] = drahelper.PrepareResult{Err: fmt.Errorf("claim %s/%s: %w", claim.Namespace, claim.Name, err)}
			continue
		}
		results[claim.UID] = drahelper.PrepareResult{Devices: devices}
	}
	return results, nil
}

func (p *Plugin) prepare(c *resourcev1.ResourceClaim) ([]drahelper.Device, error) {
	uid := string(c.UID)
	defer p.locks.lock(uid)()
	facts, err := p.factsFor(uid)
	if err != nil {
		return nil, err
	}
	claim, err := wire.Claim(c, p.pool, facts)
	if err != nil {
		return nil, err
	}
	effects := p.step(ledger.Prepare{Claim: claim})
	if err := p.run(effects); err != nil {
		p.step(ledger.Failed{UID: uid})
		return nil, err
	}
	p.step(ledger.Prepared{UID: uid})
	return answer(claim), nil
}

// factsFor returns what is known about the node's devices. A prepared claim
// brings what it recorded, so that a pod that runs survives a restart of the
// kubelet while a GPU or the whole driver library is away.
func (p *Plugin) factsFor(uid string) (wire.Facts, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	entry, known := p.state.Entry(uid)
	if !known || entry.Phase != ledger.PhasePrepared {
		if p.facts == nil {
			return nil, errors.New("the GPUs of this node are not known yet: the driver library is missing or does not answer; it is tried again")
		}
		return p.facts, nil
	}
	facts := wire.FactsOf(entry.Claim)
	maps.Copy(facts, p.facts)
	return facts, nil
}

func answer(c ledger.Claim) []drahelper.Device {
	var devices []drahelper.Device
	for _, prepared := range wire.Answer(c) {
		d := drahelper.Device{
			Requests: []string{prepared.Request}, PoolName: prepared.Pool,
			DeviceName: prepared.Device, CDIDeviceIDs: prepared.CDI,
		}
		if prepared.ShareID != "" {
			id := types.UID(prepared.ShareID)
			d.ShareID = &id
		}
		devices = append(devices, d)
	}
	return devices
}

// UnprepareResourceClaims releases claims. It needs no driver library and no API.
func (p *Plugin) UnprepareResourceClaims(ctx context.Context, claims []drahelper.NamespacedObject) (map[types.UID]error, error) {
	results := make(map[types.UID]error, len(claims))
	for _, claim := range claims {
		err := p.unprepare(string(claim.UID))
		if err != nil {
			klog.FromContext(ctx).Error(err, "Unprepare failed", "claim", claim.NamespacedName, "uid", claim.UID)
		}
		results[claim.UID] = err
	}
	return results, nil
}

func (p *Plugin) unprepare(uid string) error {
	defer p.locks.lock(uid)()
	return p.unprepareLocked(uid)
}

// unprepareLocked needs the claim's lock.
func (p *Plugin) unprepareLocked(uid string) error {
	if err := p.run(p.step(ledger.Unprepare{UID: uid})); err != nil {
		p.step(ledger.Failed{UID: uid})
		return err
	}
	p.step(ledger.Unprepared{UID: uid})
	return nil
}

// step moves the ledger on and returns what has to be done.
func (p *Plugin) step(event ledger.Event) []ledger.Effect {
	p.mu.Lock()
	defer p.mu.Unlock()
	next, effects := ledger.Step(p.state, event)
	p.state = next
	return effects
}

// run does effects in order, up to the first that fails.
func (p *Plugin) run(effects []ledger.Effect) error {
	for _, effect := range effects {
		if err := p.do(effect); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plugin) do(e ledger.Effect) error {
	switch e.Op {
	case ledger.SaveIntent:
		return p.records.Save(ledger.Entry{Claim: e.Claim, Phase: ledger.PhasePreparing})
	case ledger.SaveDone:
		return p.records.Save(ledger.Entry{Claim: e.Claim, Phase: ledger.PhasePrepared})
	case ledger.SaveLost:
		return p.records.Save(ledger.Entry{Claim: e.Claim, Phase: ledger.PhaseLost})
	case ledger.RemoveRecord:
		return p.records.Remove(e.Claim.UID)
	case ledger.WriteLimits:
		return p.files.WriteLimits(e.Claim.Limits())
	case ledger.RemoveLimits:
		return p.files.RemoveLimits(e.Claim.UID)
	case ledger.WriteCDI:
		return p.writeSpec(e.Claim)
	case ledger.RemoveCDI:
		return p.files.RemoveSpec(e.Claim.UID)
	case ledger.Refuse:
		return errors.New(e.Refusal.String())
	}
	return fmt.Errorf("serious bug: effect %q is not known", e.Op)
}

func (p *Plugin) writeSpec(c ledger.Claim) error {
	p.mu.Lock()
	paths := p.paths
	p.mu.Unlock()
	paths.Limits = p.files.LimitsPath(c.UID)
	spec, err := wire.Spec(c, paths)
	if err != nil {
		return err
	}
	return p.files.WriteSpec(c.UID, spec)
}

// recover takes over what an earlier process left. Only an unreadable folder is
// an error; whatever is wrong with one claim is logged and stays with that claim.
func (p *Plugin) recover(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	entries, damaged, err := p.records.Load()
	if err != nil {
		return err
	}
	specUIDs, limits, err := p.files.List()
	if err != nil {
		return err
	}
	found := ledger.Recover{Records: entries, Limits: limits, CDI: specUIDs}
	for _, d := range damaged {
		logger.Error(errors.New(d.Reason), "Moved a damaged claim record aside; its devices stay held as its limits file says", "claim", d.UID, "file", d.Moved)
		found.Damaged = append(found.Damaged, d.UID)
	}
	for _, effect := range p.step(found) {
		if err := p.do(effect); err != nil {
			logger.Error(err, "Recovery of a claim is incomplete; it is completed by the next call for it", "claim", effect.Claim.UID, "effect", effect.Op)
		}
	}
	logger.Info("Took over claims", "claims", len(entries), "damaged", len(damaged))
	return nil
}

// hardware is what the node offers, as discovery found it.
type hardware struct {
	facts  wire.Facts
	usable map[string]quantity.Bytes
}

func (p *Plugin) setHardware(h hardware) {
	p.step(ledger.GPUs{Usable: h.usable})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.facts = h.facts
}

func (p *Plugin) setPaths(paths wire.Paths) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paths = paths
}

// ready reports whether the GPUs are known.
func (p *Plugin) ready() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.facts != nil
}

// HandleError logs errors from the background. Only those that a retry cannot
// mend end the program.
func (p *Plugin) HandleError(ctx context.Context, err error, msg string) {
	logger := klog.FromContext(ctx)
	var dropped *resourceslice.DroppedFieldsError
	switch {
	case errors.As(err, &dropped):
		logger.Error(err, "The API server drops fields of our ResourceSlices: enable the feature gates, else shares and whole GPUs are not told apart",
			"gates", dropped.DisabledFeatures())
	case errors.Is(err, drahelper.ErrRecoverable):
		logger.Error(err, msg)
	default:
		logger.Error(err, msg)
		p.fatal(fmt.Errorf("%s: %w", msg, err))
	}
}

// WatchHealthStatus is not offered yet.
func (p *Plugin) WatchHealthStatus(context.Context, chan<- drahelper.DeviceHealthReport) error {
	return drahelper.ErrHealthNotSupported
}
