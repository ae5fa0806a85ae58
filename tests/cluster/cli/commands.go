package cli

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/fairshard/fairshard/tests/cluster/cluster"
	"github.com/fairshard/fairshard/tests/cluster/image"
	"github.com/fairshard/fairshard/tests/cluster/namespace"
)

func loadCommand(c *common) *cobra.Command {
	var files, nodes []string
	cmd := &cobra.Command{
		Use: "load --image FILE.tar", Short: "Load image files on the nodes", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			t, err := bareTool()
			if err != nil {
				return err
			}
			dir, err := c.directory()
			if err != nil {
				return err
			}
			return t.Load(cmd.Context(), dir, files, nodes)
		},
	}
	cmd.Flags().StringSliceVar(&files, "image", nil, "image file, as `image` or `docker save` writes it")
	cmd.Flags().StringSliceVar(&nodes, "node", nil, "node to load it on (default all)")
	_ = cmd.MarkFlagRequired("image")
	return cmd
}

func imageCommand() *cobra.Command {
	var spec image.Spec
	var out string
	var add, libsOf []string
	cmd := &cobra.Command{
		Use:   "image --out FILE.tar --name REF --add HOST:IMAGE...",
		Short: "Build a one-layer image from files of this machine, without a registry", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			for _, a := range add {
				host, path, ok := strings.Cut(a, ":")
				if !ok {
					return fmt.Errorf("parse --add %q: want HOSTPATH:IMAGEPATH", a)
				}
				spec.Files = append(spec.Files, image.File{Host: host, Path: path})
			}
			for _, path := range libsOf {
				files, err := image.WithLibraries(spec.Files, path)
				if err != nil {
					return err
				}
				spec.Files = files
			}
			return image.Write(spec, out)
		},
	}
	f := cmd.Flags()
	f.StringVar(&out, "out", "", "file to write")
	f.StringVar(&spec.Name, "name", "", "name with tag, for example localhost/tool:dev")
	f.StringArrayVar(&add, "add", nil, "HOSTPATH:IMAGEPATH of a file or folder (repeatable)")
	f.StringArrayVar(&libsOf, "libs-of", nil, "image path of an added program whose shared libraries are added too (repeatable)")
	f.StringArrayVar(&spec.Entrypoint, "entrypoint", nil, "program and arguments, one per flag (repeatable)")
	f.StringArrayVar(&spec.Env, "env", nil, "NAME=VALUE (repeatable)")
	for _, name := range []string{"out", "name"} {
		_ = cmd.MarkFlagRequired(name)
	}
	return cmd
}

func enterCommand(c *common) *cobra.Command {
	var node string
	cmd := &cobra.Command{
		Use: "enter --node NODE -- COMMAND...", Short: "Run a command with the node's view of the file system",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := c.directory()
			if err != nil {
				return err
			}
			return cluster.Enter(dir, node, args)
		},
	}
	cmd.Flags().StringVar(&node, "node", "node-1", "node to enter")
	return cmd
}

// daemonFlags are shared by the commands that act on one daemon.
type daemonFlags struct {
	node string
	kill bool
}

func (f *daemonFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.node, "node", "", "node of a kubelet or containerd")
	cmd.Flags().BoolVar(&f.kill, "kill", false, "send SIGKILL instead of SIGTERM")
}

func (f *daemonFlags) signal() syscall.Signal {
	if f.kill {
		return syscall.SIGKILL
	}
	return syscall.SIGTERM
}

func restartCommand(c *common) *cobra.Command {
	var f daemonFlags
	cmd := &cobra.Command{
		Use: "restart DAEMON", Short: "Stop one daemon, start it again, wait until it is ready", Args: cobra.ExactArgs(1),
		Example: "  fairshard-cluster restart kubelet --node node-1 --kill\n  fairshard-cluster restart kueue",
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := c.tool(false)
			if err != nil {
				return err
			}
			dir, err := c.directory()
			if err != nil {
				return err
			}
			return t.Restart(cmd.Context(), dir, args[0], f.node, f.signal())
		},
	}
	f.register(cmd)
	return cmd
}

func stopCommand(c *common) *cobra.Command {
	var f daemonFlags
	cmd := &cobra.Command{
		Use: "stop DAEMON", Short: "Stop one daemon until `restart` or `up`", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			t, err := bareTool()
			if err != nil {
				return err
			}
			dir, err := c.directory()
			if err != nil {
				return err
			}
			return t.Stop(dir, args[0], f.node, f.signal())
		},
	}
	f.register(cmd)
	return cmd
}

// internalCommand holds what the program runs of itself.
func internalCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "internal", Short: "Parts that the program starts itself", Hidden: true}
	cmd.AddCommand(newNamespaceCommand(), inNamespaceCommand(), holdCommand())
	return cmd
}

func newNamespaceCommand() *cobra.Command {
	var binds []string
	cmd := &cobra.Command{
		Use: "new-namespace", Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var parsed []namespace.Bind
			for _, b := range binds {
				bind, err := namespace.ParseBind(b)
				if err != nil {
					return err
				}
				parsed = append(parsed, bind)
			}
			return namespace.ExecNew(parsed, args)
		},
	}
	cmd.Flags().StringArrayVar(&binds, "bind", nil, "SOURCE=TARGET")
	return cmd
}

func inNamespaceCommand() *cobra.Command {
	return &cobra.Command{
		Use: "in-namespace PID -- COMMAND...", Args: cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			pid, err := strconv.Atoi(args[0])
			if err != nil {
				return fmt.Errorf("parse pid: %w", err)
			}
			return namespace.ExecIn(pid, args[1:])
		},
	}
}

// holdCommand keeps a mount namespace alive. The file that it writes says that
// the namespace is complete.
func holdCommand() *cobra.Command {
	return &cobra.Command{
		Use: "hold FILE", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.WriteFile(args[0], nil, 0o600); err != nil {
				return fmt.Errorf("say that the namespace is there: %w", err)
			}
			signals := make(chan os.Signal, 1)
			signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
			<-signals
			return nil
		},
	}
}
