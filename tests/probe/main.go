// Command probe is what the demo and the tests run inside a container: it
// prints what the container was told about its GPUs, one JSON line, and then
// sleeps until its time is over or it is asked to stop.
//
// It only reads: device nodes below /dev, the limits files below
// /run/fairshard/claims and the environment. It is a static program, so that
// its image needs nothing else.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Report is the JSON line that probe prints.
type Report struct {
	Pod     string            `json:"pod,omitempty"`
	Devices []string          `json:"devices"` // device nodes seen, without the control nodes
	Limits  map[string]string `json:"limits"`  // limits file path -> its content
	Env     map[string]string `json:"env"`     // FAIRSHARD_* and NVIDIA_VISIBLE_DEVICES
}

// stopped is the exit code of a program that SIGTERM ended early.
const stopped = 128 + 15

func main() {
	os.Exit(run())
}

// run prints the report, waits, and returns the exit code.
func run() int {
	sleep := flag.Duration("sleep", 0, "how long to run after the report")
	exit := flag.Int("exit", 0, "exit code at the end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()

	line, err := json.Marshal(look())
	if err != nil {
		fmt.Fprintln(os.Stderr, "encode report:", err)
		return 1
	}
	fmt.Println(string(line))
	select {
	case <-ctx.Done():
		return stopped // its work was not done: a Job must not count it as succeeded
	case <-time.After(*sleep):
	}
	return *exit
}

// look collects the report; what is not there is simply absent.
func look() Report {
	report := Report{Pod: os.Getenv("HOSTNAME"), Limits: map[string]string{}, Env: map[string]string{}}
	report.Devices, _ = filepath.Glob("/dev/nvidia[0-9]*")
	files, _ := filepath.Glob("/run/fairshard/claims/*/limits")
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			content = []byte("unreadable: " + err.Error())
		}
		report.Limits[file] = string(content)
	}
	for _, pair := range os.Environ() {
		key, value, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(key, "FAIRSHARD_") || key == "NVIDIA_VISIBLE_DEVICES" {
			report.Env[key] = value
		}
	}
	return report
}
