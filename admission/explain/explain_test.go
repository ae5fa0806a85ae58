package explain

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
)

func TestTexts(t *testing.T) {
	base := decide.Numbers{Pool: "h100", Queue: "team-a", Pods: 1, WantGPUs: 1, Whole: true, TotalGPUs: 16, MostOnNode: 8, LargestBytes: 80128 * quantity.MiB}
	with := func(change func(*decide.Numbers)) decide.Numbers {
		n := base
		change(&n)
		return n
	}
	for name, tc := range map[string]struct {
		d    decide.Decision
		want string
	}{
		"one GPU": {
			decide.Decision{Kind: decide.Hold, Reason: classes.ReasonWaitingForCapacity, Numbers: base},
			"Waiting for free GPUs: its pod asks for 1 whole GPU; 0 of 16 GPUs of pool h100 could take a whole-GPU request now. It starts by itself when there is room.",
		},
		"a gang": {
			decide.Decision{Kind: decide.Hold, Reason: classes.ReasonWaitingForCapacity, Numbers: with(func(n *decide.Numbers) {
				n.Pods, n.WantGPUs, n.FreeGPUs, n.PlacedPods = 2, 8, 8, 1
			})},
			"Waiting for free GPUs: 2 pods start together and each asks for 8 whole GPUs of one node; 8 of 16 GPUs of pool h100 could take a whole-GPU request now, room for 1 of 2 pods. It starts by itself when there is room.",
		},
		"a shard": {
			decide.Decision{Kind: decide.Hold, Reason: classes.ReasonWaitingForCapacity, Numbers: with(func(n *decide.Numbers) {
				n.Whole, n.WantGPUs, n.WantBytes, n.FreeGPUs = false, 8, 40e9, 7
			})},
			"Waiting for free GPUs: its pod asks for 37.25Gi on each of 8 GPUs of one node; 7 of 16 GPUs of pool h100 could take such a share now. It starts by itself when there is room.",
		},
		"more memory than any GPU has": {
			decide.Decision{Kind: decide.Hold, Reason: classes.ReasonNeverFits, Numbers: with(func(n *decide.Numbers) {
				n.Whole, n.WantBytes, n.MostOnNode = false, 200*quantity.GiB, 0
			})},
			"Cannot start: its pod asks for 200Gi of one GPU; the largest GPU of pool h100 offers 78.25Gi. Change the request.",
		},
		"more GPUs than any node has": {
			decide.Decision{Kind: decide.Hold, Reason: classes.ReasonNeverFits, Numbers: with(func(n *decide.Numbers) { n.WantGPUs = 9 })},
			"Cannot start: its pod asks for 9 whole GPUs of one node; no node of pool h100 has more than 8 such GPUs. Change the request.",
		},
		"a gang larger than the pool": {
			decide.Decision{Kind: decide.Hold, Reason: classes.ReasonNeverFits, Numbers: with(func(n *decide.Numbers) { n.Pods, n.WantGPUs, n.GangFits = 3, 8, 2 })},
			"Cannot start: 3 pods start together and each asks for 8 whole GPUs of one node; the nodes of pool h100 have room for 2 such pods, not 3, even when nobody else uses them. Change the request.",
		},
		"no GPU": {
			decide.Decision{Kind: decide.Hold, Reason: classes.ReasonPoolEmpty, Numbers: base},
			"Waiting for GPUs: pool h100 of queue team-a has no healthy GPU on a schedulable node. Ask the administrator.",
		},
		"strict order": {
			decide.Decision{Kind: decide.Hold, Reason: classes.ReasonBehindHead, Numbers: decide.Numbers{Queue: "team-a", Ahead: "team-a/job-x"}},
			"Waiting behind team-a/job-x: queue team-a starts its work strictly in order.",
		},
		"a gated pod": {
			decide.Decision{Kind: decide.Hold, Pod: "p-1", Reason: classes.ReasonWaitingForCapacity, Numbers: base},
			"Waiting for free GPUs: pod p-1 asks for 1 whole GPU; 0 of 16 GPUs of pool h100 could take a whole-GPU request now. It starts by itself when there is room.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Text(tc.d); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestUnresolvedTexts(t *testing.T) {
	for reason, want := range map[classes.Reason]string{
		classes.ReasonTemplateNotFound:   "Cannot be queued yet: X. It goes on by itself once that exists.",
		classes.ReasonInvalidRequest:     "Cannot be queued: X. Change the request.",
		classes.ReasonQueueMisconfigured: "Cannot be queued yet: X. Ask the administrator.",
	} {
		if got := Unresolved(reason, "X"); got != want {
			t.Errorf("%s: got %q, want %q", reason, got, want)
		}
	}
}

// Every code of the closed list has somebody who can act and a text with more than the code.
func TestEveryReasonIsInTheTable(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../classes/reasons.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Type == nil || spec.Type.(*ast.Ident).Name != "Reason" {
			return true
		}
		code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		found++
		if _, known := who[classes.Reason(code)]; !known {
			t.Errorf("reason %s is in no table", code)
		}
		text := Text(decide.Decision{Kind: decide.Hold, Reason: classes.Reason(code)}) + Unresolved(classes.Reason(code), "detail")
		if len(text) > 600 || !strings.Contains(text, " ") {
			t.Errorf("reason %s: text %q", code, text)
		}
		return true
	})
	if found != len(who) || found < 10 {
		t.Errorf("classes has %d reasons, the table %d", found, len(who))
	}
}

// The table of deployments/README.md has every code once, with who can act.
func TestTheDocumentedReasonsAreTheTable(t *testing.T) {
	text, err := os.ReadFile("../../deployments/README.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[classes.Reason]classes.Who{}
	row := regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\| ([a-z ]+) \\|")
	for _, match := range row.FindAllStringSubmatch(string(text), -1) {
		documented[classes.Reason(match[1])] = classes.Who(match[2])
	}
	if !maps.Equal(documented, who) {
		t.Errorf("documented %v\nthe table  %v", documented, who)
	}
}
