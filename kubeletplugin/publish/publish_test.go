package publish

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"github.com/fairshard/fairshard/kubeletplugin/wire"
)

type helper struct {
	got []resourceslice.DriverResources
	err error
}

func (h *helper) PublishResources(_ context.Context, r resourceslice.DriverResources) error {
	h.got = append(h.got, r)
	return h.err
}

func TestPublishAndAgain(t *testing.T) {
	h := &helper{}
	p := New(h, "node-1")
	if err := p.Again(t.Context()); err != nil || len(h.got) != 0 {
		t.Errorf("nothing is known yet, but %v, %v", h.got, err)
	}
	pool := wire.Pool{Slices: []wire.Slice{
		{Counters: []resourcev1.CounterSet{{Name: "gpu-a"}}},
		{Devices: []resourcev1.Device{{Name: "gpu-a-share"}}},
	}}
	if err := p.Publish(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if err := p.Again(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{"node-1": {Slices: []resourceslice.Slice{
		{SharedCounters: []resourcev1.CounterSet{{Name: "gpu-a"}}},
		{Devices: []resourcev1.Device{{Name: "gpu-a-share"}}},
	}}}}
	if len(h.got) != 2 || !reflect.DeepEqual(h.got[0], want) || !reflect.DeepEqual(h.got[1], want) {
		t.Errorf("got %+v", h.got)
	}
	h.err = errors.New("no node name")
	if err := p.Again(t.Context()); !errors.Is(err, h.err) || !strings.Contains(err.Error(), "pool node-1") {
		t.Errorf("got %v", err)
	}
}
