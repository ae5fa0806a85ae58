package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/admission/scenario"
	"github.com/fairshard/fairshard/admission/simulate"
)

const simulateLong = `Run the planner on scenario files until nothing changes.

A scenario is a small cluster written by hand: nodes, queues, workloads, and,
if you like, what should happen. Several documents and several files may be
given; a folder stands for all of its *.yaml files.

Exit codes: 0 all as expected (or nothing expected), 1 a mismatch, 2 a file or
the command line is wrong.`

const simulateExample = `  # what happens, as a table
  kubectl-fairshard simulate -f scenario.yaml

  # check all scenarios of a folder, for a machine
  kubectl-fairshard simulate -f tests/scenarios -o json`

func simulateCommand() *cobra.Command {
	var files []string
	var format string
	cmd := &cobra.Command{
		Use: "simulate -f FILE", Short: "Run the planner on scenario files", Long: simulateLong, Example: simulateExample,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			show, known := printers[format]
			if !known {
				return fmt.Errorf("-o %q is not known: use json, yaml or table", format)
			}
			results, wrong := runFiles(files)
			if len(results) > 0 {
				if err := show(cmd.OutOrStdout(), results); err != nil {
					return fmt.Errorf("print results: %w", err)
				}
			}
			if wrong != nil {
				return wrong
			}
			if slices.ContainsFunc(results, func(r simulate.Result) bool { return !r.OK() }) {
				return errMismatch
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "scenario file or folder; may be given several times, - is standard input")
	cmd.Flags().StringVarP(&format, "output", "o", "table", "json, yaml or table")
	_ = cmd.MarkFlagRequired("filename") // the flag exists
	return cmd
}

// runFiles runs all scenarios of files. A file that is wrong does not keep the
// others from running.
func runFiles(names []string) ([]simulate.Result, error) {
	var results []simulate.Result
	var wrong []error
	for _, name := range names {
		files, err := expand(name)
		wrong = append(wrong, err)
		for _, file := range files {
			scenarios, err := load(file)
			wrong = append(wrong, err)
			for _, s := range scenarios {
				results = append(results, simulate.Run(s, decide.Cycle))
			}
		}
	}
	return results, errors.Join(wrong...)
}

// expand returns the files that a name stands for.
func expand(name string) ([]string, error) {
	if name == "-" {
		return []string{"/dev/stdin"}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", name, err)
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	files, err := filepath.Glob(filepath.Join(name, "*.yaml"))
	if err == nil && len(files) == 0 {
		err = errors.New("it holds no *.yaml file")
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", name, err)
	}
	slices.Sort(files)
	return files, nil
}

func load(file string) ([]simulate.Scenario, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return scenario.Parse(file, text)
}
