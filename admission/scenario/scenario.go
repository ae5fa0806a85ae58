package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/admission/policy"
	"github.com/fairshard/fairshard/admission/simulate"
	policyv1 "github.com/fairshard/fairshard/classes/policy/v1alpha1"
	"github.com/fairshard/fairshard/classes/quantity"
)

// Now is the time at which a scenario begins, in Unix nanoseconds.
const Now = 1_700_000_000_000_000_000

// Parse reads all documents of one file. name is used in errors only.
func Parse(name string, text []byte) ([]simulate.Scenario, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	var out []simulate.Scenario
	for {
		var f file
		err := decoder.Decode(&f)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		s, err := f.scenario()
		if err != nil {
			return nil, fmt.Errorf("read %s: scenario %q: %w", name, f.Metadata.Name, err)
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("read %s: it holds no scenario", name)
	}
	return out, nil
}

// scenario translates one document.
func (f *file) scenario() (simulate.Scenario, error) {
	s := simulate.Scenario{Name: f.Metadata.Name, About: f.Spec.About, MaxCycles: 50, Now: Now}
	if f.APIVersion != "fairshard.dev/v1alpha1" || f.Kind != "Scenario" {
		return s, fmt.Errorf("apiVersion %q and kind %q: write fairshard.dev/v1alpha1 and Scenario", f.APIVersion, f.Kind)
	}
	if s.Name == "" {
		return s, errors.New("metadata.name is missing")
	}
	switch f.Spec.Mode {
	case "", "Converge":
	case "FairShareOnly":
		s.FairShareOnly = true
	default:
		return s, fmt.Errorf("mode %q is not known: write Converge or FairShareOnly", f.Spec.Mode)
	}
	if f.Spec.MaxCycles != nil {
		s.MaxCycles = *f.Spec.MaxCycles
	}
	if s.MaxCycles < 1 || s.MaxCycles > 10_000 {
		return s, fmt.Errorf("maxCycles %d must be 1 to 10000", s.MaxCycles)
	}
	var err error
	if s.Policy, s.Period, err = f.policy(); err != nil {
		return s, err
	}
	b := builder{file: f, scenario: &s}
	if err := b.build(); err != nil {
		return s, err
	}
	s.Expect = f.Spec.Expect.values()
	return s, b.checkExpect()
}

// policy reads the policy strictly.
func (f *file) policy() (decide.Policy, int64, error) {
	text, err := json.Marshal(f.Spec.Policy)
	if err != nil {
		return decide.Policy{}, 0, fmt.Errorf("policy: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var spec policyv1.FairSharePolicySpec
	if err := decoder.Decode(&spec); err != nil {
		return decide.Policy{}, 0, fmt.Errorf("policy: %w", err)
	}
	p, times, err := policy.Translate(&spec)
	return p, int64(times.CyclePeriod), err
}

// values are the expectations for the simulation; nil means none.
func (e *Expect) values() *simulate.Expect {
	if e == nil {
		return nil
	}
	out := &simulate.Expect{
		Starts: e.Starts, KeepsRunning: e.KeepsRunning, Evicted: e.Evicted, Moved: e.Moved, Waits: e.Waits,
		Placement: map[string][]string{}, GPUGroup: map[string][]string{}, FairShare: map[string]quantity.MilliGPU{},
	}
	for name, nodes := range e.Placement {
		out.Placement[name] = nodes
	}
	for name, labels := range e.GPUGroup {
		out.GPUGroup[name] = labels
	}
	for name, share := range e.FairShare {
		out.FairShare[name] = quantity.MilliGPU(share)
	}
	if e.Unassigned != nil {
		amount := quantity.MilliGPU(*e.Unassigned)
		out.Unassigned = &amount
	}
	return out
}
