package state

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// The ports lie below the range that the kernel hands out to outgoing
// connections and below the NodePort range, so a daemon finds its port free
// again when it is restarted.
const (
	firstPort = 20000
	lastPort  = 29999
)

// Pod ranges are /20 blocks of 10.64.0.0/10, one /24 per node.
const (
	podSpaceBlocks = 1024
	podRangeBits   = 20
	podNodeBits    = 24
)

// Taken is what a new cluster must keep away from.
type Taken struct {
	// PortFree says whether a port of 127.0.0.1 can be bound.
	PortFree func(port int) bool
	// Prefixes are networks in use: addresses and routes of this machine, and
	// the pod ranges of other clusters.
	Prefixes []netip.Prefix
	// Sysctls are the kernel settings to give back at the end.
	Sysctls map[string]string
}

// Desired is the shape of a cluster that the caller asks for.
type Desired struct {
	Dir         string
	Nodes       int
	Kueue       bool
	KueueConfig string
}

// Plan returns the cluster that Desired asks for. What old already chose stays;
// nodes are only ever added, because a running node cannot be taken away
// without losing its pods. The inputs are not changed.
func Plan(old *State, want Desired, taken Taken) (*State, error) {
	if want.Nodes < 0 || want.Nodes > maxNodes {
		return nil, fmt.Errorf("plan %d nodes: a cluster has 0 to %d nodes", want.Nodes, maxNodes)
	}
	s := &State{Dir: want.Dir, Kueue: want.Kueue, KueueConfig: want.KueueConfig, Ports: map[string]int{}}
	s.Sysctls = taken.Sysctls
	if old != nil {
		s.PodCIDR, s.Kueue, s.Sysctls = old.PodCIDR, old.Kueue || want.Kueue, old.Sysctls
		s.Nodes = append(s.Nodes, old.Nodes...)
		for name, port := range old.Ports {
			s.Ports[name] = port
		}
		if want.KueueConfig == "" {
			s.KueueConfig = old.KueueConfig
		}
	}
	for len(s.Nodes) < want.Nodes {
		s.Nodes = append(s.Nodes, fmt.Sprintf("node-%d", len(s.Nodes)+1))
	}
	if s.PodCIDR == "" {
		prefix, err := choosePodRange(seed(want.Dir), taken.Prefixes)
		if err != nil {
			return nil, err
		}
		s.PodCIDR = prefix.String()
	}
	return s, s.choosePorts(taken.PortFree)
}

// choosePorts gives every name that has no port yet the next free one.
func (s *State) choosePorts(free func(int) bool) error {
	names := []string{
		PortEtcd, PortEtcdPeer, PortAPIServer, PortController, PortScheduler,
		PortKueueWebhook, PortKueueMetrics, PortKueueHealth,
	}
	for _, node := range s.Nodes {
		names = append(names, KubeletPort(node))
	}
	used := map[int]bool{}
	for _, port := range s.Ports {
		used[port] = true
	}
	size := lastPort - firstPort + 1
	next := int(seed(s.Dir) % uint32(size))
	for tries := 0; len(names) > 0; tries++ {
		if tries == size {
			return fmt.Errorf("choose ports: none of %d to %d is free", firstPort, lastPort)
		}
		port := firstPort + next
		next = (next + 1) % size
		if _, done := s.Ports[names[0]]; done {
			names = names[1:]
			continue
		}
		if used[port] || !free(port) {
			continue
		}
		s.Ports[names[0]], used[port] = port, true
		names = names[1:]
	}
	return nil
}

// choosePodRange picks the first free block, starting at a place that depends on
// the cluster, so that two clusters started at once rarely look at the same one.
func choosePodRange(start uint32, taken []netip.Prefix) (netip.Prefix, error) {
	for i := range uint32(podSpaceBlocks) {
		block := (start + i) % podSpaceBlocks
		prefix := netip.PrefixFrom(podAddress(block<<(32-podRangeBits)), podRangeBits)
		if !overlapsAny(prefix, taken) {
			return prefix, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("choose a pod subnet: every block of 10.64.0.0/10 is in use on this machine")
}

// overlapsAny ignores default routes: they overlap with everything.
func overlapsAny(p netip.Prefix, taken []netip.Prefix) bool {
	for _, t := range taken {
		if t.Bits() > 0 && t.Overlaps(p) {
			return true
		}
	}
	return false
}

// podAddress is 10.64.0.0 plus offset.
func podAddress(offset uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], 10<<24|64<<16+offset)
	return netip.AddrFrom4(b)
}

// NodeSubnet is the pod subnet of one node, a /24 inside PodCIDR.
func (s *State) NodeSubnet(node string) (netip.Prefix, error) {
	base, err := netip.ParsePrefix(s.PodCIDR)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("parse pod range: %w", err)
	}
	for i, name := range s.Nodes {
		if name == node {
			b := base.Addr().As4()
			b[2] += byte(i)
			return netip.PrefixFrom(netip.AddrFrom4(b), podNodeBits), nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("find node %s: the cluster has %v", node, s.Nodes)
}

func seed(dir string) uint32 {
	var n uint32
	_, err := fmt.Sscanf(ID(dir), "%x", &n)
	if err != nil {
		panic("broken invariant: a cluster id is not hexadecimal: " + err.Error())
	}
	return n
}
