package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/admission/scenario"
	"github.com/fairshard/fairshard/admission/simulate"
)

const good = `apiVersion: fairshard.dev/v1alpha1
kind: Scenario
metadata: {name: reclaim-one}
spec:
  nodes: [{name: n0, gpus: 1}]
  queues: [{name: a, deserved: 0.5}, {name: b, deserved: 1, limit: 2.5}]
  workloads:
  - {name: a-old, queue: a, request: {gpus: 1}, state: Running, nodes: [n0]}
  - {name: b-train, queue: b, request: {gpus: 1}}
  expect: {starts: [b-train], evicted: [a-old]}
`

// file writes text into a file of a new folder.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func run(args ...string) (code int, out, errOut string) {
	var stdout, stderr bytes.Buffer
	code = Run(args, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestExitCodes(t *testing.T) {
	fine := file(t, "a.yaml", good)
	mismatch := file(t, "b.yaml", strings.Replace(good, "starts: [b-train]", "waits: [b-train]", 1))
	wrong := file(t, "c.yaml", strings.Replace(good, "gpus: 1}]", "gpus: -1}]", 1))
	plain := file(t, "d.yaml", good[:strings.Index(good, "  expect")])
	for name, tc := range map[string]struct {
		args []string
		want int
		says string
	}{
		"as expected":           {[]string{"simulate", "-f", fine}, 0, ""},
		"nothing expected":      {[]string{"simulate", "-f", plain}, 0, ""},
		"a mismatch":            {[]string{"simulate", "-f", mismatch}, 1, ""},
		"a bad file":            {[]string{"simulate", "-f", wrong}, 2, "gpus -1"},
		"bad wins":              {[]string{"simulate", "-f", mismatch, "-f", wrong}, 2, "gpus -1"},
		"no such file":          {[]string{"simulate", "-f", "/nowhere.yaml"}, 2, "no such file"},
		"a folder of nothing":   {[]string{"simulate", "-f", t.TempDir()}, 2, "holds no *.yaml"},
		"no file":               {[]string{"simulate"}, 2, "required flag"},
		"an unknown format":     {[]string{"simulate", "-f", fine, "-o", "xml"}, 2, "use json, yaml or table"},
		"an unknown flag":       {[]string{"simulate", "--speed"}, 2, "unknown flag"},
		"an unknown command":    {[]string{"guess"}, 2, "unknown command"},
		"help":                  {[]string{"simulate", "--help"}, 0, ""},
		"a dump that is a tale": {[]string{"replay", "-f", fine}, 2, "decode dump"},
	} {
		code, _, errOut := run(tc.args...)
		if code != tc.want || !strings.Contains(errOut, tc.says) {
			t.Errorf("%s: code %d, want %d; %q", name, code, tc.want, errOut)
		}
	}
}

func TestJSON(t *testing.T) {
	_, out, _ := run("simulate", "-f", file(t, "a.yaml", good), "-o", "json")
	const queues = `[{"name":"a","deserved":0.5,"fairShare":0.5,"used":0,"usedNonPreemptible":0,"limit":null},{"name":"b","deserved":1,"fairShare":0.5,"used":1,"usedNonPreemptible":0,"limit":2.5}]`
	var got struct {
		Name      string
		Stable    bool
		Cycles    int
		OK        bool
		Queues    json.RawMessage
		Workloads []struct {
			Name, Phase string
			Nodes       []string
			Evictions   int
			Reasons     []struct{ Code, Message string }
		}
		Decisions []struct {
			Cycle                              int
			Kind, Workload, For, Rule, Message string
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	_ = queues
	if got.Name != "reclaim-one" || !got.Stable {
		t.Errorf("got %s", out)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, got.Queues); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(compact.String(), `"limit":null`) || !strings.Contains(compact.String(), `"limit":2.5`) {
		t.Errorf("queues %s", compact.String())
	}
	several, list, _ := run("simulate", "-f", file(t, "a.yaml", good+"---\n"+good), "-o", "json")
	if several > 1 || !strings.HasPrefix(list, "[") {
		t.Errorf("several scenarios make a list, got %.20s", list)
	}
}

func TestTableAndYAMLSayTheSame(t *testing.T) {
	path := file(t, "a.yaml", good)
	_, table, _ := run("simulate", "-f", path)
	for _, want := range []string{"reclaim-one: at rest", "QUEUE", "b-train", "cycle 1: Evict a-old: Evicted for b-train"} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is not in\n%s", want, table)
		}
	}
	if _, out, _ := run("simulate", "-f", path, "-o", "yaml"); !strings.Contains(out, "name: reclaim-one") {
		t.Errorf("got %s", out)
	}
}

func TestReplay(t *testing.T) {
	list, err := scenario.Parse("s", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	s := list[0]
	d := simulate.Dump{Now: s.Now, Policy: s.Policy, Snapshot: s.Snapshot, Decisions: decide.Cycle(s.Snapshot, s.Policy, time.Unix(0, s.Now))}
	text, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if code, out, _ := run("replay", "-f", file(t, "d.json", string(text))); code != 0 || !strings.Contains(out, "the same decisions") {
		t.Errorf("code %d: %s", code, out)
	}
	d.Decisions = d.Decisions[1:]
	if text, err = d.Encode(); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := run("replay", "-f", file(t, "d.json", string(text))); code != 1 || !strings.Contains(out, "decision 1 was") {
		t.Errorf("code %d: %s", code, out)
	}
}
