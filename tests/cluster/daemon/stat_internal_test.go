package daemon

import "testing"

func TestParseStatSurvivesOddNames(t *testing.T) {
	for line, want := range map[string]stat{
		"12 (etcd) S 1 12 12 0":        {state: "S", parent: 1, session: 12},
		"12 (a) b (c) Z 7 12 9 0 -1 4": {state: "Z", parent: 7, session: 9},
	} {
		if got, ok := parseStat(line); !ok || got != want {
			t.Errorf("%q: %+v %v, want %+v", line, got, ok, want)
		}
	}
	for _, line := range []string{"", "12 (etcd", "12 (etcd) S 1"} {
		if got, ok := parseStat(line); ok {
			t.Errorf("%q: read as %+v", line, got)
		}
	}
}
