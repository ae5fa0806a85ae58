/* The table of simulated GPUs, as tests/gpusim/table.go writes it: little
 * endian, fixed size. Change both together. */
#ifndef GPUSIM_TABLE_H
#define GPUSIM_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define GPUSIM_MAGIC "GPUSIM1"
#define GPUSIM_VERSION 2u
#define GPUSIM_MAX_GPUS 64u
#define GPUSIM_MAX_PROFILES 16u
#define GPUSIM_MAX_INSTANCES 7u
#define GPUSIM_MAX_PROCESSES 16u
#define GPUSIM_MAX_FAULTS 16u
#define GPUSIM_MAX_EVENTS 64u
#define GPUSIM_FOREVER 0xffffffffu
#define GPUSIM_ALL_GPUS (-1)

/* A way to cut a MIG device out of a GPU. */
struct gpusim_profile {
	uint32_t kind;       /* NVML_GPU_INSTANCE_PROFILE_... */
	uint32_t id;         /* what the driver calls it, e.g. 19 */
	uint32_t slices;     /* compute slices */
	uint32_t size;       /* memory slices */
	uint32_t sms;        /* multiprocessors */
	uint32_t most;       /* instances a GPU can have of it */
	uint32_t placements; /* bit s: it may start at memory slice s */
	uint32_t spare;
	uint64_t memory; /* bytes */
	char name[24];   /* "1g.10gb" */
};

/* A GPU instance and, when ci_used, its one compute instance. */
struct gpusim_instance {
	uint32_t used;
	uint32_t gi;
	uint32_t profile; /* position in the GPU's profiles */
	uint32_t start;
	uint32_t ci_used;
	uint32_t ci;
	uint32_t ci_profile; /* NVML_COMPUTE_INSTANCE_PROFILE_... */
	uint32_t spare;
	char uuid[48]; /* of the MIG device */
};

struct gpusim_process {
	uint64_t bytes;
	uint32_t pid;
	uint32_t gi, ci; /* 0xffffffff outside of MIG */
	uint32_t spare;
};

struct gpusim_gpu {
	char uuid[64];
	char name[96];
	uint64_t total;    /* bytes */
	uint64_t reserved; /* bytes that the driver keeps */
	uint64_t used;     /* bytes held beside those of processes */
	uint32_t domain, bus, device;
	uint32_t minor;
	int32_t numa; /* -1 = unknown */
	uint32_t architecture;
	int32_t cc_major, cc_minor;
	uint32_t mig_capable, mig_enabled;
	uint32_t pci_device_id;
	uint32_t lost;     /* 1: the GPU fell off the bus, every call on it fails */
	uint32_t absent;   /* 1: as if it were not in the machine */
	uint32_t recovery; /* recovery action, field 230 */
	uint32_t remap_correctable, remap_uncorrectable, remap_pending, remap_failed;
	uint64_t ecc_volatile, ecc_aggregate; /* uncorrected errors */
	uint32_t profile_count, process_count;
	uint32_t made; /* MIG devices made so far; makes their UUIDs */
	uint32_t spare;
	struct gpusim_profile profiles[GPUSIM_MAX_PROFILES];
	struct gpusim_instance instances[GPUSIM_MAX_INSTANCES];
	struct gpusim_process processes[GPUSIM_MAX_PROCESSES];
};

/* A call that fails or is slow. */
struct gpusim_fault {
	char call[64];   /* name of the function */
	int32_t gpu;     /* position, or GPUSIM_ALL_GPUS */
	int32_t code;    /* what it returns; 0 = it goes on after the delay */
	uint32_t delay;  /* milliseconds; GPUSIM_FOREVER = until the fault is taken away */
	uint32_t left;   /* calls it still hits, or GPUSIM_FOREVER */
};

struct gpusim_event {
	uint64_t type, data;
	uint32_t gpu, gi, ci;
	uint32_t spare;
};

struct gpusim_table {
	char magic[8];
	uint32_t version;
	uint32_t count;
	char driver[32];
	char nvml[32];
	int32_t cuda_version;
	uint32_t fault_count;
	uint64_t event_count; /* ever; event n lies at n % GPUSIM_MAX_EVENTS */
	uint8_t spare[32];
	struct gpusim_fault faults[GPUSIM_MAX_FAULTS];
	struct gpusim_event events[GPUSIM_MAX_EVENTS];
	struct gpusim_gpu gpus[GPUSIM_MAX_GPUS];
};

_Static_assert(sizeof(struct gpusim_profile) == 64, "profile size");
_Static_assert(sizeof(struct gpusim_instance) == 80, "instance size");
_Static_assert(sizeof(struct gpusim_process) == 24, "process size");
_Static_assert(sizeof(struct gpusim_fault) == 80, "fault size");
_Static_assert(sizeof(struct gpusim_event) == 32, "event size");
_Static_assert(offsetof(struct gpusim_gpu, numa) == 200, "record layout");
_Static_assert(sizeof(struct gpusim_gpu) == 288 + 16 * 64 + 7 * 80 + 16 * 24, "record size");
_Static_assert(offsetof(struct gpusim_table, faults) == 128, "table layout");
_Static_assert(offsetof(struct gpusim_table, gpus) == 128 + 16 * 80 + 64 * 32, "table layout");

#endif
