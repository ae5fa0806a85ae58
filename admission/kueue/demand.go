package kueue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes/quantity"
)

// demandVersion is the version of the annotation's format. A demand of another
// version is resolved anew from the claims.
const demandVersion = 1

// Demand is what a Workload asks for, as kept in classes.AnnotationDemand.
type Demand struct {
	Version int            `json:"version"`
	PodSets []PodSetDemand `json:"podSets"`
}

// PodSetDemand is what each pod of a podSet asks for.
type PodSetDemand struct {
	Name     string    `json:"name"`
	Requests []Request `json:"requests,omitempty"`
	// Claims are the pod-level claims that were stripped from the template.
	Claims []corev1.PodResourceClaim `json:"claims,omitempty"`
}

// Request is one request for devices of ours.
type Request struct {
	Kind  string `json:"kind"`            // "gpu" or "share"
	Count int    `json:"count"`           // distinct GPUs of one node
	Bytes int64  `json:"bytes,omitempty"` // share: per GPU; 0 = everything
	Apart int    `json:"apart,omitempty"` // requests of one number take distinct GPUs; 0 = none
}

// Kinds of Request.
const (
	kindGPU   = "gpu"
	kindShare = "share"
)

// Encode returns d as the annotation's text: equal demands, equal text.
func (d Demand) Encode() (string, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("encode demand: %w", err)
	}
	return string(text), nil
}

// DecodeDemand reads the annotation strictly: unknown fields, another version
// and impossible values are errors.
func DecodeDemand(text string) (Demand, error) {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	var d Demand
	if err := decoder.Decode(&d); err != nil {
		return Demand{}, fmt.Errorf("decode demand: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Demand{}, errors.New("decode demand: text after the end")
	}
	if d.Version != demandVersion {
		return Demand{}, fmt.Errorf("decode demand: version %d, want %d", d.Version, demandVersion)
	}
	for _, set := range d.PodSets {
		for _, r := range set.Requests {
			if r.Kind != kindGPU && r.Kind != kindShare || r.Count < 1 || r.Bytes < 0 || r.Apart < 0 {
				return Demand{}, fmt.Errorf("decode demand: podSet %q asks for %+v", set.Name, r)
			}
		}
	}
	return d, nil
}

// podSet returns the demand of the podSet of that name: nothing if there is none.
func (d Demand) podSet(name string) PodSetDemand {
	for _, set := range d.PodSets {
		if set.Name == name {
			return set
		}
	}
	return PodSetDemand{}
}

// values translates requests to the planner's.
func (p PodSetDemand) values() []snapshot.Request {
	var out []snapshot.Request
	for _, r := range p.Requests {
		value := snapshot.Request{Kind: snapshot.Whole, Count: r.Count, Apart: r.Apart}
		if r.Kind == kindShare {
			value.Kind, value.Bytes = snapshot.Share, quantity.Bytes(r.Bytes)
		}
		out = append(out, value)
	}
	return out
}
