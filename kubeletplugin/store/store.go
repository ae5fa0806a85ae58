package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fairshard/fairshard/driver/ledger"
)

const (
	suffix    = ".json"
	tmpSuffix = ".tmp"
)

// Store is a folder of claim records.
type Store struct {
	dir        string
	quarantine string
}

// Damaged is a record that could not be read.
type Damaged struct {
	UID    string
	Reason string
	Moved  string // where the file lies now
}

// Open creates <root>/claims and <root>/quarantine where they are missing.
func Open(root string) (*Store, error) {
	s := &Store{dir: filepath.Join(root, "claims"), quarantine: filepath.Join(root, "quarantine")}
	for _, dir := range []string{s.dir, s.quarantine} {
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // limits files below are mounted into containers.
			return nil, fmt.Errorf("open claim store: %w", err)
		}
	}
	return s, nil
}

// Dir is the folder of the records.
func (s *Store) Dir() string { return s.dir }

// Load reads every record. A file that cannot be read or understood is moved
// aside and returned as damaged. An error means that the folder itself cannot be read.
func (s *Store) Load() ([]ledger.Entry, []Damaged, error) {
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, nil, fmt.Errorf("load claim records: %w", err)
	}
	var entries []ledger.Entry
	var damaged []Damaged
	for _, file := range files {
		uid, isRecord := strings.CutSuffix(file.Name(), suffix)
		switch {
		case strings.HasSuffix(file.Name(), tmpSuffix):
			// A crash between write and rename: the file was never valid.
			_ = os.Remove(filepath.Join(s.dir, file.Name()))
		case isRecord:
			entry, err := s.read(uid)
			if err != nil {
				damaged = append(damaged, s.moveAside(uid, err))
				continue
			}
			entries = append(entries, entry)
		}
	}
	return entries, damaged, nil
}

func (s *Store) read(uid string) (ledger.Entry, error) {
	content, err := os.ReadFile(s.path(uid))
	if err != nil {
		return ledger.Entry{}, fmt.Errorf("read record: %w", err)
	}
	return decode(uid, content)
}

// moveAside keeps the damaged file for people to look at. If even that fails the
// file stays: the next save of the claim replaces it.
func (s *Store) moveAside(uid string, reason error) Damaged {
	d := Damaged{UID: uid, Reason: reason.Error(), Moved: filepath.Join(s.quarantine, uid+suffix)}
	if err := os.Rename(s.path(uid), d.Moved); err != nil {
		d.Moved = s.path(uid)
		d.Reason += "; moving it aside failed: " + err.Error()
		return d
	}
	_ = os.WriteFile(filepath.Join(s.quarantine, uid+".reason"), []byte(d.Reason+"\n"), 0o600)
	return d
}

// Save writes the record of one claim; it is on disk when Save returns.
func (s *Store) Save(e ledger.Entry) error {
	if err := checkUID(e.Claim.UID); err != nil {
		return err
	}
	content, err := encode(e)
	if err != nil {
		return err
	}
	tmp := filepath.Join(s.dir, e.Claim.UID+tmpSuffix)
	if err := writeSynced(tmp, content); err != nil {
		_ = os.Remove(tmp)
		return fmt.Errorf("save record of claim %s: %w", e.Claim.UID, err)
	}
	if err := os.Rename(tmp, s.path(e.Claim.UID)); err != nil {
		_ = os.Remove(tmp)
		return fmt.Errorf("save record of claim %s: %w", e.Claim.UID, err)
	}
	return s.syncDir()
}

// Remove removes the record of one claim; none is fine.
func (s *Store) Remove(uid string) error {
	if err := checkUID(uid); err != nil {
		return err
	}
	err := os.Remove(s.path(uid))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove record of claim %s: %w", uid, err)
	}
	return s.syncDir()
}

func (s *Store) path(uid string) string { return filepath.Join(s.dir, uid+suffix) }

func (s *Store) syncDir() error {
	dir, err := os.Open(s.dir)
	if err != nil {
		return fmt.Errorf("sync claim records: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("sync claim records: %w", err)
	}
	return nil
}

func writeSynced(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// checkUID keeps a name that comes from outside inside the folder.
func checkUID(uid string) error {
	if uid == "" || uid != filepath.Base(uid) || strings.HasPrefix(uid, ".") {
		return fmt.Errorf("claim UID %q cannot be a file name", uid)
	}
	return nil
}
