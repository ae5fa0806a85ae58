// Command gpusim lays out simulated GPUs below a driver root and shows them.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fairshard/fairshard/tests/gpusim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root := &cobra.Command{
		Use: "gpusim", Short: "Simulated GPUs: a stand-in for the NVML library over a table file", SilenceUsage: true,
	}
	root.AddCommand(installCommand(), showCommand(), buildCommand(), setCommand(), eventCommand(), faultCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		os.Exit(1) //nolint:gocritic // the context ends with the process
	}
}

func installCommand() *cobra.Command {
	var profile, dir, seed string
	var count int
	cmd := &cobra.Command{
		Use: "install", Short: "lay out library, table and device nodes below a driver root", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if count < 0 {
				return fmt.Errorf("--count is %d: give a number of GPUs, or 0 for what the profile says", count)
			}
			p, err := gpusim.LoadProfile(profile)
			if err != nil {
				return err
			}
			node, err := p.Node(count, seed)
			if err != nil {
				return err
			}
			return gpusim.Install(cmd.Context(), dir, node)
		},
	}
	cmd.Flags().StringVar(&profile, "profile", "h100-80gb", "a profile ("+strings.Join(gpusim.Profiles(), ", ")+") or a YAML file")
	cmd.Flags().IntVar(&count, "count", 0, "number of GPUs; 0 = what the profile says")
	cmd.Flags().StringVar(&dir, "root", "", "driver root, for example /run/nvidia/driver")
	cmd.Flags().StringVar(&seed, "seed", "", "makes the UUIDs; use the node's name")
	_ = cmd.MarkFlagRequired("root")
	return cmd
}

func showCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "show", Short: "print the GPUs that are installed below a driver root", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			node, err := gpusim.Read(dir)
			if err != nil {
				return err
			}
			show(cmd.OutOrStdout(), node)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "root", "", "driver root")
	_ = cmd.MarkFlagRequired("root")
	return cmd
}

func show(out io.Writer, node gpusim.Node) {
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "MINOR\tPCI\tUUID\tMODEL\tTOTAL MiB\tUSED MiB\tNUMA")
	for _, g := range node.GPUs {
		fmt.Fprintf(table, "%d\t%04x:%02x:%02x.0\t%s\t%s\t%d\t%d\t%d\n", g.Minor, g.Domain, g.Bus, g.Device, g.UUID, g.Name, g.TotalBytes>>20, g.Used>>20, g.NUMA)
	}
	table.Flush()
}

func buildCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "build-lib", Short: "compile the library only", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return gpusim.BuildLibrary(cmd.Context(), out) },
	}
	cmd.Flags().StringVar(&out, "out", "", "file to write")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}
