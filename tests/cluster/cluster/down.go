package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fairshard/fairshard/tests/cluster/leftover"
	"github.com/fairshard/fairshard/tests/cluster/state"
)

// downPatience is how long removal may take in all.
const downPatience = 2 * time.Minute

// ours are the entries of a cluster's directory. Down removes these and no
// other, so a wrong --dir cannot cost anything else.
var ours = []string{"nodes", "etcd", "kueue", "images", "config", "pki", "bin", "kubeconfig", "cluster.json", "cluster.json.tmp"}

// Down removes the cluster at dir from the machine. It is right also for a
// cluster that was never complete, that crashed, or that is not there.
func (t Tool) Down(ctx context.Context, dir string, keepLogs bool) error {
	if err := state.CheckDir(dir); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, downPatience)
	defer cancel()
	if _, err := os.Stat(dir); err == nil {
		release, err := state.Lock(dir, t.waitMessage(dir))
		if err != nil {
			return err
		}
		defer release()
	}
	st, err := state.LoadIfPresent(dir)
	if err != nil && !errors.Is(err, state.ErrDamaged) {
		return err
	}
	if st == nil {
		st = &state.State{Dir: dir} // Processes and cgroups are found by the directory's name alone.
	}
	if err := (leftover.Cluster{Dir: dir, PodCIDR: st.PodCIDR}).Remove(ctx); err != nil {
		return err
	}
	if err := restoreSysctls(st.Sysctls); err != nil {
		return err
	}
	return removeFiles(dir, keepLogs)
}

// removeFiles removes the lock file and the directory last.
func removeFiles(dir string, keepLogs bool) error {
	names := ours
	if !keepLogs {
		names = append([]string{"logs"}, names...)
	}
	for _, name := range append(names, "lock") {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("remove cluster files: %w", err)
		}
	}
	// What is left in it, if anything, is not ours.
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) && !keepLogs {
		if entries, readErr := os.ReadDir(dir); readErr != nil || len(entries) == 0 {
			return fmt.Errorf("remove cluster directory: %w", err)
		}
	}
	return nil
}

// Known lists the directories of all clusters: those below root and those that run.
func Known(root string) ([]string, error) {
	dirs, err := RunningClusters()
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, d := range dirs {
		seen[d] = true
	}
	files, err := filepath.Glob(filepath.Join(root, "*", "lock"))
	if err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	for _, f := range files {
		if dir := filepath.Dir(f); !seen[dir] {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}
