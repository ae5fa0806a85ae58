/* A stand-in for libnvidia-ml.so.1 that answers from a table file.
 *
 * The table is FAIRSHARD_GPUSIM_TABLE, or gpusim.table beside this library. It
 * is mapped read-only at nvmlInit and unmapped with the last nvmlShutdown; a
 * device handle is the address of its record. Calls are thread-safe: the lock
 * guards the count of initialisations, records are only read.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nvml.h"
#include "table.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int users;
static const struct gpusim_table *table;

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
	int file;
	void *memory;

	if (!table_path(path, sizeof(path)))
		return NVML_DRIVER_NOT_LOADED;
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return NVML_DRIVER_NOT_LOADED;
	if (fstat(file, &info) != 0 || info.st_size != (off_t)sizeof(struct gpusim_table)) {
		close(file);
		return NVML_LIB_RM_VERSION_MISMATCH;
	}
	memory = mmap(NULL, sizeof(struct gpusim_table), PROT_READ, MAP_SHARED, file, 0);
	close(file);
	if (memory == MAP_FAILED)
		return NVML_DRIVER_NOT_LOADED;
	table = memory;
	if (memcmp(table->magic, GPUSIM_MAGIC, sizeof(table->magic)) != 0 || table->version != GPUSIM_VERSION ||
	    table->count > GPUSIM_MAX_GPUS) {
		munmap(memory, sizeof(struct gpusim_table));
		table = NULL;
		return NVML_LIB_RM_VERSION_MISMATCH;
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
			munmap((void *)table, sizeof(struct gpusim_table));
			table = NULL;
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
	case NVML_NOT_FOUND:
		return "Not Found";
	case NVML_INSUFFICIENT_SIZE:
		return "Insufficient Size";
	case NVML_DRIVER_NOT_LOADED:
		return "Driver Not Loaded";
	case NVML_GPU_IS_LOST:
		return "GPU is lost";
	case NVML_LIB_RM_VERSION_MISMATCH:
		return "Driver/library version mismatch";
	case NVML_ARGUMENT_VERSION_MISMATCH:
		return "Argument version mismatch";
	default:
		return "Unknown Error";
	}
}

/* valid reports whether device is a handle of the open table. */
static int valid(nvml_device device)
{
	return device >= table->gpus && device < table->gpus + table->count &&
	       ((const char *)device - (const char *)table->gpus) % (ptrdiff_t)sizeof(*device) == 0;
}

#define REQUIRE_INIT()                                                                                                \
	do {                                                                                                           \
		if (table == NULL)                                                                                     \
			return NVML_UNINITIALIZED;                                                                     \
	} while (0)

#define REQUIRE(device, out)                                                                                          \
	do {                                                                                                           \
		REQUIRE_INIT();                                                                                        \
		if (!valid(device) || (out) == NULL)                                                                   \
			return NVML_INVALID_ARGUMENT;                                                                  \
		if ((device)->lost)                                                                                    \
			return NVML_GPU_IS_LOST;                                                                       \
	} while (0)

static nvml_return give(char *out, unsigned int size, const char *text)
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
	*count = table->count;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvml_device *device)
{
	REQUIRE_INIT();
	if (device == NULL || index >= table->count)
		return NVML_INVALID_ARGUMENT;
	if (table->gpus[index].lost)
		return NVML_GPU_IS_LOST;
	*device = &table->gpus[index];
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetHandleByUUID(const char *uuid, nvml_device *device)
{
	REQUIRE_INIT();
	if (uuid == NULL || device == NULL)
		return NVML_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < table->count; i++) {
		if (strcmp(table->gpus[i].uuid, uuid) == 0) {
			*device = &table->gpus[i];
			return NVML_OK;
		}
	}
	return NVML_NOT_FOUND;
}

static void bus_id(nvml_device device, char *out, size_t size)
{
	snprintf(out, size, "%08X:%02X:%02X.0", device->domain, device->bus, device->device);
}

NVML_EXPORT nvml_return nvmlDeviceGetHandleByPciBusId_v2(const char *wanted, nvml_device *device)
{
	char id[32];

	REQUIRE_INIT();
	if (wanted == NULL || device == NULL)
		return NVML_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < table->count; i++) {
		bus_id(&table->gpus[i], id, sizeof(id));
		/* the short form has four digits of domain */
		if (strcasecmp(id, wanted) == 0 || strcasecmp(id + 4, wanted) == 0) {
			*device = &table->gpus[i];
			return NVML_OK;
		}
	}
	return NVML_NOT_FOUND;
}

NVML_EXPORT nvml_return nvmlDeviceGetUUID(nvml_device device, char *out, unsigned int size)
{
	REQUIRE(device, out);
	return give(out, size, device->uuid);
}

NVML_EXPORT nvml_return nvmlDeviceGetName(nvml_device device, char *out, unsigned int size)
{
	REQUIRE(device, out);
	return give(out, size, device->name);
}

NVML_EXPORT nvml_return nvmlDeviceGetIndex(nvml_device device, unsigned int *index)
{
	REQUIRE(device, index);
	*index = (unsigned int)(device - table->gpus);
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetMinorNumber(nvml_device device, unsigned int *minor)
{
	REQUIRE(device, minor);
	*minor = device->minor;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci_info *pci)
{
	REQUIRE(device, pci);
	memset(pci, 0, sizeof(*pci));
	pci->domain = device->domain;
	pci->bus = device->bus;
	pci->device = device->device;
	pci->pci_device_id = device->pci_device_id;
	bus_id(device, pci->bus_id, sizeof(pci->bus_id));
	snprintf(pci->bus_id_legacy, sizeof(pci->bus_id_legacy), "%04X:%02X:%02X.0", device->domain & 0xffffu,
		 device->bus & 0xffu, device->device & 0xffu);
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *memory)
{
	REQUIRE(device, memory);
	memory->total = device->total;
	/* the first version has no field for what is reserved and counts it as used */
	memory->used = device->used + device->reserved;
	memory->free = device->total - memory->used;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetMemoryInfo_v2(nvml_device device, struct nvml_memory_v2 *memory)
{
	REQUIRE(device, memory);
	if (memory->version != NVML_MEMORY_V2)
		return NVML_ARGUMENT_VERSION_MISMATCH;
	memory->total = device->total;
	memory->reserved = device->reserved;
	memory->used = device->used;
	memory->free = device->total - device->reserved - device->used;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetArchitecture(nvml_device device, unsigned int *architecture)
{
	REQUIRE(device, architecture);
	*architecture = device->architecture;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetCudaComputeCapability(nvml_device device, int *major, int *minor)
{
	REQUIRE(device, major);
	if (minor == NULL)
		return NVML_INVALID_ARGUMENT;
	*major = device->cc_major;
	*minor = device->cc_minor;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetMigMode(nvml_device device, unsigned int *current, unsigned int *pending)
{
	REQUIRE(device, current);
	if (pending == NULL)
		return NVML_INVALID_ARGUMENT;
	if (!device->mig_capable)
		return NVML_NOT_SUPPORTED;
	*current = *pending = device->mig_enabled;
	return NVML_OK;
}

/* The nodes whose memory is nearest: one bit per NUMA node. */
NVML_EXPORT nvml_return nvmlDeviceGetMemoryAffinity(nvml_device device, unsigned int size, unsigned long *nodes,
						    unsigned int scope)
{
	const unsigned int bits = 8 * sizeof(unsigned long);

	(void)scope;
	REQUIRE(device, nodes);
	if (device->numa < 0)
		return NVML_NOT_SUPPORTED;
	if ((unsigned int)device->numa / bits >= size)
		return NVML_INSUFFICIENT_SIZE;
	memset(nodes, 0, size * sizeof(*nodes));
	nodes[(unsigned int)device->numa / bits] |= 1ul << ((unsigned int)device->numa % bits);
	return NVML_OK;
}

/* Seven instances are what a GPU in MIG mode can be cut into; outside of it there are none. */
NVML_EXPORT nvml_return nvmlDeviceGetMaxMigDeviceCount(nvml_device device, unsigned int *count)
{
	REQUIRE(device, count);
	*count = device->mig_enabled ? 7 : 0;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetBrand(nvml_device device, unsigned int *brand)
{
	REQUIRE(device, brand);
	*brand = device->architecture <= NVML_ARCH_TURING ? NVML_BRAND_TESLA : NVML_BRAND_NVIDIA;
	return NVML_OK;
}

/* A number of thirteen digits that depends on the UUID only (FNV-1a). */
NVML_EXPORT nvml_return nvmlDeviceGetSerial(nvml_device device, char *out, unsigned int size)
{
	uint64_t sum = 14695981039346656037u;
	char serial[16];

	REQUIRE(device, out);
	for (const char *c = device->uuid; *c != '\0'; c++)
		sum = (sum ^ (unsigned char)*c) * 1099511628211u;
	snprintf(serial, sizeof(serial), "%013llu", (unsigned long long)(sum % 10000000000000u));
	return give(out, size, serial);
}

NVML_EXPORT nvml_return nvmlDeviceGetNumaNodeId(nvml_device device, unsigned int *node)
{
	/* it names a GPU that is a NUMA node itself, which none of ours is */
	REQUIRE(device, node);
	return NVML_NOT_SUPPORTED;
}

/* Mode 0 lets every process make a context. */
NVML_EXPORT nvml_return nvmlDeviceGetComputeMode(nvml_device device, unsigned int *mode)
{
	REQUIRE(device, mode);
	*mode = 0;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetPersistenceMode(nvml_device device, unsigned int *mode)
{
	REQUIRE(device, mode);
	*mode = 1;
	return NVML_OK;
}
