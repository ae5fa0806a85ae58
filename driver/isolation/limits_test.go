package isolation

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairshard/fairshard/classes/quantity"
)

const golden = `fairshard-limits=1
claim=c-1
namespace=team-a
name=half
tier=None
gpu.GPU-a=40000000000
gpu.GPU-b=all
`

func TestEncodeIsTheDocumentedText(t *testing.T) {
	l := New("c-1", "team-a", "half", []Limit{{UUID: "GPU-b", Whole: true}, {UUID: "GPU-a", Bytes: 40e9}})
	if got := string(l.Encode()); got != golden {
		t.Errorf("got\n%s\nwant\n%s", got, golden)
	}
}

func TestParseRefusesBadFilesAndIgnoresNewKeys(t *testing.T) {
	for name, c := range map[string]struct{ content, wantErr string }{
		"empty":            {"", "first line"},
		"other version":    {"fairshard-limits=2\nclaim=c\n", "first line"},
		"no claim":         {"fairshard-limits=1\n", "no claim"},
		"not key=value":    {"fairshard-limits=1\nclaim=c\nnonsense\n", "line 3"},
		"negative bytes":   {"fairshard-limits=1\nclaim=c\ngpu.GPU-a=-1\n", "positive"},
		"zero bytes":       {"fairshard-limits=1\nclaim=c\ngpu.GPU-a=0\n", "positive"},
		"unknown key":      {"fairshard-limits=1\nclaim=c\ncompute=50\n", ""},
		"the golden file":  {golden, ""},
		"cut after a line": {golden[:strings.Index(golden, "gpu.")], ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(c.content))
			if (err == nil) != (c.wantErr == "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
				t.Errorf("got error %v, want %q", err, c.wantErr)
			}
		})
	}
}

func TestParseReadsWhatEncodeWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z0-9-]{1,20}`)
		var gpus []Limit
		for range rapid.IntRange(0, 8).Draw(t, "gpus") {
			g := Limit{UUID: word.Draw(t, "uuid"), Whole: rapid.Bool().Draw(t, "whole")}
			if !g.Whole {
				g.Bytes = quantity.Bytes(rapid.Int64Range(1, 1<<50).Draw(t, "bytes"))
			}
			gpus = append(gpus, g)
		}
		want := New(word.Draw(t, "uid"), word.Draw(t, "ns"), word.Draw(t, "name"), gpus)
		got, err := Parse(want.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if len(want.GPUs) == 0 {
			want.GPUs = nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(golden))
	f.Add([]byte("fairshard-limits=1\nclaim=c\ngpu.=all\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		l, err := Parse(content)
		if err != nil {
			return
		}
		again, err := Parse(l.Encode())
		if err != nil || !reflect.DeepEqual(l, again) {
			t.Fatalf("%+v encodes to something else: %+v, %v", l, again, err)
		}
	})
}
