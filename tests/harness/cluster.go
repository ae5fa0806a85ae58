package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	kueuev1 "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Cluster is one running one-machine cluster.
type Cluster struct {
	Dir        string // state folder
	Kubeconfig string
	Config     *rest.Config
	Client     client.Client
	Nodes      []Node
	root       string // repository
	log        io.Writer
}

// Node is one node of the cluster and its private folders on this machine.
type Node struct {
	Name   string `json:"name"`
	RunDir string `json:"runDir"` // what the node sees as /run
	// KubeletDir is what the node sees as /var/lib/kubelet.
	KubeletDir string `json:"kubeletDir"`
}

// Options choose the cluster that Up makes.
type Options struct {
	Dir   string    // state folder; "" = the default one
	Nodes int       // 0 = control plane and Kueue only
	Log   io.Writer // progress
}

// Up starts the cluster, or finds it running.
func Up(ctx context.Context, options Options) (*Cluster, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: options.Dir, root: root, log: options.Log}
	args := append(c.dirArgs(), "--nodes", strconv.Itoa(options.Nodes))
	if err := c.clusterTool(ctx, append([]string{"up"}, args...)...); err != nil {
		return nil, err
	}
	if err := c.readStatus(ctx); err != nil {
		return nil, err
	}
	return c, c.connect()
}

// Connect finds a cluster that is already running.
func Connect(ctx context.Context, options Options) (*Cluster, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: options.Dir, root: root, log: options.Log}
	if err := c.readStatus(ctx); err != nil {
		return nil, err
	}
	return c, c.connect()
}

// Down ends the cluster and removes its folder.
func (c *Cluster) Down(ctx context.Context) error {
	return c.clusterTool(ctx, append([]string{"down"}, c.dirArgs()...)...)
}

// Tool runs the cluster program with the cluster's folder.
func (c *Cluster) Tool(ctx context.Context, args ...string) error {
	return c.clusterTool(ctx, append(args[:1:1], append(c.dirArgs(), args[1:]...)...)...)
}

func (c *Cluster) dirArgs() []string {
	if c.Dir == "" {
		return nil
	}
	return []string{"--dir", c.Dir}
}

func (c *Cluster) clusterTool(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, c.bin("fairshard-cluster"), args...)
	cmd.Stdout, cmd.Stderr = c.log, c.log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run fairshard-cluster %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

func (c *Cluster) readStatus(ctx context.Context) error {
	out, err := output(exec.CommandContext(ctx, c.bin("fairshard-cluster"), append([]string{"status", "-o", "json"}, c.dirArgs()...)...))
	if err != nil {
		return err
	}
	var status struct {
		Dir        string `json:"dir"`
		Kubeconfig string `json:"kubeconfig"`
		Nodes      []Node `json:"nodes"`
	}
	if err := json.Unmarshal(out, &status); err != nil {
		return fmt.Errorf("decode cluster status: %w", err)
	}
	c.Dir, c.Kubeconfig, c.Nodes = status.Dir, status.Kubeconfig, status.Nodes
	return nil
}

func (c *Cluster) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 200, 400
	log.SetLogger(logr.Discard()) // the client logs nothing that an error does not say
	cl, err := client.New(config, client.Options{Scheme: Scheme()})
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	c.Config, c.Client = config, cl
	return nil
}

// Scheme knows the built-in types and Kueue's.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	must(kueuev1.AddToScheme(scheme))
	return scheme
}

// Kubectl runs kubectl against the cluster and returns its standard output.
func (c *Cluster) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.kubectl(), append([]string{"--kubeconfig", c.Kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := output(cmd)
	return string(out), err
}

// APIServer returns host and port of the API server.
func (c *Cluster) APIServer() (host, port string, err error) {
	host, port, err = net.SplitHostPort(strings.TrimPrefix(c.Config.Host, "https://"))
	if err != nil {
		return "", "", fmt.Errorf("parse API server address %q: %w", c.Config.Host, err)
	}
	return host, port, nil
}

func (c *Cluster) kubectl() string {
	if own := filepath.Join(c.Dir, "bin", "kubectl"); exists(own) {
		return own
	}
	return "kubectl"
}

func (c *Cluster) bin(name string) string { return filepath.Join(c.root, "bin", name) }

func (c *Cluster) logf(format string, args ...any) {
	if c.log != nil {
		fmt.Fprintf(c.log, format+"\n", args...)
	}
}

// repository walks up from the working folder to the product's go.mod.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find repository: %w", err)
	}
	for {
		if exists(filepath.Join(dir, "deployments", "base")) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find repository: no folder above holds deployments/base; run from a checkout")
		}
		dir = parent
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// output runs cmd and returns its standard output; an error carries the end of standard error.
func output(cmd *exec.Cmd) ([]byte, error) {
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("run %s %s: %w: %s", filepath.Base(cmd.Path), strings.Join(cmd.Args[1:], " "), err, strings.TrimSpace(errOut.String()))
	}
	return out.Bytes(), nil
}

func must(err error) {
	if err != nil {
		panic("serious bug: register types: " + err.Error())
	}
}

// FreePort returns a TCP port of 127.0.0.1 that nobody listens on now.
func FreePort(ctx context.Context) (int, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// Down ends the cluster of options.Dir, also one that Up could not finish.
func Down(ctx context.Context, options Options) error {
	root, err := repository()
	if err != nil {
		return err
	}
	c := &Cluster{Dir: options.Dir, root: root, log: options.Log}
	return c.Down(ctx)
}

// Apply applies manifests as a user would.
func (c *Cluster) Apply(ctx context.Context, manifests string) error {
	_, err := c.Kubectl(ctx, manifests, "apply", "--server-side", "-f", "-")
	return err
}

// BinDir is the folder that holds kubectl.
func (c *Cluster) BinDir() string { return filepath.Dir(c.kubectl()) }
