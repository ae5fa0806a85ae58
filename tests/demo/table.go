package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairshard/fairshard/classes"
	"github.com/fairshard/fairshard/classes/quantity"
	"github.com/fairshard/fairshard/tests/harness"
)

// waitForPods waits until want pods of the example run and returns them, sorted by namespace and name.
func waitForPods(ctx context.Context, cluster *harness.Cluster, want int) ([]corev1.Pod, error) {
	var pods []corev1.Pod
	err := harness.Wait(ctx, 3*time.Minute, "the pods of the example", func() (bool, string) {
		pods = nil
		var seen []string
		var list corev1.PodList
		if err := cluster.Client.List(ctx, &list, client.HasLabels{classes.LabelPlacement}); err != nil {
			return false, err.Error()
		}
		for _, pod := range list.Items {
			if pod.Status.Phase == corev1.PodRunning {
				pods = append(pods, pod)
			}
			seen = append(seen, fmt.Sprintf("%s/%s %s", pod.Namespace, pod.Name, pod.Status.Phase))
		}
		return len(pods) >= want, strings.Join(seen, ", ")
	})
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return pods, err
}

// gpu is one physical GPU as its slices describe it.
type gpu struct {
	node, base string
	model      string
	usable     quantity.Bytes
	holders    []string
	free       quantity.Bytes
}

func printTables(ctx context.Context, cluster *harness.Cluster, pods []corev1.Pod, out io.Writer) error {
	gpus, err := collect(ctx, cluster)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "\nNODE\tGPU\tMODEL\tUSABLE\tFREE\tHOLDERS")
	for _, g := range gpus {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", g.node, g.base, g.model, g.usable, g.free, strings.Join(g.holders, ", "))
	}
	table.Flush()
	fmt.Fprintln(table, "\nPOD\tNODE\tTOLD, NOT YET ENFORCED")
	for _, pod := range pods {
		told, err := told(ctx, cluster, pod)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%s/%s\t%s\t%s\n", pod.Namespace, pod.Name, pod.Spec.NodeName, told)
	}
	table.Flush()
	return nil
}

// collect joins slices and claims to a list of GPUs with their holders.
func collect(ctx context.Context, cluster *harness.Cluster) ([]*gpu, error) {
	var slicesList resourcev1.ResourceSliceList
	if err := cluster.Client.List(ctx, &slicesList); err != nil {
		return nil, fmt.Errorf("list ResourceSlices: %w", err)
	}
	byName := map[string]*gpu{}
	var gpus []*gpu
	for _, slice := range slicesList.Items {
		if slice.Spec.Driver != classes.DriverName {
			continue
		}
		for _, device := range slice.Spec.Devices {
			base, isShare := strings.CutSuffix(device.Name, "-share")
			if !isShare {
				continue
			}
			memory := device.Capacity[classes.CapMemory]
			g := &gpu{node: slice.Spec.Pool.Name, base: base, usable: quantity.Bytes(memory.Value.Value())}
			if name := device.Attributes[classes.AttrProductName].StringValue; name != nil {
				g.model = *name
			}
			g.free = g.usable
			byName[g.node+"/"+base] = g
			gpus = append(gpus, g)
		}
	}
	slices.SortFunc(gpus, func(a, b *gpu) int { return strings.Compare(a.node+a.base, b.node+b.base) })
	return gpus, addHolders(ctx, cluster, byName)
}

func addHolders(ctx context.Context, cluster *harness.Cluster, byName map[string]*gpu) error {
	var claims resourcev1.ResourceClaimList
	if err := cluster.Client.List(ctx, &claims); err != nil {
		return fmt.Errorf("list ResourceClaims: %w", err)
	}
	for _, claim := range claims.Items {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			g := byName[result.Pool+"/"+strings.TrimSuffix(result.Device, "-share")]
			if g == nil {
				continue
			}
			bytes := g.usable
			if consumed, ok := result.ConsumedCapacity[classes.CapMemory]; ok {
				bytes = quantity.Bytes(consumed.Value())
			}
			g.free = g.free.Sub(bytes)
			g.holders = append(g.holders, fmt.Sprintf("%s/%s %s", claim.Namespace, holder(claim), bytes))
		}
	}
	return nil
}

// holder is the pod that uses the claim, without the random end of its name.
func holder(claim resourcev1.ResourceClaim) string {
	for _, user := range claim.Status.ReservedFor {
		if cut := strings.LastIndex(user.Name, "-"); user.Resource == "pods" && cut > 0 {
			return user.Name[:cut]
		}
	}
	return claim.Name
}

// told returns what the probe in the pod printed, as one line.
func told(ctx context.Context, cluster *harness.Cluster, pod corev1.Pod) (string, error) {
	var line string
	err := harness.Wait(ctx, time.Minute, "the log of "+pod.Name, func() (bool, string) {
		text, err := cluster.PodLog(ctx, pod)
		if err != nil {
			return false, err.Error()
		}
		line = strings.SplitN(text, "\n", 2)[0]
		return line != "", "empty"
	})
	if err != nil {
		return "", err
	}
	var report struct {
		Devices []string          `json:"devices"`
		Limits  map[string]string `json:"limits"`
	}
	if err := json.Unmarshal([]byte(line), &report); err != nil {
		return "", fmt.Errorf("read the report of pod %s: %w", pod.Name, err)
	}
	return fmt.Sprintf("%d GPU nodes; %s", len(report.Devices), limits(report.Limits)), nil
}

// limits sums up limits files: "memory 37.5Gi on 8 GPUs".
func limits(files map[string]string) string {
	if len(files) == 0 {
		return "no limits file"
	}
	var parts []string
	for _, content := range files {
		parts = append(parts, harness.DescribeLimits(content))
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}
