package daemon

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The marks in the environment of every process of a cluster.
const (
	EnvCluster = "FAIRSHARD_CLUSTER"
	EnvDaemon  = "FAIRSHARD_DAEMON"
)

// Process is one running process that carries a cluster's mark.
type Process struct {
	PID int
	// Cluster is the directory of the cluster it belongs to.
	Cluster string
	// Daemon is the daemon that it is, or that started it.
	Daemon string
	// Leader is true for the daemon itself, false for what it started.
	Leader bool
}

// Marked lists every living process that carries the mark of any cluster.
func Marked() ([]Process, error) {
	pids, err := PIDs()
	if err != nil {
		return nil, err
	}
	var found []Process
	for _, pid := range pids {
		env, err := os.ReadFile(procFile(pid, "environ"))
		if err != nil {
			continue // It ended, or is a kernel thread.
		}
		p := Process{PID: pid}
		for entry := range bytes.SplitSeq(env, []byte{0}) {
			name, value, _ := strings.Cut(string(entry), "=")
			switch name {
			case EnvCluster:
				p.Cluster = value
			case EnvDaemon:
				p.Daemon = value
			}
		}
		if st, ok := readStat(pid); ok && p.Cluster != "" && st.alive() {
			p.Leader = st.session == pid && p.Daemon != ""
			found = append(found, p)
		}
	}
	return found, nil
}

// Find returns the pid of every running daemon of the cluster at dir, by name.
func Find(dir string) (map[string]int, error) {
	marked, err := Marked()
	if err != nil {
		return nil, err
	}
	daemons := map[string]int{}
	for _, p := range marked {
		if p.Cluster == dir && p.Leader {
			daemons[p.Daemon] = p.PID
		}
	}
	return daemons, nil
}

// PIDs lists all processes that this one can see.
func PIDs() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Alive says whether the process exists and is more than a zombie. Pid 0 is nobody.
func Alive(pid int) bool {
	st, ok := readStat(pid)
	return ok && st.alive()
}

// Ancestors returns the pids of this process and of everything above it.
func Ancestors() map[int]bool {
	line := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !line[pid]; {
		line[pid] = true
		st, ok := readStat(pid)
		if !ok {
			break
		}
		pid = st.parent
	}
	return line
}

// stat holds the fields of /proc/PID/stat that we use.
type stat struct {
	state   string
	parent  int
	session int
}

func (s stat) alive() bool { return s.state != "Z" && s.state != "X" }

func readStat(pid int) (stat, bool) {
	data, err := os.ReadFile(procFile(pid, "stat"))
	if err != nil {
		return stat{}, false
	}
	return parseStat(string(data))
}

// parseStat skips the command name, which is in parentheses and may hold
// anything, also parentheses and spaces.
func parseStat(line string) (stat, bool) {
	end := strings.LastIndexByte(line, ')')
	if end < 0 {
		return stat{}, false
	}
	f := strings.Fields(line[end+1:])
	if len(f) < 4 {
		return stat{}, false
	}
	parent, err1 := strconv.Atoi(f[1])
	session, err2 := strconv.Atoi(f[3])
	return stat{state: f[0], parent: parent, session: session}, err1 == nil && err2 == nil
}

func procFile(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}
