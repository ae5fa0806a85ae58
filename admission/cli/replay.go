package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/fairshard/fairshard/admission/decide"
	"github.com/fairshard/fairshard/admission/simulate"
)

const replayLong = `Decide again on the dump of a real cycle, and compare.

The admission controller serves its last cycle at /debug/snapshot of its metrics
server when it runs with --debug-snapshot. The same program version decides the
same, byte for byte; another version may not, and the difference is shown.

Exit codes: 0 the same decisions, 1 others, 2 a file or the command line is wrong.`

const replayExample = `  curl -s http://localhost:8080/debug/snapshot > dump.json
  kubectl-fairshard replay -f dump.json`

func replayCommand() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use: "replay -f DUMP", Short: "Decide again on the dump of a real cycle", Long: replayLong, Example: replayExample,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var wrong []error
			same := true
			for _, file := range files {
				differ, err := replay(file)
				wrong = append(wrong, err)
				same = same && len(differ) == 0
				for _, line := range differ {
					fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", file, line)
				}
				if err == nil && len(differ) == 0 {
					fmt.Fprintf(cmd.OutOrStdout(), "%s: the same decisions\n", file)
				}
			}
			if err := errors.Join(wrong...); err != nil {
				return err
			}
			if !same {
				return errMismatch
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVarP(&files, "filename", "f", nil, "dump file; may be given several times")
	_ = cmd.MarkFlagRequired("filename") // the flag exists
	return cmd
}

func replay(file string) ([]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	dump, err := simulate.DecodeDump(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return simulate.Replay(dump, decide.Cycle)
}
