package publish

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/dynamic-resource-allocation/resourceslice"

	"github.com/fairshard/fairshard/kubeletplugin/wire"
)

// Helper is what publish needs of the upstream helper.
type Helper interface {
	PublishResources(ctx context.Context, resources resourceslice.DriverResources) error
}

// Publisher publishes one pool.
type Publisher struct {
	helper Helper
	name   string

	mu   sync.Mutex
	last *resourceslice.DriverResources // guarded by mu; nil before the first Publish
}

// New returns a publisher for the pool with that name.
func New(helper Helper, name string) *Publisher {
	return &Publisher{helper: helper, name: name}
}

// Publish makes pool the published one. It does not wait until it is written.
func (p *Publisher) Publish(ctx context.Context, pool wire.Pool) error {
	resources := convert(p.name, pool)
	p.mu.Lock()
	p.last = &resources
	p.mu.Unlock()
	return p.publish(ctx, resources)
}

// Again publishes the last pool once more, if there is one.
func (p *Publisher) Again(ctx context.Context) error {
	p.mu.Lock()
	last := p.last
	p.mu.Unlock()
	if last == nil {
		return nil
	}
	return p.publish(ctx, *last)
}

func (p *Publisher) publish(ctx context.Context, resources resourceslice.DriverResources) error {
	if err := p.helper.PublishResources(ctx, *resources.DeepCopy()); err != nil {
		return fmt.Errorf("publish ResourceSlices of pool %s: %w", p.name, err)
	}
	return nil
}

func convert(name string, pool wire.Pool) resourceslice.DriverResources {
	slices := make([]resourceslice.Slice, 0, len(pool.Slices))
	for _, s := range pool.Slices {
		slices = append(slices, resourceslice.Slice{SharedCounters: s.Counters, Devices: s.Devices})
	}
	return resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{name: {Slices: slices}}}
}
