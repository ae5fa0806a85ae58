package scenario

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fairshard/fairshard/classes/quantity"
)

// file is one document as it is written.
type file struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
	Spec       spec     `yaml:"spec"`
}

type metadata struct {
	Name        string            `yaml:"name"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

type spec struct {
	About     string         `yaml:"about"`
	Mode      string         `yaml:"mode"`
	MaxCycles *int           `yaml:"maxCycles"`
	Policy    map[string]any `yaml:"policy"`
	Nodes     []node         `yaml:"nodes"`
	Queues    []queue        `yaml:"queues"`
	Workloads []workload     `yaml:"workloads"`
	Expect    *Expect        `yaml:"expect"`
}

type node struct {
	Name          string            `yaml:"name"`
	GPUs          int               `yaml:"gpus"`
	GPUMemory     memory            `yaml:"gpuMemory"`
	Pool          string            `yaml:"pool"`
	UnhealthyGPUs []int             `yaml:"unhealthyGPUs"`
	Cordoned      bool              `yaml:"cordoned"`
	CPU           cpu               `yaml:"cpu"`
	Memory        memory            `yaml:"memory"`
	Pods          *int64            `yaml:"pods"`
	Extended      map[string]int64  `yaml:"extended"`
	Labels        map[string]string `yaml:"labels"`
	Taints        []taint           `yaml:"taints"`
	Foreign       []foreign         `yaml:"foreign"`
}

type taint struct {
	Key    string `yaml:"key"`
	Value  string `yaml:"value"`
	Effect string `yaml:"effect"`
}

// foreign is a device that is held outside all queues.
type foreign struct {
	GPU    int    `yaml:"gpu"`
	Whole  bool   `yaml:"whole"`
	Memory memory `yaml:"memory"`
}

type queue struct {
	Name       string      `yaml:"name"`
	Parent     string      `yaml:"parent"`
	Pool       string      `yaml:"pool"`
	Deserved   *gpus       `yaml:"deserved"`
	Limit      *gpus       `yaml:"limit"`
	Weight     *thousandth `yaml:"weight"`
	Priority   *int32      `yaml:"priority"`
	Demand     *gpus       `yaml:"demand"`
	Strict     bool        `yaml:"strict"`
	MinRuntime *minRuntime `yaml:"minRuntime"`
	Usage      *gpus       `yaml:"usage"`
}

type minRuntime struct {
	Preempt *duration `yaml:"preempt"`
	Reclaim *duration `yaml:"reclaim"`
}

type workload struct {
	Name            string            `yaml:"name"`
	Queue           string            `yaml:"queue"`
	Priority        *int32            `yaml:"priority"`
	Preemptible     *bool             `yaml:"preemptible"`
	Pods            *int              `yaml:"pods"`
	MinPods         *int              `yaml:"minPods"`
	Request         request           `yaml:"request"`
	State           string            `yaml:"state"`
	Nodes           []string          `yaml:"nodes"`
	GPUGroup        []string          `yaml:"gpuGroup"`
	PendingPods     int               `yaml:"pendingPods"`
	RunningFor      duration          `yaml:"runningFor"`
	BelowMinimumFor duration          `yaml:"belowMinimumFor"`
	EvictedAgo      duration          `yaml:"evictedAgo"`
	WaitingFor      duration          `yaml:"waitingFor"`
	CPU             cpu               `yaml:"cpu"`
	Memory          memory            `yaml:"memory"`
	Extended        map[string]int64  `yaml:"extended"`
	NodeSelector    map[string]string `yaml:"nodeSelector"`
	Tolerations     []taint           `yaml:"tolerations"`
	Bare            bool              `yaml:"bare"`
}

type request struct {
	GPUs     *int      `yaml:"gpus"`
	Fraction *fraction `yaml:"fraction"`
	Memory   *memory   `yaml:"memory"`
	MIG      string    `yaml:"mig"`
	Count    *int      `yaml:"count"`
}

// Expect is what should be true at the end.
type Expect struct {
	Starts       []string        `yaml:"starts"`
	KeepsRunning []string        `yaml:"keepsRunning"`
	Evicted      []string        `yaml:"evicted"`
	Moved        []string        `yaml:"moved"`
	Waits        []string        `yaml:"waits"`
	Placement    map[string]list `yaml:"placement"`
	GPUGroup     map[string]list `yaml:"gpuGroup"`
	FairShare    map[string]gpus `yaml:"fairShare"`
	Unassigned   *gpus           `yaml:"unassigned"`
}

// list is a list of strings that may be written as one string.
type list []string

// UnmarshalYAML reads one string or a list.
func (s *list) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*s = list{n.Value}
		return nil
	}
	var list []string
	if err := n.Decode(&list); err != nil {
		return err
	}
	*s = list
	return nil
}

// gpus is a number of GPUs with fractions, or "unlimited".
type gpus quantity.MilliGPU

// UnmarshalYAML rounds to the nearest thousandth.
func (g *gpus) UnmarshalYAML(n *yaml.Node) error {
	if n.Value == "unlimited" {
		*g = gpus(quantity.Unlimited)
		return nil
	}
	milli, err := decimal(n.Value, 1000, false)
	if err != nil {
		return fmt.Errorf("line %d: %q is not a number of GPUs: %w", n.Line, n.Value, err)
	}
	*g = gpus(milli)
	return nil
}

// thousandth is a decimal in thousandths.
type thousandth int64

// UnmarshalYAML rounds to the nearest thousandth.
func (t *thousandth) UnmarshalYAML(n *yaml.Node) error {
	v, err := decimal(n.Value, 1000, false)
	if err != nil {
		return fmt.Errorf("line %d: %q is not a number: %w", n.Line, n.Value, err)
	}
	*t = thousandth(v)
	return nil
}

// fraction is a part of a GPU: in millionths, and what it costs.
type fraction struct {
	ppm   int64
	milli quantity.MilliGPU
}

// UnmarshalYAML takes what is above 0 and at most 1.
func (f *fraction) UnmarshalYAML(n *yaml.Node) error {
	ppm, err := decimal(n.Value, 1_000_000, false)
	milli, err2 := decimal(n.Value, 1000, true)
	if err != nil || err2 != nil || ppm < 1 || ppm > 1_000_000 {
		return fmt.Errorf("line %d: fraction %q must be above 0 and at most 1, as in \"0.5\"", n.Line, n.Value)
	}
	f.ppm, f.milli = ppm, quantity.MilliGPU(milli)
	return nil
}

// maxNumber bounds every decimal of a file: more GPUs than any fleet has.
const maxNumber = 1_000_000_000

// decimal reads text times scale, rounded to the nearest, or up.
func decimal(text string, scale int64, up bool) (int64, error) {
	r, ok := new(big.Rat).SetString(strings.TrimSpace(text))
	if !ok || len(text) > 64 {
		return 0, fmt.Errorf("write a decimal number")
	}
	if r.Sign() < 0 {
		return 0, fmt.Errorf("it is negative")
	}
	if r.Cmp(new(big.Rat).SetInt64(maxNumber)) > 0 {
		return 0, fmt.Errorf("it is above %d", maxNumber)
	}
	r.Mul(r, new(big.Rat).SetInt64(scale))
	add := big.NewRat(1, 2)
	if up {
		add = new(big.Rat).Sub(big.NewRat(1, 1), new(big.Rat).SetFrac(big.NewInt(1), r.Denom()))
	}
	r.Add(r, add)
	return new(big.Int).Quo(r.Num(), r.Denom()).Int64(), nil
}

// memory is an amount of memory as Kubernetes writes it.
type memory quantity.Bytes

// UnmarshalYAML reads a Kubernetes quantity.
func (m *memory) UnmarshalYAML(n *yaml.Node) error {
	v, err := amountOf(n, "bytes", 1)
	*m = memory(v)
	return err
}

// cpu is thousandths of a CPU.
type cpu int64

// UnmarshalYAML reads a Kubernetes quantity.
func (c *cpu) UnmarshalYAML(n *yaml.Node) error {
	v, err := amountOf(n, "CPUs", 1000)
	*c = cpu(v)
	return err
}

func amountOf(n *yaml.Node, what string, scale int64) (int64, error) {
	q, err := resource.ParseQuantity(n.Value)
	if err != nil {
		return 0, fmt.Errorf("line %d: %q is not an amount of %s, as in 20Gi or 500m", n.Line, n.Value, what)
	}
	v := q.Value()
	if scale == 1000 {
		v = q.MilliValue()
	}
	if v < 0 || v > 1<<60 {
		return 0, fmt.Errorf("line %d: %q is out of range", n.Line, n.Value)
	}
	return v, nil
}

// duration is a time span such as 10m.
type duration time.Duration

// UnmarshalYAML reads a Go duration.
func (d *duration) UnmarshalYAML(n *yaml.Node) error {
	v, err := time.ParseDuration(n.Value)
	if err != nil || v < 0 || v > 100*365*24*time.Hour {
		return fmt.Errorf("line %d: %q is not a time span, as in 90s or 10m", n.Line, n.Value)
	}
	*d = duration(v)
	return nil
}
