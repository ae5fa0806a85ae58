package cli

import (
	"errors"
	"io"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitOK       = 0
	exitMismatch = 1
	exitWrong    = 2
)

// errMismatch ends a command whose output says already what is not as expected.
var errMismatch = errors.New("not as expected")

const long = `kubectl-fairshard shows and tries out how GPUs are shared.

simulate runs the planner on scenario files, without any cluster: for "what if",
and for reports of bugs. replay decides again on a dump of a real cycle.`

// Run executes a command line and returns its exit code.
func Run(args []string, out, errOut io.Writer) int {
	root := &cobra.Command{
		Use: "kubectl-fairshard", Short: "See and try out how GPUs are shared", Long: long,
		SilenceUsage: true, SilenceErrors: true,
	}
	root.AddCommand(simulateCommand(), replayCommand())
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.Execute()
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errMismatch):
		return exitMismatch
	default:
		root.PrintErrln("kubectl-fairshard:", err)
		return exitWrong
	}
}
