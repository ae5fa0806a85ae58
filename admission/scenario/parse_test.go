package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/admission/simulate"
)

// doc is a good scenario with some lines changed.
func doc(replace ...string) string {
	return strings.NewReplacer(replace...).Replace(`apiVersion: fairshard.dev/v1alpha1
kind: Scenario
metadata: {name: s}
spec:
  policy: {}
  nodes:
  - {name: n0, gpus: 2}
  queues:
  - {name: d}
  - {name: q, parent: d, deserved: 1}
  workloads:
  - {name: w, queue: q, request: {gpus: 1}}
  expect: {starts: [w]}
`)
}

const (
	workLine  = "{name: w, queue: q, request: {gpus: 1}}"
	queueLine = "{name: q, parent: d, deserved: 1}"
	nodeLine  = "{name: n0, gpus: 2}"
)

func TestAGoodFileIsRead(t *testing.T) {
	list, err := Parse("f", []byte(doc()+"---\n"+doc("name: s}", "name: t}")))
	if err != nil || len(list) != 2 || list[1].Name != "t" {
		t.Fatalf("%d scenarios, %v", len(list), err)
	}
	if r := simulate.Run(list[0], decide.Cycle); !r.OK() || r.Cycles != 1 {
		t.Errorf("%+v", r)
	}
}

func TestBadFilesAreRefusedWithWhatAndWhere(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"not YAML":                 {"a: [", "yaml"},
		"nothing":                  {"", "holds no scenario"},
		"another kind":             {doc("kind: Scenario", "kind: Pod"), "write fairshard.dev/v1alpha1 and Scenario"},
		"no name":                  {doc("{name: s}", "{}"), "metadata.name is missing"},
		"an unknown field":         {doc(workLine, "{name: w, queue: q, request: {gpus: 1}, color: red}"), "line 12: field color not found"},
		"an unknown mode":          {doc("policy: {}", "mode: Fast"), "write Converge or FairShareOnly"},
		"an unknown policy":        {doc("policy: {}", "policy: {speed: 1}"), `unknown field "speed"`},
		"a bad policy":             {doc("policy: {}", "policy: {overcommittedQuota: Never}"), "use Proportional or FirstCome"},
		"too many cycles":          {doc("policy: {}", "maxCycles: 1000000"), "must be 1 to 10000"},
		"a node without name":      {doc(nodeLine, "{gpus: 2}"), "nodes[0]: name is missing"},
		"a node twice":             {doc(nodeLine, nodeLine+"\n  - "+nodeLine), "node n0: there are two"},
		"negative GPUs":            {doc(nodeLine, "{name: n0, gpus: -1}"), "gpus -1 must be 0 to"},
		"a sick GPU that is not":   {doc(nodeLine, "{name: n0, gpus: 2, unhealthyGPUs: [2]}"), "names GPU 2, it has 0 to 1"},
		"bad memory":               {doc(nodeLine, "{name: n0, gpus: 2, gpuMemory: much}"), `"much" is not an amount of bytes`},
		"foreign on nothing":       {doc(nodeLine, "{name: n0, gpus: 2, foreign: [{gpu: 5, whole: true}]}"), "foreign names GPU 5"},
		"foreign of both kinds":    {doc(nodeLine, "{name: n0, gpus: 2, foreign: [{gpu: 0, whole: true, memory: 1Gi}]}"), "give whole: true or a memory"},
		"a circle of queues":       {doc("{name: d}", "{name: d, parent: q}"), "go round in a circle"},
		"an unknown parent":        {doc(queueLine, "{name: q, parent: x}"), "parent x does not exist"},
		"a queue twice":            {doc(queueLine, queueLine+"\n  - "+queueLine), "queue q: there are two"},
		"negative deserved":        {doc(queueLine, "{name: q, parent: d, deserved: -1}"), `"-1" is not a number of GPUs: it is negative`},
		"absurd deserved":          {doc(queueLine, "{name: q, parent: d, deserved: 1e30}"), "it is above"},
		"a word as weight":         {doc(queueLine, "{name: q, parent: d, weight: heavy}"), `"heavy" is not a number`},
		"a slash in a name":        {doc(workLine, "{name: a/b, queue: q, request: {gpus: 1}}"), "hold no slash"},
		"a workload twice":         {doc(workLine, workLine+"\n  - "+workLine), "workload w: there are two"},
		"an unknown queue":         {doc(workLine, "{name: w, queue: x, request: {gpus: 1}}"), `queue "x" does not exist`},
		"a queue with children":    {doc(workLine, "{name: w, queue: d, request: {gpus: 1}}"), "queue d has children"},
		"no request":               {doc(workLine, "{name: w, queue: q}"), "one of gpus, fraction, memory and mig"},
		"two requests":             {doc(workLine, "{name: w, queue: q, request: {gpus: 1, mig: 1g.10gb}}"), "one of gpus, fraction, memory and mig"},
		"a fraction above one":     {doc(workLine, `{name: w, queue: q, request: {fraction: "1.5"}}`), "must be above 0 and at most 1"},
		"a count with GPUs":        {doc(workLine, "{name: w, queue: q, request: {gpus: 1, count: 2}}"), "request.count is for shares"},
		"a MIG that is not":        {doc(workLine, "{name: w, queue: q, request: {mig: big}}"), `read MIG profile "big"`},
		"no pods":                  {doc(workLine, "{name: w, queue: q, pods: 0, request: {gpus: 1}}"), "pods 0 must be 1 to"},
		"a minimum above the pods": {doc(workLine, "{name: w, queue: q, pods: 2, minPods: 3, request: {gpus: 1}}"), "minPods 3 must be 1 to pods"},
		"running without nodes":    {doc(workLine, "{name: w, queue: q, request: {gpus: 1}, state: Running}"), "name the node of every running pod"},
		"running on too many":      {doc(workLine, "{name: w, queue: q, request: {gpus: 1}, state: Running, nodes: [n0, n0]}"), "of 1 pods"},
		"running on no node":       {doc(workLine, "{name: w, queue: q, request: {gpus: 1}, state: Running, nodes: [n9]}"), "node n9 does not exist"},
		"running without room":     {doc(workLine, "{name: w, queue: q, request: {gpus: 3}, state: Running, nodes: [n0]}"), "does not fit on node n0"},
		"pending on a node":        {doc(workLine, "{name: w, queue: q, request: {gpus: 1}, nodes: [n0]}"), "it is Pending"},
		"an unknown state":         {doc(workLine, "{name: w, queue: q, request: {gpus: 1}, state: Done}"), "write Running or Pending"},
		"a bad time span":          {doc(workLine, "{name: w, queue: q, request: {gpus: 1}, waitingFor: -1s}"), "is not a time span"},
		"expecting nobody":         {doc("[w]", "[x]"), "expect: workload x does not exist"},
		"expecting no such pod":    {doc("[w]", "[w/1]"), "workload w has pods 0 to 0"},
		"expecting no such queue":  {doc("{starts: [w]}", "{fairShare: {x: 1}}"), "queue x does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("file.yaml", []byte(tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "file.yaml") {
				t.Errorf("got %v, want %q in it", err, tc.want)
			}
		})
	}
}

// Whatever is read can be divided and run for a cycle without a panic.
func FuzzParse(f *testing.F) {
	f.Add(doc())
	files, _ := filepath.Glob("../../tests/scenarios/*.yaml")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil {
			f.Add(string(text))
		}
	}
	f.Fuzz(func(_ *testing.T, text string) {
		if len(text) > 4096 {
			return
		}
		list, err := Parse("fuzz", []byte(text))
		if err != nil {
			return
		}
		for _, s := range list {
			pods := 0
			for _, w := range s.Snapshot.Workloads {
				pods += w.PodSets[0].Count
			}
			if pods > 1000 {
				continue
			}
			s.MaxCycles = 2
			simulate.Run(s, decide.Cycle)
		}
	})
}
