/* The part of the NVML interface that the simulation serves: values and
 * structures that programs built against the real library rely on. */
#ifndef GPUSIM_NVML_H
#define GPUSIM_NVML_H

typedef int nvml_return;
enum {
	NVML_OK = 0,
	NVML_UNINITIALIZED = 1,
	NVML_INVALID_ARGUMENT = 2,
	NVML_NOT_SUPPORTED = 3,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_GPU_IS_LOST = 15,
	NVML_LIB_RM_VERSION_MISMATCH = 18,
	NVML_ARGUMENT_VERSION_MISMATCH = 25,
};

typedef const struct gpusim_gpu *nvml_device;

struct nvml_pci_info {
	char bus_id_legacy[16];
	unsigned int domain, bus, device;
	unsigned int pci_device_id, pci_subsystem_id;
	char bus_id[32];
};

struct nvml_memory {
	unsigned long long total, free, used;
};

struct nvml_memory_v2 {
	unsigned int version;
	unsigned long long total, reserved, free, used;
};

#define NVML_BRAND_TESLA 2
#define NVML_BRAND_NVIDIA 14
#define NVML_ARCH_TURING 6
#define NVML_MEMORY_V2 ((unsigned int)(sizeof(struct nvml_memory_v2) | (2u << 24)))
#define NVML_EXPORT __attribute__((visibility("default")))

#endif
