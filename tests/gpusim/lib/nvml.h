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
	NVML_NO_PERMISSION = 4,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_DRIVER_NOT_LOADED = 9,
	NVML_TIMEOUT = 10,
	NVML_GPU_IS_LOST = 15,
	NVML_RESET_REQUIRED = 16,
	NVML_LIB_RM_VERSION_MISMATCH = 18,
	NVML_IN_USE = 19,
	NVML_MEMORY = 20,
	NVML_INSUFFICIENT_RESOURCES = 23,
	NVML_ARGUMENT_VERSION_MISMATCH = 25,
};

/* A device is a GPU or a MIG device; which of both, its address tells. */
typedef void *nvml_device;
typedef struct gpusim_instance *nvml_gpu_instance, *nvml_compute_instance;

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

struct nvml_profile {
	unsigned int id, p2p, slices, instances, sms, copy_engines, decoders, encoders, jpegs, ofas;
	unsigned long long memory_mb;
};

struct nvml_profile_v2 {
	unsigned int version;
	unsigned int id, p2p, slices, instances, sms, copy_engines, decoders, encoders, jpegs, ofas;
	unsigned long long memory_mb;
	char name[96];
};

struct nvml_compute_profile {
	unsigned int id, slices, instances, sms, copy_engines, decoders, encoders, jpegs, ofas;
};

struct nvml_placement {
	unsigned int start, size;
};

struct nvml_gpu_instance_info {
	nvml_device device;
	unsigned int id, profile;
	struct nvml_placement placement;
};

struct nvml_compute_instance_info {
	nvml_device device;
	nvml_gpu_instance gpu_instance;
	unsigned int id, profile;
	struct nvml_placement placement;
};

struct nvml_process {
	unsigned int pid;
	unsigned long long bytes;
	unsigned int gi, ci;
};

struct nvml_event {
	nvml_device device;
	unsigned long long type, data;
	unsigned int gi, ci;
};

struct nvml_field {
	unsigned int id, scope;
	long long timestamp, latency;
	unsigned int type;
	nvml_return result;
	union {
		unsigned int ui;
		unsigned long long ull;
	} value;
};

#define NVML_BRAND_TESLA 2
#define NVML_BRAND_NVIDIA 14
#define NVML_ARCH_TURING 6
#define NVML_EVENT_ALL 65439ull
#define NVML_FIELD_RECOVERY_ACTION 230
#define NVML_VALUE_UNSIGNED_INT 1
#define NVML_NO_INSTANCE 0xffffffffu
#define NVML_MEMORY_V2 ((unsigned int)(sizeof(struct nvml_memory_v2) | (2u << 24)))
#define NVML_PROFILE_V2 ((unsigned int)(sizeof(struct nvml_profile_v2) | (2u << 24)))
#define NVML_EXPORT __attribute__((visibility("default")))

#endif
