package kubeletplugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"k8s.io/klog/v2"

	"github.com/fairshard/fairshard/classes/quantity"
	"github.com/fairshard/fairshard/driver/inventory"
	"github.com/fairshard/fairshard/driver/partition"
	"github.com/fairshard/fairshard/kubeletplugin/publish"
	"github.com/fairshard/fairshard/kubeletplugin/wire"
)

// Library is what the plugin needs of the GPU driver's library.
type Library interface {
	Inventory() (inventory.Inventory, error)
	Close()
}

// OpenLibrary finds and opens the library below a driver root.
type OpenLibrary func(root string) (Library, error)

// controlNodes are the device nodes that every container with a GPU gets, where
// they exist.
var controlNodes = []string{"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"}

// discover looks for the GPUs and publishes those it can read, until it has read
// and published them all. One bad GPU must not hide the others.
func discover(ctx context.Context, config Config, p *Plugin, publisher *publish.Publisher) {
	logger := klog.FromContext(ctx)
	var published *partition.Layout
	last := ""
	for {
		layout, err := look(config)
		if len(layout.CounterSets)+len(layout.Skipped) > 0 && (published == nil || !reflect.DeepEqual(*published, layout)) {
			logLayout(ctx, layout)
			p.setPaths(devicePaths(config.DriverRoot, config.HostDriverRoot))
			p.setHardware(offered(layout))
			if failed := publisher.Publish(ctx, wire.PoolOf(layout)); failed != nil {
				err = errors.Join(err, failed)
			} else {
				published = &layout
			}
		}
		if err == nil {
			return
		}
		if text := err.Error(); text != last { // Once per cause, not once per try.
			logger.Error(err, "Not all GPUs of this node are known; claims are still released, and it is tried again", "every", config.RetryPeriod)
			last = text
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(config.RetryPeriod):
		}
	}
}

// look reads the inventory once; with an error the layout holds the GPUs that
// could be read. No GPU at all counts as not ready: a driver that is still
// loading looks like that.
func look(config Config) (partition.Layout, error) {
	library, err := config.Open(config.DriverRoot)
	if err != nil {
		return partition.Layout{}, fmt.Errorf("open the GPU driver library: %w", err)
	}
	defer library.Close()
	inv, err := library.Inventory()
	if err != nil {
		err = fmt.Errorf("read the GPUs: %w", err)
	} else if len(inv.GPUs) == 0 {
		err = errors.New("read the GPUs: the driver library knows none")
	}
	return partition.Build(inv, partition.Default()), err
}

// offered is what the plugin has to know about a layout.
func offered(layout partition.Layout) hardware {
	h := hardware{facts: wire.FactsOfLayout(layout), usable: map[string]quantity.Bytes{}}
	for _, offer := range layout.Wholes {
		h.usable[offer.GPU.UUID] = offer.Memory
	}
	return h
}

func logLayout(ctx context.Context, layout partition.Layout) {
	logger := klog.FromContext(ctx)
	for _, s := range layout.Skipped {
		logger.Info("A GPU is not offered", "uuid", s.GPU.UUID, "pci", s.GPU.PCIBusID, "reason", s.Reason)
	}
	logger.Info("Publishing GPUs", "driver", layout.DriverVersion, "gpus", len(layout.Wholes), "skipped", len(layout.Skipped))
}

// devicePaths finds the device nodes: below the driver root if it has its own,
// else the host's. The runtime resolves them on the host.
func devicePaths(driverRoot, hostDriverRoot string) wire.Paths {
	here, onHost := filepath.Join(driverRoot, "dev"), filepath.Join(hostDriverRoot, "dev")
	if info, err := os.Stat(here); err != nil || !info.IsDir() {
		here, onHost = "/dev", "/dev"
	}
	paths := wire.Paths{Dev: onHost}
	for _, name := range controlNodes {
		if _, err := os.Stat(filepath.Join(here, name)); err == nil {
			paths.Control = append(paths.Control, name)
		}
	}
	return paths
}
