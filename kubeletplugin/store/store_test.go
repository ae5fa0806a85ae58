package store

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/fairshard/fairshard/driver/ledger"
)

const fixtureUID = "3f1c2a4e-0000-4000-8000-000000000001"

func fixture() ledger.Entry {
	return ledger.Entry{Phase: ledger.PhasePrepared, Claim: ledger.Claim{
		UID: fixtureUID, Namespace: "team-a", Name: "shard-abcde",
		Devices: []ledger.Device{{
			Request: "gpu", Pool: "node-1", Name: "gpu-0000-17-00-0-share", ShareID: "9e107d9d-372b-4d3a-9f5b-000000000001",
			Kind: ledger.KindShare, UUID: "GPU-7277883e-ce1e-3b6e-6cc1-6d52e80cdb86", Bytes: 40265318400,
		}, {
			Request: "other", Pool: "node-1", Name: "gpu-0000-18-00-0",
			Kind: ledger.KindWhole, UUID: "GPU-11111111-ce1e-3b6e-6cc1-6d52e80cdb86", Minor: 1,
		}},
	}}
}

func open(t *testing.T) (*Store, string) {
	t.Helper()
	root := t.TempDir()
	s, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	return s, root
}

func TestVersion1IsWhatWeReadAndWrite(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("testdata", "v1", fixtureUID+".json"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(fixtureUID, content)
	if err != nil || !reflect.DeepEqual(got, fixture()) {
		t.Errorf("got %+v, %v", got, err)
	}
	written, err := encode(fixture())
	if err != nil || string(written) != string(content) {
		t.Errorf("wrote %s, %v", written, err)
	}
}

func TestSaveLoadRemove(t *testing.T) {
	s, _ := open(t)
	for range 2 {
		if err := s.Save(fixture()); err != nil {
			t.Fatal(err)
		}
	}
	entries, damaged, err := s.Load()
	if err != nil || len(damaged) != 0 || !reflect.DeepEqual(entries, []ledger.Entry{fixture()}) {
		t.Fatalf("got %+v, %+v, %v", entries, damaged, err)
	}
	for range 2 {
		if err := s.Remove(fixtureUID); err != nil {
			t.Fatal(err)
		}
	}
	if left, _ := os.ReadDir(s.dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestDamagedRecordsAreMovedAside(t *testing.T) {
	good, err := encode(fixture())
	if err != nil {
		t.Fatal(err)
	}
	replace := func(old, now string) string { return strings.Replace(string(good), old, now, 1) }
	for name, c := range map[string]struct{ content, want string }{
		"empty":          {"", "decode"},
		"half a file":    {string(good[:len(good)/2]), "decode"},
		"newer version":  {replace(`"version": 1`, `"version": 2`), "version 2"},
		"other claim":    {replace(fixtureUID, "other"), `claim "other"`},
		"unknown phase":  {replace("Prepared", "Perhaps"), `phase "Perhaps"`},
		"unknown kind":   {replace(`"kind": "share"`, `"kind": "slice"`), `kind "slice"`},
		"no GPU":         {replace("GPU-7277883e-ce1e-3b6e-6cc1-6d52e80cdb86", ""), "no GPU"},
		"unknown fields": {replace(`"version": 1`, `"version": 1, "colour": "red"`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, root := open(t)
			other := fixture()
			other.Claim.UID = "fine"
			if err := s.Save(other); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(s.path(fixtureUID), []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(s.dir, "torn.tmp"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			entries, damaged, err := s.Load()
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				if len(entries) != 2 || len(damaged) != 0 {
					t.Fatalf("got %+v, %+v", entries, damaged)
				}
				return
			}
			if len(entries) != 1 || len(damaged) != 1 || damaged[0].UID != fixtureUID || !strings.Contains(damaged[0].Reason, c.want) {
				t.Fatalf("got %+v, %+v", entries, damaged)
			}
			moved, err := os.ReadFile(filepath.Join(root, "quarantine", fixtureUID+".json"))
			if err != nil || string(moved) != c.content {
				t.Errorf("moved file: %q, %v", moved, err)
			}
			if left, _ := os.ReadDir(s.dir); len(left) != 1 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestNamesFromOutsideStayInside(t *testing.T) {
	s, _ := open(t)
	for _, uid := range []string{"", ".", "..", "../x", "a/b", ".hidden"} {
		if err := s.Remove(uid); err == nil {
			t.Errorf("UID %q was taken", uid)
		}
		if err := s.Save(ledger.Entry{Claim: ledger.Claim{UID: uid}}); err == nil {
			t.Errorf("UID %q was saved", uid)
		}
	}
}

func TestSaveSaysWhenTheDiskRefuses(t *testing.T) {
	s, _ := open(t)
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(fixture()); err == nil || !strings.Contains(err.Error(), "save record of claim "+fixtureUID) {
		t.Errorf("got %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	good, err := encode(fixture())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"version":1,"phase":"Lost","claim":{"uid":"u"}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		e, err := decode("u", content)
		if err != nil {
			return
		}
		again, err := encode(e)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := decode("u", again); err != nil || !reflect.DeepEqual(e, back) {
			t.Fatalf("%+v became %+v, %v", e, back, err)
		}
	})
}
