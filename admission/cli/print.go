package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"

	"github.com/fairshard/fairshard/admission/simulate"
	"github.com/fairshard/fairshard/classes/quantity"
)

// printers by name of the format.
var printers = map[string]func(io.Writer, []simulate.Result) error{"json": printJSON, "yaml": printYAML, "table": printTable}

// The output: field names and order are what scripts rely on.
type (
	output struct {
		Name       string     `json:"name"`
		Stable     bool       `json:"stable"`
		Cycles     int        `json:"cycles"`
		OK         bool       `json:"ok"`
		Mismatches []string   `json:"mismatches"`
		Queues     []queue    `json:"queues"`
		Workloads  []workload `json:"workloads"`
		Decisions  []decision `json:"decisions"`
	}
	queue struct {
		Name               string `json:"name"`
		Deserved           *gpus  `json:"deserved"` // null: whatever its level has
		FairShare          gpus   `json:"fairShare"`
		Used               gpus   `json:"used"`
		UsedNonPreemptible gpus   `json:"usedNonPreemptible"`
		Limit              *gpus  `json:"limit"` // null: none
	}
	workload struct {
		Name      string   `json:"name"`
		Phase     string   `json:"phase"` // Running or Pending
		Nodes     []string `json:"nodes"` // of its running pods
		GPUs      [][]int  `json:"gpus"`  // the same: positions on the node
		Evictions int      `json:"evictions"`
		Reasons   []reason `json:"reasons"`
	}
	reason struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	decision struct {
		Cycle    int      `json:"cycle"`
		Kind     string   `json:"kind"` // Start, Release or Evict
		Workload string   `json:"workload"`
		Pods     []string `json:"pods,omitempty"` // if it is about some pods only
		For      string   `json:"for,omitempty"`
		Rule     string   `json:"rule,omitempty"`
		Message  string   `json:"message"`
	}
)

// gpus are printed as a decimal with at most three digits.
type gpus quantity.MilliGPU

// MarshalJSON writes a number.
func (g gpus) MarshalJSON() ([]byte, error) { return []byte(quantity.MilliGPU(g).String()), nil }

// bounded is nil for what has no bound.
func bounded(m quantity.MilliGPU) *gpus {
	if m == quantity.Unlimited {
		return nil
	}
	g := gpus(m)
	return &g
}

func outputOf(r simulate.Result) output {
	out := output{
		Name: r.Name, Stable: r.Stable, Cycles: r.Cycles, OK: r.OK(), Mismatches: append([]string{}, r.Mismatches...),
		Queues: []queue{}, Workloads: []workload{}, Decisions: []decision{},
	}
	for _, q := range r.Queues {
		out.Queues = append(out.Queues, queue{q.Name, bounded(q.Deserved), gpus(q.FairShare), gpus(q.Used), gpus(q.UsedNonPreemptible), bounded(q.Limit)})
	}
	for _, w := range r.Workloads {
		one := workload{Name: w.Name, Phase: phase(w), Nodes: append([]string{}, w.Nodes...), GPUs: [][]int{}, Evictions: w.Evictions, Reasons: []reason{}}
		for _, gpus := range w.GPUs {
			one.GPUs = append(one.GPUs, append([]int{}, gpus...))
		}
		for _, why := range w.Reasons {
			one.Reasons = append(one.Reasons, reason(why))
		}
		out.Workloads = append(out.Workloads, one)
	}
	for _, d := range r.Decisions {
		out.Decisions = append(out.Decisions, decision(d))
	}
	return out
}

func phase(w simulate.Workload) string {
	if w.Running {
		return "Running"
	}
	return "Pending"
}

// all is one object for one result, and a list for several.
func all(results []simulate.Result) any {
	if len(results) == 1 {
		return outputOf(results[0])
	}
	list := make([]output, 0, len(results))
	for _, r := range results {
		list = append(list, outputOf(r))
	}
	return list
}

func printJSON(w io.Writer, results []simulate.Result) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(all(results))
}

func printYAML(w io.Writer, results []simulate.Result) error {
	text, err := yaml.Marshal(all(results))
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// printTable is for people.
func printTable(w io.Writer, results []simulate.Result) error {
	for i, r := range results {
		if i > 0 {
			fmt.Fprintln(w)
		}
		printOne(w, r)
	}
	return nil
}

func printOne(w io.Writer, r simulate.Result) {
	cycles := fmt.Sprintf("%d cycles", r.Cycles)
	if r.Cycles == 1 {
		cycles = "1 cycle"
	}
	rest := "at rest after " + cycles
	if !r.Stable {
		rest = "NOT " + rest
	}
	fmt.Fprintf(w, "%s: %s\n", r.Name, rest)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nQUEUE\tDESERVED\tFAIR SHARE\tUSED\tLIMIT")
	for _, q := range r.Queues {
		limit := q.Limit.String()
		if q.Limit == quantity.Unlimited {
			limit = "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", q.Name, q.Deserved, q.FairShare, q.Used, limit)
	}
	if len(r.Workloads) > 0 {
		fmt.Fprintln(table, "\nWORKLOAD\tPHASE\tNODES\tEVICTIONS\tREASON")
	}
	for _, one := range r.Workloads {
		code := "-"
		if len(one.Reasons) > 0 {
			code = one.Reasons[0].Code
		}
		nodes := strings.Join(one.Nodes, ",")
		if nodes == "" {
			nodes = "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", one.Name, phase(one), nodes, one.Evictions, code)
	}
	_ = table.Flush()
	printDecisions(w, r)
	for _, mismatch := range r.Mismatches {
		fmt.Fprintln(w, "\nMISMATCH:", mismatch)
	}
}

func printDecisions(w io.Writer, r simulate.Result) {
	if len(r.Decisions) > 0 {
		fmt.Fprintln(w)
	}
	for _, d := range r.Decisions {
		what := d.Workload
		if len(d.Pods) > 0 {
			what = strings.Join(d.Pods, ", ")
		}
		fmt.Fprintf(w, "cycle %d: %s %s", d.Cycle, d.Kind, what)
		if d.Kind == "Evict" {
			fmt.Fprintf(w, ": %s", d.Message)
		}
		fmt.Fprintln(w)
	}
	for _, one := range r.Workloads {
		for _, why := range one.Reasons {
			fmt.Fprintf(w, "%s: %s\n", one.Name, why.Message)
		}
	}
}
