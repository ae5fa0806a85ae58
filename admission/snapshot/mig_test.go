package snapshot

import (
	"strings"
	"testing"

	"github.com/fairshard/fairshard/classes/quantity"
)

func TestParseMIG(t *testing.T) {
	const h100, h200, a100, b200 = 79*gib + gib/4, 141*gib - gib/2, 39*gib + gib/2, 179 * gib
	for name, tc := range map[string]struct {
		profile         string
		usable          quantity.Bytes
		compute, slices int // 0 = refused
		milli           quantity.MilliGPU
	}{
		"a seventh of an H100":                {"1g.10gb", h100, 1, 1, 143},
		"more memory for one compute slice":   {"1g.20gb", h100, 1, 2, 250},
		"two sevenths":                        {"2g.20gb", h100, 2, 2, 286},
		"three sevenths have half the memory": {"3g.40gb", h100, 3, 4, 500},
		"four sevenths":                       {"4g.40gb", h100, 4, 4, 572},
		"everything":                          {"7g.80gb", h100, 7, 8, 1000},
		"a suffix is for the driver":          {"1g.10gb+me", h100, 1, 1, 143},
		"an H200":                             {"1g.18gb", h200, 1, 1, 143},
		"half an H200":                        {"3g.71gb", h200, 3, 4, 500},
		"all of an H200":                      {"7g.141gb", h200, 7, 8, 1000},
		"a small A100":                        {"1g.5gb", a100, 1, 1, 143},
		"half a small A100":                   {"3g.20gb", a100, 3, 4, 500},
		"a B200":                              {"2g.45gb", b200, 2, 2, 286},
		"more memory than there is":           {"7g.80gb", a100, 0, 0, 0},
		"less memory than compute needs":      {"4g.10gb", h100, 0, 0, 0},
		"no profile":                          {"whole", h100, 0, 0, 0},
		"no unit":                             {"1g.10", h100, 0, 0, 0},
		"no compute":                          {"0g.10gb", h100, 0, 0, 0},
		"too much compute":                    {"8g.80gb", h100, 0, 0, 0},
		"negative":                            {"1g.-10gb", h100, 0, 0, 0},
		"absurd":                              {"1g.99999999999999999999gb", h100, 0, 0, 0},
		"unknown memory":                      {"1g.10gb", 0, 0, 0, 0},
		"nothing":                             {"", h100, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := ParseMIG(tc.profile, tc.usable)
			if tc.compute == 0 {
				if err == nil || !strings.Contains(err.Error(), "as in 1g.10gb") {
					t.Fatalf("got %+v, %v, want an error that says what to write", p, err)
				}
				return
			}
			if err != nil || p != (MIGProfile{tc.profile, tc.compute, tc.slices}) || p.Milli() != tc.milli {
				t.Errorf("got %+v, %d, %v, want %d compute, %d slices, %d", p, p.Milli(), err, tc.compute, tc.slices, tc.milli)
			}
		})
	}
}

// starts are NVIDIA's placements by compute and memory slices, written down
// from its tables and not computed.
var starts = map[[2]int][]int{
	{1, 1}: {0, 1, 2, 3, 4, 5, 6}, {1, 2}: {0, 2, 4, 6}, {2, 2}: {0, 2, 4}, {3, 4}: {0, 4}, {4, 4}: {0}, {7, 8}: {0},
}

func TestMIGPlacementsAreThoseOfNVIDIA(t *testing.T) {
	for slices, want := range starts {
		p := MIGProfile{Compute: slices[0], Slices: slices[1]}
		var used uint8
		for _, s := range want {
			mask, free := p.start(used)
			if expect := uint8((1<<slices[1] - 1) << s); !free || mask != expect {
				t.Errorf("%v on %08b: got %08b, %t, want start %d", slices, used, mask, free, s)
			}
			used |= mask
		}
		if mask, free := p.start(used); free {
			t.Errorf("%v on %08b: %08b is one too many", slices, used, mask)
		}
	}
}
