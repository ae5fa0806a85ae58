package ledger

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairshard/fairshard/classes/quantity"
	"github.com/fairshard/fairshard/driver/isolation"
)

// disk is what survives a crash, with the obvious meaning of every effect.
type disk struct {
	records map[string]Entry
	limits  map[string]isolation.Limits
	cdi     map[string]Claim
}

func newDisk() *disk {
	return &disk{map[string]Entry{}, map[string]isolation.Limits{}, map[string]Claim{}}
}

func (d *disk) run(e Effect) {
	switch e.Op {
	case SaveIntent:
		d.records[e.Claim.UID] = Entry{e.Claim, PhasePreparing}
	case SaveDone:
		d.records[e.Claim.UID] = Entry{e.Claim, PhasePrepared}
	case SaveLost:
		d.records[e.Claim.UID] = Entry{e.Claim, PhaseLost}
	case WriteLimits:
		d.limits[e.Claim.UID] = e.Claim.Limits()
	case WriteCDI:
		d.cdi[e.Claim.UID] = e.Claim
	case RemoveCDI:
		delete(d.cdi, e.Claim.UID)
	case RemoveLimits:
		delete(d.limits, e.Claim.UID)
	case RemoveRecord:
		delete(d.records, e.Claim.UID)
	case Refuse:
	}
}

func (d *disk) recover() Recover {
	r := Recover{Limits: maps.Clone(d.limits), CDI: slices.Collect(maps.Keys(d.cdi))}
	for _, uid := range slices.Sorted(maps.Keys(d.records)) {
		r.Records = append(r.Records, d.records[uid])
	}
	return r
}

// oracle is a slow, obvious book of what may be prepared.
type oracle struct{ held map[string]Claim }

func (o oracle) fits(c Claim, usable map[string]quantity.Bytes) bool {
	if len(c.Devices) == 0 {
		return false
	}
	all := map[string][]Device{}
	for uid, h := range o.held {
		if uid != c.UID {
			for _, d := range h.Devices {
				all[d.UUID] = append(all[d.UUID], d)
			}
		}
	}
	seen := map[string]bool{}
	for _, d := range c.Devices {
		if seen[d.UUID] || d.Kind == KindShare && d.Bytes <= 0 {
			return false
		}
		seen[d.UUID] = true
		all[d.UUID] = append(all[d.UUID], d)
	}
	for uuid, devices := range all {
		if !seen[uuid] {
			continue
		}
		var sum quantity.Bytes
		for _, d := range devices {
			if d.Kind == KindWhole && len(devices) > 1 {
				return false
			}
			sum += d.Bytes
		}
		if limit, known := usable[uuid]; !known || sum > limit {
			return false
		}
	}
	return true
}

var gpus = map[string]quantity.Bytes{"a": 100, "b": 100, "c": 60}

func drawClaim(t *rapid.T) Claim {
	c := Claim{UID: rapid.SampledFrom([]string{"1", "2", "3", "4", "5"}).Draw(t, "uid"), Namespace: "ns"}
	c.Name = c.UID
	for range rapid.IntRange(0, 3).Draw(t, "devices") {
		uuid := rapid.SampledFrom([]string{"a", "b", "c", "gone"}).Draw(t, "gpu")
		if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
			c.Devices = append(c.Devices, whole(uuid))
		} else {
			c.Devices = append(c.Devices, share(uuid, quantity.Bytes(rapid.IntRange(0, 70).Draw(t, "bytes"))))
		}
	}
	return c
}

func TestAgainstTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, _ := Step(State{}, GPUs{gpus})
		o := oracle{map[string]Claim{}}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			c := drawClaim(t)
			if rapid.Bool().Draw(t, "unprepare") {
				s, _ = Step(s, Unprepare{c.UID})
				s, _ = Step(s, Unprepared{c.UID})
				delete(o.held, c.UID)
				continue
			}
			old, again := o.held[c.UID]
			want := o.fits(c, gpus)
			if again {
				want = old.Equal(c)
			}
			next, effects := Step(s, Prepare{c})
			if got := refusedBy(effects) == ""; got != want {
				t.Fatalf("%+v beside %+v: got %v (%v), want %v", c, o.held, got, refusedBy(effects), want)
			}
			if want {
				s, _ = Step(next, Prepared{c.UID})
				o.held[c.UID] = c
			}
		}
	})
}

// The process dies after any number of effects, again and again, also while it
// recovers. Whatever happens: no GPU is over its capacity, what was answered
// has its three files, and no file is without a record.
func TestKillPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDisk()
		s, _ := Step(State{}, GPUs{gpus})
		answered := map[string]Claim{}
		restart := func() {
			for crashed := true; crashed; {
				s, _ = Step(State{}, GPUs{gpus})
				var effects []Effect
				s, effects = Step(s, d.recover())
				crashed = !runSome(t, d, effects)
			}
			checkDisk(t, d, answered)
		}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			c := drawClaim(t)
			unprepare := rapid.IntRange(0, 2).Draw(t, "unprepare") == 0
			var effects []Effect
			if unprepare {
				delete(answered, c.UID)
				s, effects = Step(s, Unprepare{c.UID})
			} else if s, effects = Step(s, Prepare{c}); refusedBy(effects) != "" {
				continue
			}
			switch {
			case !runSome(t, d, effects):
				restart()
			case unprepare:
				s, _ = Step(s, Unprepared{c.UID})
			default:
				s, _ = Step(s, Prepared{c.UID})
				answered[c.UID] = c
			}
			checkCapacity(t, d)
		}
		restart()
		for _, e := range s.Entries() {
			s, effects := Step(s, Unprepare{e.Claim.UID})
			for _, effect := range effects {
				d.run(effect)
			}
			_, _ = Step(s, Unprepared{e.Claim.UID})
		}
		if len(d.records)+len(d.limits)+len(d.cdi) != 0 {
			t.Fatalf("files are left after every claim was unprepared: %+v", d)
		}
	})
}

// runSome runs a prefix of effects and reports whether it was all of them.
func runSome(t *rapid.T, d *disk, effects []Effect) bool {
	n := len(effects)
	if rapid.IntRange(0, 3).Draw(t, "crash") == 0 {
		n = rapid.IntRange(0, n).Draw(t, "effects run")
	}
	for _, e := range effects[:n] {
		d.run(e)
	}
	return n == len(effects)
}

func checkDisk(t *rapid.T, d *disk, answered map[string]Claim) {
	for uid, c := range answered {
		if !d.records[uid].Claim.Equal(c) || !d.cdi[uid].Equal(c) || d.limits[uid].ClaimUID != uid {
			t.Fatalf("claim %s was answered, but its files are not all there: %+v", uid, d)
		}
	}
	for uid := range d.cdi {
		if _, ok := d.records[uid]; !ok {
			t.Fatalf("CDI file of %s has no record", uid)
		}
	}
	for uid := range d.limits {
		if _, ok := d.records[uid]; !ok {
			t.Fatalf("limits file of %s has no record", uid)
		}
	}
	checkCapacity(t, d)
}

func checkCapacity(t *rapid.T, d *disk) {
	sum, holders, wholes := map[string]quantity.Bytes{}, map[string]int{}, map[string]int{}
	for _, e := range d.records {
		for _, device := range e.Claim.Devices {
			sum[device.UUID] += device.Bytes
			holders[device.UUID]++
			if device.Kind == KindWhole {
				wholes[device.UUID]++
			}
		}
	}
	for uuid, bytes := range sum {
		if bytes > gpus[uuid] || wholes[uuid] > 0 && holders[uuid] > 1 {
			t.Fatalf("GPU %s is over its capacity: %+v", uuid, d.records)
		}
	}
}

func BenchmarkStepWith1000Claims(b *testing.B) {
	s, _ := Step(State{}, GPUs{map[string]quantity.Bytes{"a": 1 << 40}})
	for i := range 1000 {
		c := claim(string(rune('a'+i%26))+string(rune('0'+i/26)), share("a", 1))
		s, _ = Step(s, Prepare{c})
	}
	c := claim("new", share("a", 1))
	for b.Loop() {
		next, _ := Step(s, Prepare{c})
		next, _ = Step(next, Prepared{c.UID})
		_, _ = Step(next, Unprepared{c.UID})
	}
}
