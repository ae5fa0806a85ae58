package cluster

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/fairshard/fairshard/tests/cluster/daemon"
	"github.com/fairshard/fairshard/tests/cluster/state"
)

// podSpace holds the pod ranges of all clusters of this tool.
var podSpace = netip.MustParsePrefix("10.64.0.0/10")

func isPodAddress(ip net.IP) bool {
	addr, ok := netip.AddrFromSlice(ip.To4())
	return ok && podSpace.Contains(addr)
}

// lookAround collects what a cluster at dir must keep away from: this machine's
// networks, busy ports, and what other running clusters chose.
func lookAround(dir string) (state.Taken, error) {
	reserved := map[int]bool{}
	taken := state.Taken{PortFree: func(port int) bool { return !reserved[port] && portFree(port) }}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return taken, fmt.Errorf("list addresses of this machine: %w", err)
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			taken.Prefixes = append(taken.Prefixes, p)
		}
	}
	// A machine without the file has no IPv4 routes.
	if routes, err := os.ReadFile("/proc/net/route"); err == nil {
		taken.Prefixes = append(taken.Prefixes, parseRoutes(string(routes))...)
	}
	dirs, err := RunningClusters()
	if err != nil {
		return taken, err
	}
	for _, other := range dirs {
		st, err := state.Load(other)
		if other == dir || err != nil {
			continue // It is just being started or removed.
		}
		if p, err := netip.ParsePrefix(st.PodCIDR); err == nil {
			taken.Prefixes = append(taken.Prefixes, p)
		}
		for _, port := range st.Ports {
			reserved[port] = true
		}
		if taken.Sysctls == nil {
			taken.Sysctls = st.Sysctls // What we would read now is already changed.
		}
	}
	if taken.Sysctls == nil {
		taken.Sysctls = readSysctls()
	}
	return taken, nil
}

// portFree tries the port on all addresses.
func portFree(port int) bool {
	l, err := net.Listen("tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// parseRoutes reads /proc/net/route: addresses are hexadecimal in the byte order
// of the machine, which is little endian on all that we run on.
func parseRoutes(text string) []netip.Prefix {
	var routes []netip.Prefix
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		dst, err1 := hex.DecodeString(f[1])
		mask, err2 := hex.DecodeString(f[7])
		if err1 != nil || err2 != nil || len(dst) != 4 || len(mask) != 4 {
			continue // The heading.
		}
		var addr [4]byte
		binary.BigEndian.PutUint32(addr[:], binary.LittleEndian.Uint32(dst))
		bits, _ := net.IPv4Mask(mask[3], mask[2], mask[1], mask[0]).Size()
		routes = append(routes, netip.PrefixFrom(netip.AddrFrom4(addr), bits))
	}
	return routes
}

// RunningClusters lists the directories of all clusters that have a process.
func RunningClusters() ([]string, error) {
	marked, err := daemon.Marked()
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var dirs []string
	for _, p := range marked {
		if !seen[p.Cluster] {
			seen[p.Cluster] = true
			dirs = append(dirs, p.Cluster)
		}
	}
	return dirs, nil
}
