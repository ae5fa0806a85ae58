/* A stand-in for libnvidia-ml.so.1 that answers from a table file.
 *
 * The table is FAIRSHARD_GPUSIM_TABLE, or gpusim.table beside this library. It
 * is mapped at nvmlInit and unmapped with the last nvmlShutdown; a handle is the
 * address of a record. All processes map the same file, so what one changes
 * (a MIG device, a fault set by the tool) the others see at once. Changes are
 * made under a lock on the file; a reader may see a change half made, as a
 * reader of real hardware may.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sim.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t changes = PTHREAD_MUTEX_INITIALIZER;
static unsigned int users;
static int file = -1; /* the table, open for the lock; -1 when it is read-only */
struct gpusim_table *table;

/* table_path writes the path of the table into path. */
static int table_path(char *path, size_t size)
{
	const char *given = getenv("FAIRSHARD_GPUSIM_TABLE");
	Dl_info self;
	const char *slash;

	if (given != NULL && given[0] != '\0')
		return snprintf(path, size, "%s", given) < (int)size;
	if (dladdr((void *)&users, &self) == 0 || self.dli_fname == NULL)
		return 0;
	slash = strrchr(self.dli_fname, '/');
	if (slash == NULL)
		return snprintf(path, size, "gpusim.table") < (int)size;
	return snprintf(path, size, "%.*s/gpusim.table", (int)(slash - self.dli_fname), self.dli_fname) < (int)size;
}

/* open_table maps the table; without one there is no driver. */
static nvml_return open_table(void)
{
	char path[4096];
	struct stat info;
	int opened, protection = PROT_READ | PROT_WRITE;
	void *memory;

	if (!table_path(path, sizeof(path)))
		return NVML_DRIVER_NOT_LOADED;
	opened = open(path, O_RDWR | O_CLOEXEC);
	if (opened < 0) {
		protection = PROT_READ;
		opened = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (opened < 0)
		return NVML_DRIVER_NOT_LOADED;
	if (fstat(opened, &info) != 0 || info.st_size != (off_t)sizeof(struct gpusim_table)) {
		close(opened);
		return NVML_LIB_RM_VERSION_MISMATCH;
	}
	memory = mmap(NULL, sizeof(struct gpusim_table), protection, MAP_SHARED, opened, 0);
	if (memory == MAP_FAILED) {
		close(opened);
		return NVML_DRIVER_NOT_LOADED;
	}
	table = memory;
	if (memcmp(table->magic, GPUSIM_MAGIC, sizeof(table->magic)) != 0 || table->version != GPUSIM_VERSION ||
	    table->count > GPUSIM_MAX_GPUS) {
		munmap(memory, sizeof(struct gpusim_table));
		close(opened);
		table = NULL;
		return NVML_LIB_RM_VERSION_MISMATCH;
	}
	if (protection == PROT_READ)
		close(opened);
	else
		file = opened;
	return NVML_OK;
}

/* change_begin lets one thread of one process change the table. */
nvml_return change_begin(void)
{
	if (file < 0)
		return NVML_NO_PERMISSION;
	pthread_mutex_lock(&changes);
	while (flock(file, LOCK_EX) != 0 && errno == EINTR)
		;
	return NVML_OK;
}

void change_end(void)
{
	flock(file, LOCK_UN);
	pthread_mutex_unlock(&changes);
}

static int hits(const struct gpusim_fault *f, const char *call, int gpu)
{
	return f->left != 0 && strcmp(f->call, call) == 0 && (f->gpu == GPUSIM_ALL_GPUS || f->gpu == gpu);
}

/* fault waits or fails as the table says for a call on a GPU (NULL = none). */
nvml_return fault(const char *call, const struct gpusim_gpu *gpu)
{
	const int position = gpu == NULL ? GPUSIM_ALL_GPUS : (int)(gpu - table->gpus);
	const struct timespec step = {0, 2000000};

	for (unsigned int i = 0; i < GPUSIM_MAX_FAULTS && i < table->fault_count; i++) {
		struct gpusim_fault *f = &table->faults[i];
		nvml_return code = f->code;

		if (!hits(f, call, position))
			continue;
		if (f->left != GPUSIM_FOREVER && change_begin() == NVML_OK) {
			if (f->left > 0)
				f->left--;
			change_end();
		}
		for (uint32_t waited = 0; waited < f->delay && i < table->fault_count && strcmp(f->call, call) == 0; waited += 2)
			nanosleep(&step, NULL);
		return code;
	}
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlInit_v2(void)
{
	nvml_return result = NVML_OK;

	pthread_mutex_lock(&lock);
	if (users == 0)
		result = open_table();
	if (result == NVML_OK)
		users++;
	pthread_mutex_unlock(&lock);
	return result;
}

NVML_EXPORT nvml_return nvmlInit(void)
{
	return nvmlInit_v2();
}

NVML_EXPORT nvml_return nvmlInitWithFlags(unsigned int flags)
{
	(void)flags;
	return nvmlInit_v2();
}

NVML_EXPORT nvml_return nvmlShutdown(void)
{
	nvml_return result = NVML_UNINITIALIZED;

	pthread_mutex_lock(&lock);
	if (users > 0) {
		result = NVML_OK;
		if (--users == 0) {
			munmap(table, sizeof(struct gpusim_table));
			table = NULL;
			if (file >= 0)
				close(file);
			file = -1;
		}
	}
	pthread_mutex_unlock(&lock);
	return result;
}

NVML_EXPORT const char *nvmlErrorString(nvml_return code)
{
	switch (code) {
	case NVML_OK:
		return "Success";
	case NVML_UNINITIALIZED:
		return "Uninitialized";
	case NVML_INVALID_ARGUMENT:
		return "Invalid Argument";
	case NVML_NOT_SUPPORTED:
		return "Not Supported";
	case NVML_NO_PERMISSION:
		return "Insufficient Permissions";
	case NVML_NOT_FOUND:
		return "Not Found";
	case NVML_INSUFFICIENT_SIZE:
		return "Insufficient Size";
	case NVML_DRIVER_NOT_LOADED:
		return "Driver Not Loaded";
	case NVML_TIMEOUT:
		return "Timeout";
	case NVML_GPU_IS_LOST:
		return "GPU is lost";
	case NVML_RESET_REQUIRED:
		return "GPU requires reset";
	case NVML_IN_USE:
		return "In use by another client";
	case NVML_MEMORY:
		return "Insufficient Memory";
	case NVML_INSUFFICIENT_RESOURCES:
		return "Insufficient Resources";
	case NVML_LIB_RM_VERSION_MISMATCH:
		return "Driver/library version mismatch";
	case NVML_ARGUMENT_VERSION_MISMATCH:
		return "Argument version mismatch";
	default:
		return "Unknown Error";
	}
}

/* gpu_of returns the GPU that device is; NULL if it is none of the open table. */
struct gpusim_gpu *gpu_of(nvml_device device)
{
	const ptrdiff_t from = (char *)device - (char *)table->gpus;

	if (from < 0 || from >= (ptrdiff_t)(table->count * sizeof(struct gpusim_gpu)) ||
	    from % (ptrdiff_t)sizeof(struct gpusim_gpu) != 0)
		return NULL;
	return device;
}

nvml_return give(char *out, unsigned int size, const char *text)
{
	if (out == NULL)
		return NVML_INVALID_ARGUMENT;
	if (strlen(text) >= size)
		return NVML_INSUFFICIENT_SIZE;
	strcpy(out, text);
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlSystemGetDriverVersion(char *out, unsigned int size)
{
	REQUIRE_INIT();
	return give(out, size, table->driver);
}

NVML_EXPORT nvml_return nvmlSystemGetNVMLVersion(char *out, unsigned int size)
{
	REQUIRE_INIT();
	return give(out, size, table->nvml);
}

NVML_EXPORT nvml_return nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	REQUIRE_INIT();
	if (version == NULL)
		return NVML_INVALID_ARGUMENT;
	*version = table->cuda_version;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlSystemGetCudaDriverVersion(int *version)
{
	return nvmlSystemGetCudaDriverVersion_v2(version);
}

NVML_EXPORT nvml_return nvmlDeviceGetCount_v2(unsigned int *count)
{
	REQUIRE_INIT();
	if (count == NULL)
		return NVML_INVALID_ARGUMENT;
	*count = 0;
	for (unsigned int i = 0; i < table->count; i++)
		*count += !table->gpus[i].absent;
	return NVML_OK;
}

/* Indexes move up when a GPU is missing, as they do on a real machine. */
NVML_EXPORT nvml_return nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvml_device *device)
{
	REQUIRE_INIT();
	if (device == NULL)
		return NVML_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < table->count; i++) {
		if (table->gpus[i].absent || index-- > 0)
			continue;
		if (table->gpus[i].lost)
			return NVML_GPU_IS_LOST;
		*device = &table->gpus[i];
		return NVML_OK;
	}
	return NVML_INVALID_ARGUMENT;
}

/* found answers a search by a name: a lost GPU is not there to be asked. */
static nvml_return found(struct gpusim_gpu *gpu, nvml_device *device)
{
	if (gpu->lost)
		return NVML_GPU_IS_LOST;
	*device = gpu;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetHandleByUUID(const char *uuid, nvml_device *device)
{
	REQUIRE_INIT();
	if (uuid == NULL || device == NULL)
		return NVML_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < table->count; i++) {
		struct gpusim_gpu *gpu = &table->gpus[i];

		if (gpu->absent)
			continue;
		if (strcmp(gpu->uuid, uuid) == 0)
			return found(gpu, device);
		for (unsigned int m = 0; m < GPUSIM_MAX_INSTANCES; m++) {
			struct gpusim_instance *instance = &gpu->instances[m];

			if (instance->used && instance->ci_used && strcmp(instance->uuid, uuid) == 0) {
				*device = instance;
				return gpu->lost ? NVML_GPU_IS_LOST : NVML_OK;
			}
		}
	}
	return NVML_NOT_FOUND;
}

static void bus_id(const struct gpusim_gpu *gpu, char *out, size_t size)
{
	snprintf(out, size, "%08X:%02X:%02X.0", gpu->domain, gpu->bus, gpu->device);
}

NVML_EXPORT nvml_return nvmlDeviceGetHandleByPciBusId_v2(const char *wanted, nvml_device *device)
{
	char id[32];

	REQUIRE_INIT();
	if (wanted == NULL || device == NULL)
		return NVML_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < table->count; i++) {
		if (table->gpus[i].absent)
			continue;
		bus_id(&table->gpus[i], id, sizeof(id));
		/* the short form has four digits of domain */
		if (strcasecmp(id, wanted) == 0 || strcasecmp(id + 4, wanted) == 0)
			return found(&table->gpus[i], device);
	}
	return NVML_NOT_FOUND;
}

NVML_EXPORT nvml_return nvmlDeviceGetUUID(nvml_device device, char *out, unsigned int size)
{
	struct gpusim_gpu *gpu;

	if (table != NULL && mig_of(device) != NULL)
		return give(out, size, mig_of(device)->uuid);
	REQUIRE(gpu, device, out);
	return give(out, size, gpu->uuid);
}

NVML_EXPORT nvml_return nvmlDeviceGetName(nvml_device device, char *out, unsigned int size)
{
	struct gpusim_gpu *gpu;

	REQUIRE(gpu, device, out);
	return give(out, size, gpu->name);
}

NVML_EXPORT nvml_return nvmlDeviceGetIndex(nvml_device device, unsigned int *index)
{
	struct gpusim_gpu *gpu;

	REQUIRE(gpu, device, index);
	*index = (unsigned int)(gpu - table->gpus);
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetMinorNumber(nvml_device device, unsigned int *minor)
{
	struct gpusim_gpu *gpu;

	REQUIRE(gpu, device, minor);
	*minor = gpu->minor;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci_info *pci)
{
	struct gpusim_gpu *gpu;

	REQUIRE(gpu, device, pci);
	memset(pci, 0, sizeof(*pci));
	pci->domain = gpu->domain;
	pci->bus = gpu->bus;
	pci->device = gpu->device;
	pci->pci_device_id = gpu->pci_device_id;
	bus_id(gpu, pci->bus_id, sizeof(pci->bus_id));
	snprintf(pci->bus_id_legacy, sizeof(pci->bus_id_legacy), "%04X:%02X:%02X.0", gpu->domain & 0xffffu,
		 gpu->bus & 0xffu, gpu->device & 0xffu);
	return NVML_OK;
}

/* held is what is used of a GPU's memory. */
static uint64_t held(const struct gpusim_gpu *gpu)
{
	uint64_t sum = gpu->used;

	for (unsigned int i = 0; i < gpu->process_count && i < GPUSIM_MAX_PROCESSES; i++)
		sum += gpu->processes[i].bytes;
	return sum;
}

NVML_EXPORT nvml_return nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *memory)
{
	struct gpusim_gpu *gpu;

	REQUIRE(gpu, device, memory);
	memory->total = gpu->total;
	/* the first version has no field for what is reserved and counts it as used */
	memory->used = held(gpu) + gpu->reserved;
	memory->free = gpu->total - memory->used;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetMemoryInfo_v2(nvml_device device, struct nvml_memory_v2 *memory)
{
	struct gpusim_gpu *gpu;

	REQUIRE(gpu, device, memory);
	if (memory->version != NVML_MEMORY_V2)
		return NVML_ARGUMENT_VERSION_MISMATCH;
	memory->total = gpu->total;
	memory->reserved = gpu->reserved;
	memory->used = held(gpu);
	memory->free = gpu->total - gpu->reserved - memory->used;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetArchitecture(nvml_device device, unsigned int *architecture)
{
	struct gpusim_gpu *gpu;

	REQUIRE(gpu, device, architecture);
	*architecture = gpu->architecture;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetCudaComputeCapability(nvml_device device, int *major, int *minor)
{
	struct gpusim_gpu *gpu;

	REQUIRE(gpu, device, major);
	if (minor == NULL)
		return NVML_INVALID_ARGUMENT;
	*major = gpu->cc_major;
	*minor = gpu->cc_minor;
	return NVML_OK;
}

/* The nodes whose memory is nearest: one bit per NUMA node. */
NVML_EXPORT nvml_return nvmlDeviceGetMemoryAffinity(nvml_device device, unsigned int size, unsigned long *nodes,
						    unsigned int scope)
{
	struct gpusim_gpu *gpu;
	const unsigned int bits = 8 * sizeof(unsigned long);

	(void)scope;
	REQUIRE(gpu, device, nodes);
	if (gpu->numa < 0)
		return NVML_NOT_SUPPORTED;
	if ((unsigned int)gpu->numa / bits >= size)
		return NVML_INSUFFICIENT_SIZE;
	memset(nodes, 0, size * sizeof(*nodes));
	nodes[(unsigned int)gpu->numa / bits] |= 1ul << ((unsigned int)gpu->numa % bits);
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetBrand(nvml_device device, unsigned int *brand)
{
	struct gpusim_gpu *gpu;

	REQUIRE(gpu, device, brand);
	*brand = gpu->architecture <= NVML_ARCH_TURING ? NVML_BRAND_TESLA : NVML_BRAND_NVIDIA;
	return NVML_OK;
}

/* A number of thirteen digits that depends on the UUID only (FNV-1a). */
NVML_EXPORT nvml_return nvmlDeviceGetSerial(nvml_device device, char *out, unsigned int size)
{
	struct gpusim_gpu *gpu;
	uint64_t sum = 14695981039346656037u;
	char serial[16];

	REQUIRE(gpu, device, out);
	for (const char *c = gpu->uuid; *c != '\0'; c++)
		sum = (sum ^ (unsigned char)*c) * 1099511628211u;
	snprintf(serial, sizeof(serial), "%013llu", (unsigned long long)(sum % 10000000000000u));
	return give(out, size, serial);
}

NVML_EXPORT nvml_return nvmlDeviceGetNumaNodeId(nvml_device device, unsigned int *node)
{
	struct gpusim_gpu *gpu;

	/* it names a GPU that is a NUMA node itself, which none of ours is */
	REQUIRE(gpu, device, node);
	return NVML_NOT_SUPPORTED;
}

/* Mode 0 lets every process make a context. */
NVML_EXPORT nvml_return nvmlDeviceGetComputeMode(nvml_device device, unsigned int *mode)
{
	struct gpusim_gpu *gpu;

	REQUIRE(gpu, device, mode);
	*mode = 0;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetPersistenceMode(nvml_device device, unsigned int *mode)
{
	struct gpusim_gpu *gpu;

	REQUIRE(gpu, device, mode);
	*mode = 1;
	return NVML_OK;
}
