package harness

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairshard/fairshard/classes"
)

// Images that Install builds from bin/ and loads into every node.
const (
	PluginImage    = "localhost/fairshard-kubelet-plugin:dev"
	AdmissionImage = "localhost/fairshard-admission:dev"
	ProbeImage     = "localhost/fairshard-probe:dev"
)

// Pool is the label value of the nodes that InstallGPUs prepares.
const Pool = "h100"

// Install puts simulated GPUs on every node, loads our images, applies the
// product's manifests and waits until plugin and controller work: every
// node's slices are published and the AdmissionCheck is active.
func (c *Cluster) Install(ctx context.Context) error {
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"simulated GPUs", c.InstallGPUs},
		{"images", c.LoadImages},
		{"manifests", c.Deploy},
		{"kubelet plugins and controller", c.WaitInstalled},
	} {
		start := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("install %s: %w", step.what, err)
		}
		c.logf("%s: done in %.1f s", step.what, time.Since(start).Seconds())
	}
	return nil
}

// InstallGPUs gives every node eight simulated H100 and the pool's label.
func (c *Cluster) InstallGPUs(ctx context.Context) error {
	for _, node := range c.Nodes {
		root := filepath.Join(node.RunDir, "nvidia", "driver")
		cmd := exec.CommandContext(ctx, c.bin("gpusim"), "install", "--profile", "h100-80gb", "--count", "8", "--root", root, "--seed", node.Name)
		if _, err := output(cmd); err != nil {
			return err
		}
		if _, err := c.Kubectl(ctx, "", "label", "node", node.Name, "--overwrite", "fairshard.dev/pool="+Pool); err != nil {
			return err
		}
	}
	return nil
}

// LoadImages builds the images of our programs and loads them into every node.
func (c *Cluster) LoadImages(ctx context.Context) error {
	for _, image := range []struct {
		ref, program string
	}{
		{PluginImage, "fairshard-kubelet-plugin"},
		{AdmissionImage, "fairshard-admission"},
		{ProbeImage, "probe"},
	} {
		if err := c.loadImage(ctx, image.ref, image.program); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) loadImage(ctx context.Context, ref, program string) error {
	tar := filepath.Join(c.Dir, program+".tar")
	inside := "/usr/bin/" + program
	args := []string{
		"image", "--out", tar, "--name", ref, "--add", c.bin(program) + ":" + inside,
		"--libs-of", inside, "--entrypoint", inside,
	}
	if err := c.clusterTool(ctx, args...); err != nil {
		return err
	}
	return c.Tool(ctx, "load", "--image", tar)
}

// Deploy applies deployments/base as changed for one machine.
func (c *Cluster) Deploy(ctx context.Context) error {
	port, err := c.webhookPort(ctx)
	if err != nil {
		return err
	}
	host, apiPort, err := c.APIServer()
	if err != nil {
		return err
	}
	manifests, err := c.Manifests(ctx, OneMachine{APIHost: host, APIPort: apiPort, WebhookPort: port})
	if err != nil {
		return err
	}
	_, err = c.Kubectl(ctx, manifests, "apply", "--server-side", "--force-conflicts", "-f", "-")
	return err
}

// webhookPort keeps the port of an earlier Deploy, so that a second one changes nothing.
func (c *Cluster) webhookPort(ctx context.Context) (int, error) {
	out, err := c.Kubectl(ctx, "", "get", "deployment", "-n", "fairshard-system", "fairshard-admission", "--ignore-not-found",
		"-o", `jsonpath={.spec.template.spec.containers[0].ports[0].containerPort}`)
	if err == nil {
		if port, err := strconv.Atoi(out); err == nil {
			return port, nil
		}
	}
	return FreePort(ctx)
}

// WaitInstalled waits until every node published its GPUs and the check is active.
func (c *Cluster) WaitInstalled(ctx context.Context) error {
	for _, workload := range []string{"daemonset/fairshard-kubelet-plugin", "deployment/fairshard-admission"} {
		if _, err := c.Kubectl(ctx, "", "-n", "fairshard-system", "rollout", "status", workload, "--timeout=120s"); err != nil {
			return err
		}
	}
	if _, err := c.Kubectl(ctx, "", "wait", "admissioncheck/fairshard", "--for=condition=Active", "--timeout=60s"); err != nil {
		return err
	}
	for _, node := range c.Nodes {
		if err := c.WaitSlices(ctx, node.Name); err != nil {
			return err
		}
	}
	return nil
}

// WaitSlices waits until the node has published a complete pool.
func (c *Cluster) WaitSlices(ctx context.Context, node string) error {
	return Wait(ctx, time.Minute, "ResourceSlices of node "+node, func() (bool, string) {
		var slices resourcev1.ResourceSliceList
		if err := c.Client.List(ctx, &slices, client.MatchingFields{}); err != nil {
			return false, err.Error()
		}
		have, want := 0, int64(-1)
		for _, s := range slices.Items {
			if s.Spec.Driver == classes.DriverName && s.Spec.Pool.Name == node {
				have, want = have+1, s.Spec.Pool.ResourceSliceCount
			}
		}
		return int64(have) == want, fmt.Sprintf("%d of %d slices", have, want)
	})
}

// Wait polls until done reports true; done also says what it saw, for the error.
func Wait(ctx context.Context, limit time.Duration, what string, done func() (bool, string)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, seen := done()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s for %s: last seen: %s", what, limit, seen)
		case <-tick.C:
		}
	}
}

// PodLog returns the log of a pod's first container.
func (c *Cluster) PodLog(ctx context.Context, pod corev1.Pod) (string, error) {
	return c.Kubectl(ctx, "", "logs", "-n", pod.Namespace, pod.Name)
}
