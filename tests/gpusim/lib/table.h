/* The table of simulated GPUs, as tests/gpusim/table.go writes it: little
 * endian, fixed size. Change both together. */
#ifndef GPUSIM_TABLE_H
#define GPUSIM_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define GPUSIM_MAGIC "GPUSIM1"
#define GPUSIM_VERSION 1u
#define GPUSIM_MAX_GPUS 64u

struct gpusim_gpu {
	char uuid[64];
	char name[96];
	uint64_t total;    /* bytes */
	uint64_t reserved; /* bytes that the driver keeps */
	uint64_t used;     /* bytes that processes hold */
	uint32_t domain, bus, device;
	uint32_t minor;
	int32_t numa; /* -1 = unknown */
	uint32_t architecture;
	int32_t cc_major, cc_minor;
	uint32_t mig_capable, mig_enabled;
	uint32_t pci_device_id;
	uint32_t lost; /* 1: the GPU fell off the bus, every call on it fails */
	uint8_t spare[24];
};

struct gpusim_table {
	char magic[8];
	uint32_t version;
	uint32_t count;
	char driver[32];
	char nvml[32];
	int32_t cuda_version;
	uint8_t spare[44];
	struct gpusim_gpu gpus[GPUSIM_MAX_GPUS];
};

_Static_assert(sizeof(struct gpusim_gpu) == 256, "record size");
_Static_assert(offsetof(struct gpusim_gpu, total) == 160, "record layout");
_Static_assert(offsetof(struct gpusim_gpu, numa) == 200, "record layout");
_Static_assert(offsetof(struct gpusim_gpu, pci_device_id) == 224, "record layout");
_Static_assert(offsetof(struct gpusim_table, gpus) == 128, "table layout");
_Static_assert(sizeof(struct gpusim_table) == 128 + 64 * 256, "table size");

#endif
