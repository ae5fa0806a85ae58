package nvml

import (
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/fairshard/fairshard/classes/quantity"
	"github.com/fairshard/fairshard/driver/inventory"
)

// Classes of failure, for errors.Is.
var (
	// ErrLibraryNotFound: the node has no driver library where we look, or it cannot be loaded.
	ErrLibraryNotFound = errors.New("GPU driver library not found")
	// ErrDriverNotLoaded: the library is there and the kernel driver is not.
	ErrDriverNotLoaded = errors.New("GPU driver not loaded")
)

// libraryName is the name under which every driver installs the library.
const libraryName = "libnvidia-ml.so.1"

// libraryFolders are where distributions and driver containers put it.
var libraryFolders = []string{
	"usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu",
}

// FindLibrary returns the path of the NVML library below a driver root.
func FindLibrary(root string) (string, error) {
	for _, folder := range libraryFolders {
		path := filepath.Join(root, folder, libraryName)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
	}
	return "", fmt.Errorf("find %s below %s (in %s): %w", libraryName, root, strings.Join(libraryFolders, ", "), ErrLibraryNotFound)
}

// Library is the open driver library.
type Library struct {
	api nvml.Interface
}

// Open loads the library from path and initialises it.
func Open(path string) (*Library, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("open %s: %w: %w", path, ErrLibraryNotFound, err)
	}
	api := nvml.New(nvml.WithLibraryPath(path))
	switch ret := api.Init(); ret {
	case nvml.SUCCESS:
		return &Library{api: api}, nil
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return nil, fmt.Errorf("load %s: %w", path, ErrLibraryNotFound)
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return nil, fmt.Errorf("initialise %s: %w", path, ErrDriverNotLoaded)
	default:
		return nil, failure("nvmlInit", ret)
	}
}

// Close ends the use of the library.
func (l *Library) Close() { _ = l.api.Shutdown() }

// Inventory reads every GPU. With an error the returned inventory still holds
// those that could be read.
func (l *Library) Inventory() (inventory.Inventory, error) {
	driver, ret := l.api.SystemGetDriverVersion()
	if ret != nvml.SUCCESS {
		return inventory.Inventory{}, failure("nvmlSystemGetDriverVersion", ret)
	}
	count, ret := l.api.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return inventory.Inventory{}, failure("nvmlDeviceGetCount", ret)
	}
	var gpus []inventory.GPU
	var problems []error
	for i := range count {
		gpu, err := l.gpu(i)
		if err != nil {
			problems = append(problems, fmt.Errorf("read GPU %d: %w", i, err))
			continue
		}
		gpus = append(gpus, gpu)
	}
	return inventory.New(driver, gpus), errors.Join(problems...)
}

func (l *Library) gpu(index int) (inventory.GPU, error) {
	device, ret := l.api.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return inventory.GPU{}, failure("nvmlDeviceGetHandleByIndex", ret)
	}
	gpu := inventory.GPU{NUMANode: l.numaNode(device)}
	for _, read := range []func(nvml.Device, *inventory.GPU) error{identity, l.memory, architecture, mig} {
		if err := read(device, &gpu); err != nil {
			return inventory.GPU{}, err
		}
	}
	return gpu, nil
}

func identity(device nvml.Device, gpu *inventory.GPU) error {
	var ret nvml.Return
	if gpu.UUID, ret = device.GetUUID(); ret != nvml.SUCCESS {
		return failure("nvmlDeviceGetUUID", ret)
	}
	if gpu.ProductName, ret = device.GetName(); ret != nvml.SUCCESS {
		return failure("nvmlDeviceGetName", ret)
	}
	if gpu.Minor, ret = device.GetMinorNumber(); ret != nvml.SUCCESS {
		return failure("nvmlDeviceGetMinorNumber", ret)
	}
	pci, ret := device.GetPciInfo()
	if ret != nvml.SUCCESS {
		return failure("nvmlDeviceGetPciInfo", ret)
	}
	// NVML writes eight upper-case digits of domain; Kubernetes and sysfs four lower-case ones.
	gpu.PCIBusID = fmt.Sprintf("%04x:%02x:%02x.0", pci.Domain, pci.Bus, pci.Device)
	return nil
}

// memory needs a driver of branch 510 or later: the call before it does not say what is reserved.
func (l *Library) memory(device nvml.Device, gpu *inventory.GPU) error {
	const call = "nvmlDeviceGetMemoryInfo_v2"
	if l.api.Extensions().LookupSymbol(call) != nil {
		return failure(call, nvml.ERROR_FUNCTION_NOT_FOUND)
	}
	info, ret := device.GetMemoryInfo_v2()
	if ret != nvml.SUCCESS {
		return failure(call, ret)
	}
	gpu.Total, gpu.Reserved = quantity.Bytes(info.Total), quantity.Bytes(info.Reserved)
	return nil
}

// architectures are the names that devices publish.
var architectures = map[nvml.DeviceArchitecture]string{
	nvml.DEVICE_ARCH_MAXWELL: "Maxwell", nvml.DEVICE_ARCH_PASCAL: "Pascal", nvml.DEVICE_ARCH_VOLTA: "Volta",
	nvml.DEVICE_ARCH_TURING: "Turing", nvml.DEVICE_ARCH_AMPERE: "Ampere", nvml.DEVICE_ARCH_ADA: "Ada Lovelace",
	nvml.DEVICE_ARCH_HOPPER: "Hopper", nvml.DEVICE_ARCH_BLACKWELL: "Blackwell",
}

func architecture(device nvml.Device, gpu *inventory.GPU) error {
	arch, ret := device.GetArchitecture()
	if ret != nvml.SUCCESS {
		return failure("nvmlDeviceGetArchitecture", ret)
	}
	gpu.Architecture = "Unknown"
	if name, known := architectures[arch]; known {
		gpu.Architecture = name
	}
	major, minor, ret := device.GetCudaComputeCapability()
	if ret != nvml.SUCCESS {
		return failure("nvmlDeviceGetCudaComputeCapability", ret)
	}
	gpu.ComputeCapability = fmt.Sprintf("%d.%d", major, minor)
	return nil
}

// mig reads the MIG mode; GPUs without MIG say that it is not supported.
func mig(device nvml.Device, gpu *inventory.GPU) error {
	current, _, ret := device.GetMigMode()
	switch ret {
	case nvml.SUCCESS:
		gpu.MIGCapable, gpu.MIGEnabled = true, current == nvml.DEVICE_MIG_ENABLE
		return nil
	case nvml.ERROR_NOT_SUPPORTED:
		return nil
	default:
		return failure("nvmlDeviceGetMigMode", ret)
	}
}

// maxNUMANodes is how many NUMA nodes are asked for.
const maxNUMANodes = 64

// numaNode returns the nearest NUMA node, -1 if the driver cannot tell.
func (l *Library) numaNode(device nvml.Device) int {
	if l.api.Extensions().LookupSymbol("nvmlDeviceGetMemoryAffinity") != nil {
		return -1
	}
	set, ret := device.GetMemoryAffinity(maxNUMANodes, nvml.AFFINITY_SCOPE_NODE)
	if ret != nvml.SUCCESS || len(set) == 0 || set[0] == 0 {
		return -1
	}
	return bits.TrailingZeros(set[0])
}

// failure names the call that failed and why.
func failure(call string, ret nvml.Return) error {
	return fmt.Errorf("call %s: %w", call, ret)
}
