package ledger

import (
	"reflect"
	"strings"
	"testing"

	"github.com/fairshard/fairshard/classes/quantity"
	"github.com/fairshard/fairshard/driver/isolation"
)

const usable = 79 * quantity.GiB

func share(uuid string, bytes quantity.Bytes) Device {
	return Device{Request: "gpu", Pool: "n1", Name: uuid + "-share", Kind: KindShare, UUID: uuid, Bytes: bytes}
}

func whole(uuid string) Device {
	return Device{Request: "gpu", Pool: "n1", Name: uuid, Kind: KindWhole, UUID: uuid}
}

func claim(uid string, devices ...Device) Claim {
	return Claim{UID: uid, Namespace: "team-a", Name: uid, Devices: devices}
}

// node returns a state with GPUs a and b and the given claims prepared.
func node(t *testing.T, claims ...Claim) State {
	t.Helper()
	s, _ := Step(State{}, GPUs{Usable: map[string]quantity.Bytes{"a": usable, "b": usable}})
	for _, c := range claims {
		var effects []Effect
		if s, effects = Step(s, Prepare{c}); refusedBy(effects) != "" {
			t.Fatalf("prepare %s: %s", c.UID, effects[0].Refusal)
		}
		s, _ = Step(s, Prepared{c.UID})
	}
	return s
}

func refusedBy(effects []Effect) Why {
	if len(effects) == 1 && effects[0].Op == Refuse {
		return effects[0].Refusal.Why
	}
	return ""
}

func TestWhatFitsBesideWhat(t *testing.T) {
	admin := whole("a")
	admin.Kind = KindAdmin
	for name, c := range map[string]struct {
		held []Claim
		want Claim
		why  Why
		text string
	}{
		"two shares of 40e9":            {[]Claim{claim("x", share("a", 40e9))}, claim("y", share("a", 40e9)), "", ""},
		"two shares of 40Gi":            {[]Claim{claim("x", share("a", 40*quantity.GiB))}, claim("y", share("a", 40*quantity.GiB)), OverCommit, "39Gi are free, the rest is held by team-a/x"},
		"a whole GPU beside a share":    {[]Claim{claim("x", share("a", 1))}, claim("y", whole("a")), InUse, "held by team-a/x"},
		"a share beside a whole GPU":    {[]Claim{claim("x", whole("a"))}, claim("y", share("a", 1)), InUse, "held by team-a/x"},
		"two whole GPUs":                {[]Claim{claim("x", whole("a"))}, claim("y", whole("a")), InUse, ""},
		"a whole GPU beside another":    {[]Claim{claim("x", whole("a"))}, claim("y", whole("b")), "", ""},
		"a share of everything":         {nil, claim("y", share("a", usable)), "", ""},
		"a share of more than all":      {nil, claim("y", share("a", usable+1)), OverCommit, ""},
		"no bytes":                      {nil, claim("y", share("a", 0)), InvalidAmount, "not a positive"},
		"no devices":                    {nil, claim("y"), NothingAllocated, ""},
		"a GPU that is not there":       {nil, claim("y", share("z", 1)), UnknownGPU, ""},
		"two shares of one GPU":         {nil, claim("y", share("a", 1), share("a", 1)), TwoSharesOfOneGPU, "distinctAttribute"},
		"a share and the whole":         {nil, claim("y", share("a", 1), whole("a")), TwoSharesOfOneGPU, ""},
		"a shard":                       {nil, claim("y", share("a", 40e9), share("b", 40e9)), "", ""},
		"admin access beside a share":   {[]Claim{claim("x", share("a", usable))}, claim("y", admin), "", ""},
		"a whole GPU beside admin":      {[]Claim{claim("x", admin)}, claim("y", whole("a")), "", ""},
		"same claim, other allocation":  {[]Claim{claim("x", share("a", 1))}, claim("x", share("b", 1)), AllocationChanged, ""},
		"same claim, other share":       {[]Claim{claim("x", share("a", 1))}, claim("x", share("a", 2)), AllocationChanged, ""},
		"same device, replaced GPU":     {[]Claim{claim("x", whole("a"))}, claim("x", Device{Request: "gpu", Pool: "n1", Name: "a", Kind: KindWhole, UUID: "new"}), GPUChanged, "replaced by new"},
		"the same claim again":          {[]Claim{claim("x", whole("a"))}, claim("x", whole("a")), "", ""},
		"overflow of shares is refused": {[]Claim{claim("x", share("a", 1))}, claim("y", share("a", 1<<62)), OverCommit, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := node(t, c.held...)
			entries := before.Entries()
			after, effects := Step(before, Prepare{c.want})
			if got := refusedBy(effects); got != c.why {
				t.Fatalf("got %q, want %q", got, c.why)
			}
			if c.why != "" && !reflect.DeepEqual(before, after) {
				t.Error("a refused claim changed the state")
			}
			if c.why != "" && !strings.Contains(effects[0].Refusal.String(), c.text) {
				t.Errorf("message %q does not say %q", effects[0].Refusal, c.text)
			}
			if !reflect.DeepEqual(entries, before.Entries()) {
				t.Error("Step changed the state it was given")
			}
		})
	}
}

func TestScripts(t *testing.T) {
	s := node(t)
	c := claim("x", whole("a"))
	wantOps := func(name string, effects []Effect, want ...Op) {
		t.Helper()
		var got []Op
		for _, e := range effects {
			got = append(got, e.Op)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	s, effects := Step(s, Prepare{c})
	wantOps("first prepare", effects, SaveIntent, WriteLimits, WriteCDI, SaveDone)
	s, effects = Step(s, Failed{c.UID})
	wantOps("failure", effects)
	s, effects = Step(s, Prepare{c})
	wantOps("after a failure", effects, SaveIntent, WriteLimits, WriteCDI, SaveDone)
	s, _ = Step(s, Prepared{c.UID})
	s, effects = Step(s, Prepare{c})
	wantOps("again", effects, WriteLimits, WriteCDI)
	moved := claim("x", whole("a"))
	moved.Devices[0].Minor = 5
	s, effects = Step(s, Prepare{moved})
	wantOps("after the minor number changed", effects, WriteLimits, WriteCDI, SaveDone)
	if e, _ := s.Entry("x"); e.Claim.Devices[0].Minor != 5 {
		t.Error("the new minor number was not taken over")
	}
	s, effects = Step(s, Unprepare{c.UID})
	wantOps("unprepare", effects, RemoveCDI, RemoveLimits, RemoveRecord)
	if _, held := s.Entry("x"); !held {
		t.Error("the claim must hold its GPU until its files are gone")
	}
	s, _ = Step(s, Unprepared{c.UID})
	if len(s.Entries()) != 0 {
		t.Error("the claim is still there")
	}
	_, effects = Step(s, Unprepare{"unknown"})
	wantOps("unprepare of an unknown claim", effects, RemoveCDI, RemoveLimits, RemoveRecord)
}

func TestRecover(t *testing.T) {
	prepared, preparing, damaged := claim("p", whole("a")), claim("q", share("b", 1)), claim("d", share("b", 7))
	s, effects := Step(node(t), Recover{
		Records: []Entry{{prepared, PhasePrepared}, {preparing, PhasePreparing}},
		Damaged: []string{"d", "e", "f"}, // of e no other file is left: it was never answered
		Limits:  map[string]isolation.Limits{"p": prepared.Limits(), "d": damaged.Limits(), "orphan": {}},
		CDI:     []string{"orphan", "d", "f", "q", "stray"},
	})
	var got []string
	for _, e := range effects {
		got = append(got, string(e.Op)+" "+e.Claim.UID)
	}
	want := []string{
		"WriteLimits p", "WriteCDI p", "SaveLost d", "SaveLost f",
		"RemoveCDI orphan", "RemoveLimits orphan", "RemoveRecord orphan",
		"RemoveCDI stray", "RemoveLimits stray", "RemoveRecord stray",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if _, effects = Step(s, Prepare{claim("new", share("b", usable-7))}); refusedBy(effects) != OverCommit {
		t.Error("what a damaged record held is not guarded")
	}
	if _, effects = Step(s, Prepare{damaged}); refusedBy(effects) != "" {
		t.Error("a claim with a damaged record must be prepared again")
	}
}
