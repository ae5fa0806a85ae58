package store

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fairshard/fairshard/classes/quantity"
	"github.com/fairshard/fairshard/driver/ledger"
)

// formatVersion is what this version of the plugin writes.
const formatVersion = 1

// record is the content of one file.
type record struct {
	Version int            `json:"version"`
	Phase   string         `json:"phase"`
	Claim   claimRecord    `json:"claim"`
	Devices []deviceRecord `json:"devices,omitempty"`
}

type claimRecord struct {
	UID       string `json:"uid"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

type deviceRecord struct {
	Request string `json:"request,omitempty"`
	Pool    string `json:"pool,omitempty"`
	Device  string `json:"device,omitempty"`
	ShareID string `json:"shareID,omitempty"`
	Kind    string `json:"kind"`
	GPUUUID string `json:"gpuUUID"`
	Minor   int    `json:"minor"`
	Bytes   int64  `json:"bytes,omitempty"`
}

func encode(e ledger.Entry) ([]byte, error) {
	r := record{
		Version: formatVersion, Phase: string(e.Phase),
		Claim: claimRecord{UID: e.Claim.UID, Namespace: e.Claim.Namespace, Name: e.Claim.Name},
	}
	for _, d := range e.Claim.Devices {
		r.Devices = append(r.Devices, deviceRecord{
			Request: d.Request, Pool: d.Pool, Device: d.Name, ShareID: d.ShareID,
			Kind: string(d.Kind), GPUUUID: d.UUID, Minor: d.Minor, Bytes: int64(d.Bytes),
		})
	}
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	return append(content, '\n'), nil
}

// decode reads a file that should be the record of uid. Fields it does not know are ignored.
func decode(uid string, content []byte) (ledger.Entry, error) {
	var r record
	if err := json.Unmarshal(content, &r); err != nil {
		return ledger.Entry{}, fmt.Errorf("decode record: %w", err)
	}
	switch {
	case r.Version != formatVersion:
		return ledger.Entry{}, fmt.Errorf("decode record: version %d is not known, want %d", r.Version, formatVersion)
	case r.Claim.UID != uid:
		return ledger.Entry{}, fmt.Errorf("decode record: it is of claim %q", r.Claim.UID)
	}
	e := ledger.Entry{Phase: ledger.Phase(r.Phase), Claim: ledger.Claim{UID: uid, Namespace: r.Claim.Namespace, Name: r.Claim.Name}}
	switch e.Phase {
	case ledger.PhasePreparing, ledger.PhasePrepared, ledger.PhaseLost:
	default:
		return ledger.Entry{}, fmt.Errorf("decode record: phase %q is not known", r.Phase)
	}
	for _, d := range r.Devices {
		device := ledger.Device{
			Request: d.Request, Pool: d.Pool, Name: d.Device, ShareID: d.ShareID,
			Kind: ledger.Kind(d.Kind), UUID: d.GPUUUID, Minor: d.Minor, Bytes: quantity.Bytes(d.Bytes),
		}
		if err := checkDevice(device); err != nil {
			return ledger.Entry{}, fmt.Errorf("decode record: %w", err)
		}
		e.Claim.Devices = append(e.Claim.Devices, device)
	}
	return e, nil
}

func checkDevice(d ledger.Device) error {
	switch d.Kind {
	case ledger.KindShare, ledger.KindWhole, ledger.KindAdmin:
	default:
		return fmt.Errorf("kind %q of device %q is not known", d.Kind, d.Name)
	}
	if d.UUID == "" || d.Bytes < 0 || d.Minor < 0 {
		return errors.New("a device has no GPU or a negative number")
	}
	return nil
}
