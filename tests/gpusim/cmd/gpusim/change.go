package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fairshard/fairshard/tests/gpusim"
)

// setCommand changes one GPU while programs use it.
func setCommand() *cobra.Command {
	var dir string
	var gpu int
	var lost, absent, mig, remapFailed bool
	var recovery uint32
	var ecc uint64
	cmd := &cobra.Command{
		Use: "set", Short: "change a GPU of a running node: lost, absent, MIG mode, recovery action, error counters", Args: cobra.NoArgs,
		Example: "  gpusim set --root /run/nvidia/driver --gpu 0 --lost\n  gpusim set --root /run/nvidia/driver --gpu 0 --lost=false",
	}
	cmd.RunE = func(*cobra.Command, []string) error {
		return gpusim.Change(dir, func(n *gpusim.Node) error {
			if gpu < 0 || gpu >= len(n.GPUs) {
				return fmt.Errorf("--gpu is %d: the node has %d GPUs, counted from 0", gpu, len(n.GPUs))
			}
			g := &n.GPUs[gpu]
			for name, set := range map[string]func(){
				"lost": func() { g.Lost = lost }, "absent": func() { g.Absent = absent }, "mig": func() { g.MIGEnabled = mig },
				"recovery": func() { g.Recovery = recovery }, "ecc": func() { g.ECCVolatile, g.ECCAggregate = ecc, max(ecc, g.ECCAggregate) },
				"remap-failed": func() { g.Remap.Failed = remapFailed },
			} {
				if cmd.Flags().Changed(name) {
					set()
				}
			}
			return nil
		})
	}
	f := cmd.Flags()
	f.BoolVar(&lost, "lost", false, "it fell off the bus: every call on it fails")
	f.BoolVar(&absent, "absent", false, "as if it were not in the machine")
	f.BoolVar(&mig, "mig", false, "MIG mode")
	f.Uint32Var(&recovery, "recovery", 0, "recovery action: 0 none, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset")
	f.Uint64Var(&ecc, "ecc", 0, "uncorrected memory errors since the last reset")
	f.BoolVar(&remapFailed, "remap-failed", false, "a row could not be remapped")
	where(cmd, &dir, &gpu)
	return cmd
}

func eventCommand() *cobra.Command {
	var dir string
	var gpu int
	var xid uint64
	cmd := &cobra.Command{
		Use: "event", Short: "let the driver of a running node tell an XID of a GPU", Args: cobra.NoArgs,
		Example: "  gpusim event --root /run/nvidia/driver --gpu 0 --xid 79",
		RunE: func(*cobra.Command, []string) error {
			return gpusim.Tell(dir, gpusim.Event{
				Type: gpusim.EventXID, Data: xid, GPU: uint32(max(gpu, 0)), GI: gpusim.NoInstance, CI: gpusim.NoInstance,
			})
		},
	}
	cmd.Flags().Uint64Var(&xid, "xid", 0, "the XID")
	_ = cmd.MarkFlagRequired("xid")
	where(cmd, &dir, &gpu)
	return cmd
}

func faultCommand() *cobra.Command {
	var dir string
	var gpu int
	var clearAll bool
	var f gpusim.Fault
	cmd := &cobra.Command{
		Use: "fault", Short: "let a call of the library fail or hang", Args: cobra.NoArgs,
		Example: "  gpusim fault --root /run/nvidia/driver --call nvmlDeviceGetUUID --code 15 --left 1\n" +
			"  gpusim fault --root /run/nvidia/driver --call nvmlDeviceGetUUID --delay 4294967295   (hangs until --clear)",
		RunE: func(*cobra.Command, []string) error {
			f.GPU = gpu
			return gpusim.Change(dir, func(n *gpusim.Node) error {
				if clearAll {
					n.Faults = nil
				}
				if f.Call != "" {
					n.Faults = append(n.Faults, f)
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&f.Call, "call", "", "name of the function")
	cmd.Flags().Int32Var(&f.Code, "code", 0, "what it returns; 0: it goes on after the delay")
	cmd.Flags().Uint32Var(&f.Delay, "delay", 0, "milliseconds that it takes")
	cmd.Flags().Uint32Var(&f.Left, "left", gpusim.Forever, "calls that it hits")
	cmd.Flags().BoolVar(&clearAll, "clear", false, "take all faults away first")
	where(cmd, &dir, &gpu)
	return cmd
}

func where(cmd *cobra.Command, dir *string, gpu *int) {
	cmd.Flags().StringVar(dir, "root", "", "driver root")
	cmd.Flags().IntVar(gpu, "gpu", gpusim.AllGPUs, "position of the GPU; -1 = all (of a fault)")
	_ = cmd.MarkFlagRequired("root")
}
