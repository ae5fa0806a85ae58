// Program kubectl-fairshard shows and tries out how GPUs are shared; it works as
// a kubectl plugin too.
package main

import (
	"os"

	"github.com/fairshard/fairshard/admission/cli"
)

func main() { os.Exit(cli.Run(os.Args[1:], os.Stdout, os.Stderr)) }
