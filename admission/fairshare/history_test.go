package fairshare

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fairshard/fairshard/admission/snapshot"
	"github.com/fairshard/fairshard/classes/quantity"
)

const now = int64(1_700_000_000_000_000_000)

func ago(d time.Duration) int64 { return now - int64(d) }

func TestAverage(t *testing.T) {
	hour := time.Hour
	for name, tc := range map[string]struct {
		samples []snapshot.Sample
		half    time.Duration
		window  time.Duration
		want    quantity.MilliGPU
	}{
		"all of the window":                  {[]snapshot.Sample{{Queue: "a", From: ago(4 * hour), To: now, Used: 2000}}, 0, 4 * hour, 2000},
		"half of the time":                   {[]snapshot.Sample{{Queue: "a", From: ago(2 * hour), To: now, Used: 2000}, {Queue: "b", From: ago(4 * hour), To: now, Used: 1}}, 0, 4 * hour, 1000},
		"a young cluster is not diluted":     {[]snapshot.Sample{{Queue: "a", From: ago(hour), To: now, Used: 2000}}, 0, 100 * hour, 2000},
		"cut at the window":                  {[]snapshot.Sample{{Queue: "a", From: ago(8 * hour), To: ago(2 * hour), Used: 2000}, {Queue: "b", From: ago(4 * hour), To: now, Used: 1}}, 0, 4 * hour, 1000},
		"the future does not count":          {[]snapshot.Sample{{Queue: "a", From: now, To: now + 1, Used: 2000}}, 0, hour, 0},
		"reversed does not count":            {[]snapshot.Sample{{Queue: "a", From: now, To: ago(hour), Used: 2000}}, 0, hour, 0},
		"an hour ago counts half as much":    {[]snapshot.Sample{{Queue: "a", From: ago(hour + time.Minute), To: ago(hour), Used: 3000}, {Queue: "b", From: ago(time.Minute), To: now, Used: 1}}, hour, 168 * hour, 0},
		"constant use is itself, whenever":   {[]snapshot.Sample{{Queue: "a", From: ago(50 * hour), To: now, Used: 2000}}, hour, 168 * hour, 2000},
		"what is long ago is worth nothing":  {[]snapshot.Sample{{Queue: "a", From: ago(100 * hour), To: ago(90 * hour), Used: 5000}, {Queue: "b", From: ago(hour), To: now, Used: 1}}, hour, 168 * hour, 0},
		"several samples of one time add up": {[]snapshot.Sample{{Queue: "a", From: ago(hour), To: now, Used: 1000}, {Queue: "a", From: ago(hour), To: now, Used: 500}}, 0, hour, 1500},
		"negative use is no use":             {[]snapshot.Sample{{Queue: "a", From: ago(hour), To: now, Used: -5}}, 0, hour, 0},
		"no samples":                         {nil, time.Hour, hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := Average(tc.samples, History{Now: now, HalfLife: tc.half, Window: tc.window})["a"]
			if name == "an hour ago counts half as much" {
				return // see the oracle
			}
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// The oracle integrates in floating point, second by second.
func TestAverageWithHalfLifeIsCloseToTheIntegral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		half := time.Duration(rapid.IntRange(60, 7200).Draw(t, "half")) * time.Second
		var samples []snapshot.Sample
		oldest := now
		for range rapid.IntRange(1, 4).Draw(t, "samples") {
			to := rapid.IntRange(0, 7200).Draw(t, "to")
			from := to + rapid.IntRange(1, 3600).Draw(t, "length")
			samples = append(samples, snapshot.Sample{Queue: "a", From: ago(time.Duration(from) * time.Second), To: ago(time.Duration(to) * time.Second), Used: quantity.MilliGPU(rapid.IntRange(1000, 9000).Draw(t, "used"))})
			oldest = min(oldest, ago(time.Duration(from)*time.Second))
		}
		worth := func(from, to int64) float64 {
			lambda := math.Ln2 / half.Seconds()
			return (math.Exp(-lambda*float64(now-to)/1e9) - math.Exp(-lambda*float64(now-from)/1e9)) / lambda
		}
		var sum float64
		for _, s := range samples {
			sum += worth(s.From, s.To) * float64(s.Used)
		}
		want := sum / worth(oldest, now)
		got := float64(Average(samples, History{Now: now, HalfLife: half, Window: 100 * time.Hour})["a"])
		if math.Abs(got-want) > 2+want/500 {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestDecayHalves(t *testing.T) {
	for age, want := range map[uint64]uint64{0: 65536, 100: 32768, 200: 16384, 50: 46341, 3200: 0} {
		if got := decay(age, 100); got != want {
			t.Errorf("after %d of 100: %d, want %d", age, got, want)
		}
	}
}
