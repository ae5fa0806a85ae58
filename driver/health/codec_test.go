package health

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func encoded(tb testing.TB, s State) []byte {
	tb.Helper()
	content, err := Encode(s)
	if err != nil {
		tb.Fatal(err)
	}
	return content
}

func fixture(tb testing.TB) []byte {
	tb.Helper()
	content, err := os.ReadFile("testdata/state-v1.json")
	if err != nil {
		tb.Fatal(err)
	}
	return content
}

// fixtureState is what the fixture holds.
func fixtureState(t *testing.T) *node {
	t.Helper()
	contained := Override{Cause: "xid-94", Class: ClassNoSchedule, Repair: RepairValidate}
	n := newNode(t, contained).do(boot(0, "5e7e3c1a-0d0f-4b0e-9d43-6b9c9e1f7a10"), xid(100, 79), xid(200, 31))
	n.do(Event{Kind: KindXID, UUID: "GPU-b", At: 300, XID: 119}, Event{Kind: KindReset, UUID: "GPU-b", At: 400})
	n.do(Event{Kind: KindPoll, UUID: "GPU-b", At: 410, Reading: Reading{ECCRead: true, Uncorrectable: 7}})
	n.do(Event{Kind: KindXID, UUID: "GPU-c", At: 500, XID: 94, Instance: "gi-3"})
	return n.do(Event{Kind: KindXID, UUID: "GPU-c", At: 500, XID: 300})
}

func TestTheFixtureIsReadAndWritten(t *testing.T) {
	n := fixtureState(t)
	if got := encoded(t, n.s); !bytes.Equal(got, fixture(t)) {
		t.Errorf("the state is written as\n%s", got)
	}
	s, err := Decode(fixture(t))
	if err != nil {
		t.Fatal(err)
	}
	if s.Phase(sick, n.p) != PhaseSick || s.Phase("GPU-b", n.p) != PhaseValidating {
		t.Errorf("phases are %s and %s", s.Phase(sick, n.p), s.Phase("GPU-b", n.p))
	}
}

func TestDecodeRefusesWhatEncodeDoesNotWrite(t *testing.T) {
	good := string(fixture(t))
	swap := func(from, to string) string {
		if !strings.Contains(good, from) {
			t.Fatalf("the fixture has no %q", from)
		}
		return strings.Replace(good, from, to, 1)
	}
	for name, c := range map[string]struct{ content, want string }{
		"empty":              {"", "unexpected end"},
		"cut":                {good[:len(good)/2], "unexpected end"},
		"two files":          {good + good, "after top-level value"},
		"an old version":     {swap(`"version": 1`, `"version": 0`), "version 0 is not known, want 1"},
		"a new version":      {`{"version": 2, "gpus": []}`, "version 2 is not known, want 1"},
		"no version":         {"{}", "version 0"},
		"a new field":        {swap(`"boot"`, `"shoe": 1, "boot"`), "damaged or edited"},
		"other spelling":     {swap(`"boot"`, `"Boot"`), "damaged or edited"},
		"a field twice":      {swap(`"boot"`, `"version": 1, "boot"`), "damaged or edited"},
		"a GPU twice":        {swap(`"GPU-b"`, `"GPU-a"`), "damaged or edited"},
		"no UUID":            {swap(`"GPU-b"`, `""`), "no UUID"},
		"an unknown cause":   {swap(`"xid-79"`, `"xid-7900"`), `GPU "GPU-a": condition "xid-7900": the cause is not known`},
		"causes in disorder": {swap(`"xid-31"`, `"xid-90"`), "twice or not in order"},
		"an unknown status":  {swap(`"open"`, `"ajar"`), `status "ajar" is not known`},
		"a bad level":        {swap(`"status": "open"`, `"status": "open", "level": 99`), "level 99"},
		"too many times":     {swap("100\n", "100,1,2,3,4,5,6,7,8\n"), "more than 8"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode([]byte(c.content))
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "move the file away") {
				t.Errorf("got %v, want %q and what to do", err, c.want)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(fixture(f))
	f.Add([]byte(`{"version": 1}`))
	f.Add([]byte(`{"version":1,"gpus":{"a":{"conditions":[{"cause":"xid-1","status":"watched","times":[1]}]}}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		s, err := Decode(content)
		if err != nil {
			return
		}
		if again := encoded(t, s); !bytes.Equal(again, content) {
			t.Fatalf("read\n%s\nwritten\n%s", content, again)
		}
		var p Policy
		for _, uuid := range s.UUIDs() {
			for _, kind := range []Kind{KindPoll, KindXID, KindReset, KindValidated, KindClear} {
				s = Step(s, Event{Kind: kind, UUID: uuid, At: 1, XID: 119}, p)
				s.Health(uuid, p)
				if n := len(s.Taints(uuid, p)); n > MaxTaints {
					t.Fatalf("%d taints", n)
				}
			}
		}
	})
}
