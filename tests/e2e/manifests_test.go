package e2e

import (
	"fmt"
	"strings"
)

// template is a ResourceClaimTemplate with one request.
func template(namespace, name, request string) string {
	return fmt.Sprintf(`
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: %s, namespace: %s}
spec: {spec: {devices: {requests: [{name: gpu, exactly: %s}]}}}
---
`, name, namespace, request)
}

const (
	wholeGPU = `{deviceClassName: gpu.fairshard.dev}`
	share5G  = `{deviceClassName: gpu-share.fairshard.dev, capacity: {requests: {memory: 5Gi}}}`
)

// job describes a Job of our probe.
type job struct {
	namespace, name string
	queue           string // "" = h100
	template        string // name of the ResourceClaimTemplate; "" = none
	extended        int    // fairshard.dev/gpu
	pods            int    // parallelism and completions; 0 = 1
	sleep           string // "" = 0s
	noQueue         bool   // not under Kueue
	priority        string // name of the WorkloadPriorityClass; "" = none
}

func (j job) yaml() string {
	var claims, podClaims, labels, limits string
	if !j.noQueue {
		priority := ""
		if j.priority != "" {
			priority = ", kueue.x-k8s.io/priority-class: " + j.priority
		}
		labels = fmt.Sprintf("labels: {kueue.x-k8s.io/queue-name: %s%s}", orDefault(j.queue, "h100"), priority)
	}
	if j.template != "" {
		podClaims = fmt.Sprintf("resourceClaims: [{name: gpu, resourceClaimTemplateName: %s}]", j.template)
		claims = "claims: [{name: gpu}]"
	}
	if j.extended > 0 {
		limits = fmt.Sprintf("limits: {fairshard.dev/gpu: %d}", j.extended)
	}
	text := fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata:
  name: %s
  namespace: %s
  %s
spec:
  parallelism: %d
  completions: %d
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      %s
      containers:
      - name: main
        image: localhost/fairshard-probe:dev
        imagePullPolicy: Never
        args: [--sleep=%s]
        resources:
          requests: {cpu: 1m, memory: 8Mi}
          %s
          %s
---`, j.name, j.namespace, labels, max(j.pods, 1), max(j.pods, 1), podClaims, orDefault(j.sleep, "0s"), limits, claims)
	return dropBlank(text)
}

func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func dropBlank(text string) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) != "" {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n") + "\n"
}
