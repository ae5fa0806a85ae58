package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/admission/snapshot"
)

// Dump is everything that one cycle saw and decided, as the controller writes
// it on request.
type Dump struct {
	Version   int               `json:"version"`
	Now       int64             `json:"now"` // Unix nanoseconds
	Policy    decide.Policy     `json:"policy"`
	Snapshot  snapshot.Snapshot `json:"snapshot"`
	Decisions []decide.Decision `json:"decisions"`
}

const dumpVersion = 1

// Encode writes d as indented JSON.
func (d Dump) Encode() ([]byte, error) {
	d.Version = dumpVersion
	text, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encode dump: %w", err)
	}
	return append(text, '\n'), nil
}

// DecodeDump reads what Encode wrote, strictly.
func DecodeDump(text []byte) (Dump, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var d Dump
	if err := decoder.Decode(&d); err != nil {
		return Dump{}, fmt.Errorf("decode dump: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Dump{}, errors.New("decode dump: text after the end")
	}
	if d.Version != dumpVersion {
		return Dump{}, fmt.Errorf("decode dump: version %d, this program reads %d", d.Version, dumpVersion)
	}
	d.Snapshot.Sort()
	return d, nil
}

// Replay decides again on what a dump holds. It returns one line for every
// decision that differs; none means that the same was decided.
func Replay(d Dump, cycle decide.CycleFunc) ([]string, error) {
	want, err := lines(d.Decisions)
	if err != nil {
		return nil, err
	}
	got, err := lines(cycle(d.Snapshot, d.Policy, time.Unix(0, d.Now)))
	if err != nil {
		return nil, err
	}
	var differ []string
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(got):
			differ = append(differ, fmt.Sprintf("decision %d was %s and is not made now", i+1, want[i]))
		case i >= len(want):
			differ = append(differ, fmt.Sprintf("decision %d is new: %s", i+1, got[i]))
		case want[i] != got[i]:
			differ = append(differ, fmt.Sprintf("decision %d was %s and is %s", i+1, want[i], got[i]))
		}
	}
	return differ, nil
}

// lines are decisions as JSON.
func lines(decisions []decide.Decision) ([]string, error) {
	out := make([]string, 0, len(decisions))
	for _, d := range decisions {
		text, err := json.Marshal(d)
		if err != nil {
			return nil, fmt.Errorf("encode decision: %w", err)
		}
		out = append(out, string(text))
	}
	return out, nil
}
