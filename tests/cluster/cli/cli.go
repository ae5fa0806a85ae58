package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fairshard/fairshard/tests/cluster/cluster"
	"github.com/fairshard/fairshard/tests/cluster/programs"
	"github.com/fairshard/fairshard/tests/cluster/state"
)

// common are the flags of every command.
type common struct {
	dir, source, cache string
}

// New returns the root command.
func New() *cobra.Command {
	c := &common{}
	root := &cobra.Command{
		Use:   "fairshard-cluster",
		Short: "A real Kubernetes cluster with Kueue on one machine, built from Go modules",
		Long: "Starts etcd, the Kubernetes control plane, nodes with containerd and kubelet, and Kueue\n" +
			"as plain processes of this machine. Needs root and a Go toolchain; no registry, no Docker.",
		SilenceUsage: true, SilenceErrors: true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&c.dir, "dir", "", "directory of the cluster (default <user cache>/fairshard/clusters/default)")
	flags.StringVar(&c.source, "source", "", "folder tests/cluster of a checkout (default: looked for upwards from here)")
	flags.StringVar(&c.cache, "cache", "", "folder of built programs (default <user cache>/fairshard/programs)")
	root.AddCommand(upCommand(c), downCommand(c), statusCommand(c), buildCommand(c), loadCommand(c),
		imageCommand(), enterCommand(c), restartCommand(c), stopCommand(c), internalCommand())
	return root
}

// userCache is <user cache>/fairshard and below.
func userCache(elem ...string) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find user cache folder: %w", err)
	}
	return filepath.Join(append([]string{dir, "fairshard"}, elem...)...), nil
}

// directory is the absolute directory of the cluster, without links, so that
// every command names it the same way.
func (c *common) directory() (string, error) {
	dir := c.dir
	if dir == "" {
		var err error
		if dir, err = userCache("clusters", "default"); err != nil {
			return "", err
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find cluster directory: %w", err)
	}
	// The directory itself may not exist yet; then its parent decides.
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		return resolved, nil
	}
	if parent, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		return filepath.Join(parent, filepath.Base(dir)), nil
	}
	return dir, nil
}

// tool is for commands that may have to build or find sources.
func (c *common) tool(installPackages bool) (cluster.Tool, error) {
	t, err := bareTool()
	if err != nil {
		return t, err
	}
	source, cache := c.source, c.cache
	if source == "" {
		here, err := os.Getwd()
		if err != nil {
			return t, fmt.Errorf("find current folder: %w", err)
		}
		if source, err = programs.FindSource(here, filepath.Dir(t.Self)); err != nil {
			return t, err
		}
	}
	if cache == "" {
		if cache, err = userCache("programs"); err != nil {
			return t, err
		}
	}
	if source, err = filepath.Abs(source); err != nil {
		return t, fmt.Errorf("find sources: %w", err)
	}
	if cache, err = filepath.Abs(cache); err != nil {
		return t, fmt.Errorf("find program cache: %w", err)
	}
	t.Builder = &programs.Builder{Source: source, Cache: cache, Log: t.Log, InstallPackages: installPackages}
	return t, nil
}

// bareTool is for commands that only look at what is there.
func bareTool() (cluster.Tool, error) {
	self, err := os.Executable()
	if err != nil {
		return cluster.Tool{}, fmt.Errorf("find own program file: %w", err)
	}
	return cluster.Tool{Self: self, Log: os.Stderr}, nil
}

func upCommand(c *common) *cobra.Command {
	var w cluster.Wish
	var install bool
	cmd := &cobra.Command{
		Use: "up", Short: "Start the cluster, or complete and repair it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := c.tool(install)
			if err != nil {
				return err
			}
			if w.Dir, err = c.directory(); err != nil {
				return err
			}
			if err := absolute(&w.KueueConfig, &w.Timings); err != nil {
				return err
			}
			for i := range w.Images {
				if err := absolute(&w.Images[i]); err != nil {
					return err
				}
			}
			if !cmd.Flags().Changed("nodes") {
				if w.Nodes, err = defaultNodes(w.Dir); err != nil {
					return err
				}
			}
			st, err := t.Up(cmd.Context(), w)
			if err != nil {
				return withHint(err, w.Dir)
			}
			cluster.Summary(cmd.OutOrStdout(), st)
			return nil
		},
	}
	f := cmd.Flags()
	f.IntVar(&w.Nodes, "nodes", 2, "number of nodes; 0 is a control plane only; an existing cluster only grows")
	f.BoolVar(&w.Kueue, "kueue", true, "run Kueue's manager with its webhooks")
	f.StringVar(&w.KueueConfig, "kueue-config", "", "file whose top-level settings replace ours in Kueue's configuration")
	f.StringSliceVar(&w.Images, "images", nil, "image files to load on every node")
	f.StringVar(&w.Timings, "build-times", "", "write the seconds that each program took to build to this JSON file")
	f.BoolVar(&install, "install-packages", false, "install missing Debian packages that runc needs to build")
	return cmd
}

// withHint says what to do with a cluster that is only half up.
func withHint(err error, dir string) error {
	if st, loadErr := state.LoadIfPresent(dir); st == nil || loadErr != nil {
		return err
	}
	return fmt.Errorf("%w\n(`status` shows what runs, `up` goes on, `down` removes everything)", err)
}

// defaultNodes keeps the size of an existing cluster; a new one has two nodes.
func defaultNodes(dir string) (int, error) {
	st, err := state.LoadIfPresent(dir)
	if err != nil || st == nil {
		return 2, err
	}
	return len(st.Nodes), nil
}

// absolute makes the paths that are given independent of the current folder.
func absolute(paths ...*string) error {
	for _, p := range paths {
		if *p == "" {
			continue
		}
		abs, err := filepath.Abs(*p)
		if err != nil {
			return fmt.Errorf("find %s: %w", *p, err)
		}
		*p = abs
	}
	return nil
}

func downCommand(c *common) *cobra.Command {
	var keepLogs, all bool
	cmd := &cobra.Command{
		Use: "down", Short: "Remove the cluster: processes, mounts, interfaces, cgroups, files", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := bareTool()
			if err != nil {
				return err
			}
			dirs, err := c.downDirs(all)
			if err != nil {
				return err
			}
			for _, dir := range dirs {
				if err := t.Down(cmd.Context(), dir, keepLogs); err != nil {
					return err
				}
				_, _ = fmt.Fprintf(cmd.OutOrStdout(), "cluster in %s is removed\n", dir)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&keepLogs, "keep-logs", false, "keep the folder with the logs")
	cmd.Flags().BoolVar(&all, "all", false, "remove all clusters of this machine")
	return cmd
}

func (c *common) downDirs(all bool) ([]string, error) {
	if !all {
		dir, err := c.directory()
		return []string{dir}, err
	}
	root, err := userCache("clusters")
	if err != nil {
		return nil, err
	}
	return cluster.Known(root)
}

func statusCommand(c *common) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "status", Short: "Show what runs, where it lies, and the log's end of what died", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := c.directory()
			if err != nil {
				return err
			}
			report, err := cluster.Status(dir)
			if errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("no cluster in %s: run `up` first", dir)
			}
			if err != nil {
				return err
			}
			if err := printReport(cmd, report, output); err != nil {
				return err
			}
			if dead := report.Dead(); len(dead) > 0 {
				return fmt.Errorf("%d of %d daemons do not run; `up` starts them again", len(dead), len(report.Daemons))
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return cmd
}

func printReport(cmd *cobra.Command, report *cluster.Report, output string) error {
	switch output {
	case "text":
		_, err := fmt.Fprint(cmd.OutOrStdout(), report.Text())
		return err
	case "json":
		encoder := json.NewEncoder(cmd.OutOrStdout())
		encoder.SetIndent("", "  ")
		return encoder.Encode(report)
	default:
		return fmt.Errorf("print status: output %q is neither text nor json", output)
	}
}

func buildCommand(c *common) *cobra.Command {
	var install bool
	var times string
	cmd := &cobra.Command{
		Use: "build", Short: "Build the programs of a cluster that are not in the cache", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := c.tool(install)
			if err != nil {
				return err
			}
			result, err := t.Builder.Build(cmd.Context(), programs.All())
			if err != nil || times == "" {
				return err
			}
			return programs.WriteTimings(times, result.Timings)
		},
	}
	cmd.Flags().BoolVar(&install, "install-packages", false, "install missing Debian packages that runc needs to build")
	cmd.Flags().StringVar(&times, "build-times", "", "write the seconds that each program took to build to this JSON file")
	return cmd
}

// Run runs the command line and returns the exit status.
func Run(ctx context.Context, args []string) int {
	root := New()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintln(os.Stderr, "fairshard-cluster:", err)
	return 1
}
