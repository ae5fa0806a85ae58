package cdi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/driver/isolation"
)

const (
	// specPrefix follows the naming of transient specs: vendor-class_id.
	specPrefix = classes.DriverName + "-claim_"
	specSuffix = ".json"
	limitsName = "limits"
	tmpSuffix  = ".tmp"
)

// Files are the two folders that containers get files from.
type Files struct {
	cdiDir    string
	claimsDir string
}

// Open creates the CDI folder where it is missing. claimsDir must exist.
func Open(cdiDir, claimsDir string) (*Files, error) {
	if err := os.MkdirAll(cdiDir, 0o755); err != nil { //nolint:gosec // the container runtime reads it.
		return nil, fmt.Errorf("open CDI folder: %w", err)
	}
	return &Files{cdiDir: cdiDir, claimsDir: claimsDir}, nil
}

// LimitsPath is where the limits file of a claim lies.
func (f *Files) LimitsPath(uid string) string {
	return filepath.Join(f.claimsDir, uid, limitsName)
}

func (f *Files) specPath(uid string) string {
	return filepath.Join(f.cdiDir, specPrefix+uid+specSuffix)
}

// WriteSpec makes the CDI file of a claim what it should be.
func (f *Files) WriteSpec(uid string, spec *specs.Spec) error {
	content, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return fmt.Errorf("encode CDI spec: %w", err)
	}
	if err := ensure(f.specPath(uid), append(content, '\n')); err != nil {
		return fmt.Errorf("write CDI spec of claim %s: %w", uid, err)
	}
	return nil
}

// RemoveSpec removes the CDI file of a claim; none is fine.
func (f *Files) RemoveSpec(uid string) error {
	if err := os.Remove(f.specPath(uid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove CDI spec of claim %s: %w", uid, err)
	}
	return nil
}

// WriteLimits makes the limits file of a claim what it should be.
func (f *Files) WriteLimits(l isolation.Limits) error {
	path := f.LimitsPath(l.ClaimUID)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // mounted into containers of any user.
		return fmt.Errorf("write limits of claim %s: %w", l.ClaimUID, err)
	}
	if err := ensure(path, l.Encode()); err != nil {
		return fmt.Errorf("write limits of claim %s: %w", l.ClaimUID, err)
	}
	return nil
}

// RemoveLimits removes the limits file of a claim and its folder; none is fine.
func (f *Files) RemoveLimits(uid string) error {
	if uid == "" || uid != filepath.Base(uid) || strings.HasPrefix(uid, ".") {
		return fmt.Errorf("remove limits: claim UID %q cannot be a file name", uid)
	}
	if err := os.RemoveAll(filepath.Join(f.claimsDir, uid)); err != nil {
		return fmt.Errorf("remove limits of claim %s: %w", uid, err)
	}
	return nil
}

// List returns the UIDs that have a CDI file, and the limits files by UID; one
// that cannot be read is the zero value. It removes what a crash left half written.
func (f *Files) List() (specUIDs []string, limits map[string]isolation.Limits, err error) {
	cdiFiles, err := os.ReadDir(f.cdiDir)
	if err != nil {
		return nil, nil, fmt.Errorf("list CDI files: %w", err)
	}
	for _, file := range cdiFiles {
		rest, isOurs := strings.CutPrefix(file.Name(), specPrefix)
		uid, isSpec := strings.CutSuffix(rest, specSuffix)
		switch {
		case isOurs && isSpec:
			specUIDs = append(specUIDs, uid)
		case isOurs && strings.HasSuffix(rest, tmpSuffix):
			_ = os.Remove(filepath.Join(f.cdiDir, file.Name()))
		}
	}
	claims, err := os.ReadDir(f.claimsDir)
	if err != nil {
		return nil, nil, fmt.Errorf("list limits files: %w", err)
	}
	limits = map[string]isolation.Limits{}
	for _, claim := range claims {
		if claim.IsDir() {
			limits[claim.Name()] = f.readLimits(claim.Name())
		}
	}
	return specUIDs, limits, nil
}

// readLimits returns the zero value for a file that is missing or damaged.
func (f *Files) readLimits(uid string) isolation.Limits {
	content, err := os.ReadFile(f.LimitsPath(uid))
	if err != nil {
		return isolation.Limits{}
	}
	l, err := isolation.Parse(content)
	if err != nil || l.ClaimUID != uid {
		return isolation.Limits{}
	}
	return l
}

// ensure writes content to path unless it is there already.
func ensure(path string, content []byte) error {
	if current, err := os.ReadFile(path); err == nil && bytes.Equal(current, content) {
		return nil
	}
	tmp := path + tmpSuffix
	err := os.WriteFile(tmp, content, 0o644) //nolint:gosec // read by the container runtime and by containers of any user.
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
	}
	return err
}
