package health

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// formatVersion is what Encode writes and Decode reads.
const formatVersion = 1

type file struct {
	Version int            `json:"version"`
	Boot    string         `json:"boot,omitempty"`
	GPUs    map[string]gpu `json:"gpus,omitempty"`
}

// Encode returns s as a file. Equal States give equal bytes, so that a shell can
// see that nothing has to be written.
func Encode(s State) ([]byte, error) {
	content, err := json.MarshalIndent(file{formatVersion, s.boot, s.gpus}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode health state: %w", err)
	}
	return append(content, '\n'), nil
}

// Decode reads a file. It refuses whatever Encode does not write, since a fault
// that is misread would put work on a bad GPU.
func Decode(content []byte) (State, error) {
	s, err := decode(content)
	if err != nil {
		return State{}, fmt.Errorf("decode health state: %w: move the file away to start without it, and check the GPUs of the node", err)
	}
	return s, nil
}

func decode(content []byte) (State, error) {
	var f file
	// The version first: another one may have other fields.
	if err := json.Unmarshal(content, &struct{ Version *int }{&f.Version}); err != nil {
		return State{}, err
	}
	if f.Version != formatVersion {
		return State{}, fmt.Errorf("version %d is not known, want %d", f.Version, formatVersion)
	}
	if err := json.Unmarshal(content, &f); err != nil {
		return State{}, err
	}
	for uuid, g := range f.GPUs {
		if err := g.check(); err != nil || uuid == "" {
			return State{}, fmt.Errorf("GPU %q: %w", uuid, cmp.Or(err, errors.New("no UUID")))
		}
	}
	s := State{boot: f.Boot, gpus: f.GPUs}
	// Fields that are unknown, missing or there twice do not survive this.
	if again, err := Encode(s); err != nil || !bytes.Equal(again, content) {
		return State{}, errors.Join(errors.New("it was damaged or edited: it is not byte for byte what is written"), err)
	}
	return s, nil
}

// check says what makes g impossible.
func (g *gpu) check() error {
	var last Cause
	for _, c := range g.Conditions {
		if err := c.check(); err != nil {
			return fmt.Errorf("condition %q: %w", c.Cause, err)
		}
		if c.Cause <= last {
			return fmt.Errorf("condition %q is there twice or not in order", c.Cause)
		}
		last = c.Cause
	}
	return nil
}

func (c *Condition) check() error {
	switch {
	case !c.Cause.known():
		return errors.New("the cause is not known")
	case !slices.Contains([]Status{StatusWatched, StatusOpen, StatusRepaired}, c.Status):
		return fmt.Errorf("status %q is not known", c.Status)
	case c.Level < 0 || c.Level >= keptTimes:
		return fmt.Errorf("level %d is not between 0 and %d", c.Level, keptTimes-1)
	case len(c.Times) > keptTimes || !slices.IsSorted(c.Times):
		return fmt.Errorf("its times are more than %d or not in order", keptTimes)
	}
	return nil
}
