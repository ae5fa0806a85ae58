package wire

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/driver/ledger"
)

const (
	// cdiKind is the kind of every CDI device of ours.
	cdiKind = classes.DriverName + "/claim"
	// claimsInContainer is where containers find the limits of their claims.
	claimsInContainer = "/run/fairshard/claims"
)

// Paths say where things are on the host.
type Paths struct {
	Dev     string   // folder of the GPU device nodes
	Control []string // control nodes there, e.g. "nvidiactl"
	Limits  string   // the claim's limits file
}

// Prepared is one device of the answer to the kubelet.
type Prepared struct {
	Request string
	Pool    string
	Device  string
	ShareID string // empty if there is none
	CDI     []string
}

// Answer is what the kubelet is told about a prepared claim: the same claim, the
// same answer. The device that stands for a request comes once, with the
// request's first device.
func Answer(c ledger.Claim) []Prepared {
	answer := make([]Prepared, 0, len(c.Devices))
	seen := map[string]bool{}
	for _, d := range c.Devices {
		p := Prepared{Request: d.Request, Pool: d.Pool, Device: d.Name, ShareID: d.ShareID}
		p.CDI = append(p.CDI, cdiKind+"="+resultName(c.UID, d))
		if !seen[d.Request] {
			seen[d.Request] = true
			p.CDI = append(p.CDI, cdiKind+"="+requestName(c.UID, d.Request))
		}
		answer = append(answer, p)
	}
	return answer
}

// Spec is the CDI spec of a claim. A container may use some requests of a claim
// and several claims, so device nodes come per device, and all the rest once
// per request, in forms that do no harm when they are applied twice.
func Spec(c ledger.Claim, paths Paths) (*specs.Spec, error) {
	spec := &specs.Spec{Kind: cdiKind}
	for _, d := range c.Devices {
		spec.Devices = append(spec.Devices, specs.Device{
			Name:           resultName(c.UID, d),
			ContainerEdits: specs.ContainerEdits{DeviceNodes: []*specs.DeviceNode{node(paths.Dev, "nvidia"+strconv.Itoa(d.Minor))}},
		})
	}
	seen := map[string]bool{}
	for _, d := range c.Devices {
		if !seen[d.Request] {
			seen[d.Request] = true
			spec.Devices = append(spec.Devices, specs.Device{Name: requestName(c.UID, d.Request), ContainerEdits: shared(c.UID, paths)})
		}
	}
	version, err := specs.MinimumRequiredVersion(spec)
	if err != nil {
		return nil, fmt.Errorf("find CDI version: %w", err)
	}
	spec.Version = version
	return spec, nil
}

// shared is what every container of a claim gets, whatever devices it uses.
func shared(uid string, paths Paths) specs.ContainerEdits {
	inContainer := path.Join(claimsInContainer, uid, "limits")
	edits := specs.ContainerEdits{
		Env: []string{
			// The name holds the claim: a container with two claims sees both.
			"FAIRSHARD_CLAIM_" + strings.ToUpper(strings.ReplaceAll(uid, "-", "_")) + "=" + inContainer,
			// A legacy runtime hook must not add GPUs of its own choice.
			"NVIDIA_VISIBLE_DEVICES=void",
		},
		Mounts: []*specs.Mount{{
			HostPath: paths.Limits, ContainerPath: inContainer,
			Options: []string{"ro", "nosuid", "nodev", "noexec", "bind"},
		}},
	}
	for _, name := range paths.Control {
		edits.DeviceNodes = append(edits.DeviceNodes, node(paths.Dev, name))
	}
	return edits
}

func node(hostDev, name string) *specs.DeviceNode {
	n := &specs.DeviceNode{Path: path.Join("/dev", name)}
	if hostPath := path.Join(hostDev, name); hostPath != n.Path {
		n.HostPath = hostPath
	}
	return n
}

// resultName holds the share ID: two claims, or two containers, may share a device.
func resultName(uid string, d ledger.Device) string {
	name := uid + "-" + d.Name
	if d.ShareID != "" {
		name += "-" + d.ShareID
	}
	return name
}

// requestName cannot collide with a device's: those start with "gpu-". A dot
// stands for the slash of an alternative, since request names hold no dots.
func requestName(uid, request string) string {
	return uid + "-request-" + strings.ReplaceAll(request, "/", ".")
}
