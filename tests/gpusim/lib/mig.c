/* MIG: profiles, GPU instances and compute instances. A GPU instance has at
 * most one compute instance, which covers it whole; the real library allows
 * more, which none of our programs makes.
 */
#include <stdio.h>
#include <string.h>

#include "sim.h"

#define FULL_SLICES 7u

/* mig_of returns the instance that a MIG device handle is; NULL if it is none. */
struct gpusim_instance *mig_of(nvml_device device)
{
	for (unsigned int i = 0; i < table->count; i++)
		for (unsigned int m = 0; m < GPUSIM_MAX_INSTANCES; m++)
			if (device == &table->gpus[i].instances[m] && table->gpus[i].instances[m].ci_used)
				return device;
	return NULL;
}

/* owner returns the GPU that an instance lies on; NULL if it is none that exists. */
static struct gpusim_gpu *owner(const struct gpusim_instance *instance)
{
	for (unsigned int i = 0; i < table->count; i++)
		for (unsigned int m = 0; m < GPUSIM_MAX_INSTANCES; m++)
			if (instance == &table->gpus[i].instances[m] && instance->used)
				return &table->gpus[i];
	return NULL;
}

#define REQUIRE_INSTANCE(gpu, instance)                                                                               \
	do {                                                                                                           \
		nvml_return code_;                                                                                     \
		if (table == NULL)                                                                                     \
			return NVML_UNINITIALIZED;                                                                     \
		(gpu) = owner(instance);                                                                               \
		if ((gpu) == NULL)                                                                                     \
			return NVML_INVALID_ARGUMENT;                                                                  \
		if ((code_ = fault(__func__, gpu)) != NVML_OK)                                                         \
			return code_;                                                                                  \
		if ((gpu)->lost || (gpu)->absent)                                                                      \
			return NVML_GPU_IS_LOST;                                                                       \
	} while (0)

NVML_EXPORT nvml_return nvmlDeviceGetMigMode(nvml_device device, unsigned int *current, unsigned int *pending)
{
	struct gpusim_gpu *gpu;

	REQUIRE(gpu, device, current);
	if (pending == NULL)
		return NVML_INVALID_ARGUMENT;
	if (!gpu->mig_capable)
		return NVML_NOT_SUPPORTED;
	*current = *pending = gpu->mig_enabled;
	return NVML_OK;
}

/* The mode is changed at once, as on GPUs that need no reset for it. */
NVML_EXPORT nvml_return nvmlDeviceSetMigMode(nvml_device device, unsigned int mode, nvml_return *status)
{
	struct gpusim_gpu *gpu;
	nvml_return result;

	REQUIRE(gpu, device, status);
	if (mode > 1)
		return NVML_INVALID_ARGUMENT;
	if (!gpu->mig_capable)
		return NVML_NOT_SUPPORTED;
	if ((result = change_begin()) != NVML_OK)
		return result;
	*status = gpu->process_count > 0 ? NVML_IN_USE : NVML_OK;
	for (unsigned int m = 0; mode == 0 && m < GPUSIM_MAX_INSTANCES; m++)
		if (gpu->instances[m].used)
			*status = NVML_IN_USE;
	if (*status == NVML_OK)
		gpu->mig_enabled = mode;
	change_end();
	return NVML_OK;
}

/* Seven instances are what a GPU in MIG mode can be cut into; outside of it there are none. */
NVML_EXPORT nvml_return nvmlDeviceGetMaxMigDeviceCount(nvml_device device, unsigned int *count)
{
	struct gpusim_gpu *gpu;

	REQUIRE(gpu, device, count);
	*count = gpu->mig_enabled ? GPUSIM_MAX_INSTANCES : 0;
	return NVML_OK;
}

static struct gpusim_profile *by_kind(struct gpusim_gpu *gpu, unsigned int kind)
{
	for (unsigned int i = 0; i < gpu->profile_count && i < GPUSIM_MAX_PROFILES; i++)
		if (gpu->profiles[i].kind == kind)
			return &gpu->profiles[i];
	return NULL;
}

static struct gpusim_profile *by_id(struct gpusim_gpu *gpu, unsigned int id)
{
	for (unsigned int i = 0; i < gpu->profile_count && i < GPUSIM_MAX_PROFILES; i++)
		if (gpu->profiles[i].id == id)
			return &gpu->profiles[i];
	return NULL;
}

NVML_EXPORT nvml_return nvmlDeviceGetGpuInstanceProfileInfo(nvml_device device, unsigned int kind, struct nvml_profile *out)
{
	struct gpusim_gpu *gpu;
	const struct gpusim_profile *p;

	REQUIRE(gpu, device, out);
	if ((p = by_kind(gpu, kind)) == NULL)
		return NVML_NOT_SUPPORTED;
	memset(out, 0, sizeof(*out));
	out->id = p->id;
	out->slices = p->slices;
	out->instances = p->most;
	out->sms = p->sms;
	out->memory_mb = p->memory >> 20;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetGpuInstanceProfileInfoV(nvml_device device, unsigned int kind, struct nvml_profile_v2 *out)
{
	struct gpusim_gpu *gpu;
	const struct gpusim_profile *p;

	REQUIRE(gpu, device, out);
	if (out->version != NVML_PROFILE_V2)
		return NVML_ARGUMENT_VERSION_MISMATCH;
	if ((p = by_kind(gpu, kind)) == NULL)
		return NVML_NOT_SUPPORTED;
	memset(out, 0, sizeof(*out));
	out->version = NVML_PROFILE_V2;
	out->id = p->id;
	out->slices = p->slices;
	out->instances = p->most;
	out->sms = p->sms;
	out->memory_mb = p->memory >> 20;
	snprintf(out->name, sizeof(out->name), "MIG %s", p->name);
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvml_device device, unsigned int id,
								      struct nvml_placement *out, unsigned int *count)
{
	struct gpusim_gpu *gpu;
	const struct gpusim_profile *p;
	unsigned int n = 0;

	REQUIRE(gpu, device, count);
	if ((p = by_id(gpu, id)) == NULL)
		return NVML_NOT_SUPPORTED;
	for (unsigned int s = 0; s < 8; s++) {
		if (!(p->placements >> s & 1))
			continue;
		if (out != NULL && n < *count)
			out[n] = (struct nvml_placement){s, p->size};
		n++;
	}
	*count = n;
	return NVML_OK;
}

/* used_slices are the memory slices that instances hold, a bit each. */
static uint32_t used_slices(const struct gpusim_gpu *gpu)
{
	uint32_t used = 0;

	for (unsigned int m = 0; m < GPUSIM_MAX_INSTANCES; m++)
		if (gpu->instances[m].used)
			used |= ((1u << gpu->profiles[gpu->instances[m].profile].size) - 1) << gpu->instances[m].start;
	return used;
}

/* fits reports whether p may be made at start: multiprocessors are few, too. */
static int fits(const struct gpusim_gpu *gpu, const struct gpusim_profile *p, unsigned int start)
{
	unsigned int slices = p->slices, same = 0;

	for (unsigned int m = 0; m < GPUSIM_MAX_INSTANCES; m++) {
		if (!gpu->instances[m].used)
			continue;
		slices += gpu->profiles[gpu->instances[m].profile].slices;
		same += &gpu->profiles[gpu->instances[m].profile] == p;
	}
	return start < 8 && (p->placements >> start & 1) && slices <= FULL_SLICES && same < p->most &&
	       !(used_slices(gpu) & ((1u << p->size) - 1) << start);
}

static nvml_return create(struct gpusim_gpu *gpu, const struct gpusim_profile *p, unsigned int start, nvml_gpu_instance *out)
{
	if (!gpu->mig_enabled)
		return NVML_NOT_SUPPORTED;
	if (!fits(gpu, p, start))
		return NVML_INSUFFICIENT_RESOURCES;
	for (unsigned int m = 0; m < GPUSIM_MAX_INSTANCES; m++) {
		struct gpusim_instance *instance = &gpu->instances[m];

		if (instance->used)
			continue;
		memset(instance, 0, sizeof(*instance));
		instance->gi = m + 1; /* 0 is never given to a part of a GPU */
		instance->profile = (uint32_t)(p - gpu->profiles);
		instance->start = start;
		instance->used = 1;
		*out = instance;
		return NVML_OK;
	}
	return NVML_INSUFFICIENT_RESOURCES;
}

NVML_EXPORT nvml_return nvmlDeviceCreateGpuInstanceWithPlacement(nvml_device device, unsigned int id,
								 const struct nvml_placement *at, nvml_gpu_instance *out)
{
	struct gpusim_gpu *gpu;
	const struct gpusim_profile *p;
	nvml_return result;

	REQUIRE(gpu, device, out);
	if (at == NULL || (p = by_id(gpu, id)) == NULL || at->size != p->size)
		return NVML_INVALID_ARGUMENT;
	if ((result = change_begin()) != NVML_OK)
		return result;
	result = create(gpu, p, at->start, out);
	change_end();
	return result;
}

NVML_EXPORT nvml_return nvmlGpuInstanceDestroy(nvml_gpu_instance instance)
{
	struct gpusim_gpu *gpu;
	nvml_return result;

	REQUIRE_INSTANCE(gpu, instance);
	if ((result = change_begin()) != NVML_OK)
		return result;
	if (instance->ci_used)
		result = NVML_IN_USE;
	else
		instance->used = 0;
	change_end();
	return result;
}

NVML_EXPORT nvml_return nvmlDeviceGetGpuInstances(nvml_device device, unsigned int id, nvml_gpu_instance *out, unsigned int *count)
{
	struct gpusim_gpu *gpu;
	unsigned int n = 0;

	REQUIRE(gpu, device, out);
	if (count == NULL)
		return NVML_INVALID_ARGUMENT;
	for (unsigned int m = 0; m < GPUSIM_MAX_INSTANCES; m++)
		if (gpu->instances[m].used && gpu->profiles[gpu->instances[m].profile].id == id)
			out[n++] = &gpu->instances[m];
	*count = n;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetGpuInstanceById(nvml_device device, unsigned int gi, nvml_gpu_instance *out)
{
	struct gpusim_gpu *gpu;

	REQUIRE(gpu, device, out);
	for (unsigned int m = 0; m < GPUSIM_MAX_INSTANCES; m++) {
		if (gpu->instances[m].used && gpu->instances[m].gi == gi) {
			*out = &gpu->instances[m];
			return NVML_OK;
		}
	}
	return NVML_NOT_FOUND;
}

NVML_EXPORT nvml_return nvmlGpuInstanceGetInfo(nvml_gpu_instance instance, struct nvml_gpu_instance_info *out)
{
	struct gpusim_gpu *gpu;
	const struct gpusim_profile *p;

	REQUIRE_INSTANCE(gpu, instance);
	if (out == NULL)
		return NVML_INVALID_ARGUMENT;
	p = &gpu->profiles[instance->profile];
	*out = (struct nvml_gpu_instance_info){gpu, instance->gi, p->id, {instance->start, p->size}};
	return NVML_OK;
}

/* Profiles of compute instances are numbered by their slices: 1, 2, 3, 4, 7, 8, 6. */
static const unsigned int compute_slices[] = {1, 2, 3, 4, 7, 8, 6};

NVML_EXPORT nvml_return nvmlGpuInstanceGetComputeInstanceProfileInfo(nvml_gpu_instance instance, unsigned int kind,
								     unsigned int engines, struct nvml_compute_profile *out)
{
	struct gpusim_gpu *gpu;
	const struct gpusim_profile *p;

	REQUIRE_INSTANCE(gpu, instance);
	if (out == NULL || engines != 0)
		return NVML_INVALID_ARGUMENT;
	p = &gpu->profiles[instance->profile];
	if (kind >= sizeof(compute_slices) / sizeof(compute_slices[0]) || compute_slices[kind] != p->slices)
		return NVML_NOT_SUPPORTED;
	memset(out, 0, sizeof(*out));
	out->id = kind;
	out->slices = p->slices;
	out->instances = 1;
	out->sms = p->sms;
	return NVML_OK;
}

/* name_mig makes a UUID that depends on the GPU's and on how many were made there. */
static void name_mig(struct gpusim_gpu *gpu, struct gpusim_instance *instance)
{
	uint64_t sum = 14695981039346656037u;

	gpu->made++;
	for (const char *c = gpu->uuid; *c != '\0'; c++)
		sum = (sum ^ (unsigned char)*c) * 1099511628211u;
	sum = (sum ^ gpu->made) * 1099511628211u;
	snprintf(instance->uuid, sizeof(instance->uuid), "MIG-%08x-%04x-%04x-%04x-%012x", (unsigned int)(sum >> 32),
		 (unsigned int)(sum >> 16 & 0xffff), (unsigned int)(sum & 0xffff), gpu->bus & 0xffff, gpu->made);
}

NVML_EXPORT nvml_return nvmlGpuInstanceCreateComputeInstance(nvml_gpu_instance instance, unsigned int kind, nvml_compute_instance *out)
{
	struct gpusim_gpu *gpu;
	nvml_return result;

	REQUIRE_INSTANCE(gpu, instance);
	if (out == NULL || kind >= sizeof(compute_slices) / sizeof(compute_slices[0]) ||
	    compute_slices[kind] != gpu->profiles[instance->profile].slices)
		return NVML_INVALID_ARGUMENT;
	if ((result = change_begin()) != NVML_OK)
		return result;
	if (instance->ci_used) {
		result = NVML_INSUFFICIENT_RESOURCES;
	} else {
		name_mig(gpu, instance);
		instance->ci = 0;
		instance->ci_profile = kind;
		instance->ci_used = 1;
		*out = instance;
	}
	change_end();
	return result;
}

NVML_EXPORT nvml_return nvmlComputeInstanceDestroy(nvml_compute_instance instance)
{
	struct gpusim_gpu *gpu;
	nvml_return result;

	REQUIRE_INSTANCE(gpu, instance);
	if (!instance->ci_used)
		return NVML_INVALID_ARGUMENT;
	for (unsigned int i = 0; i < gpu->process_count && i < GPUSIM_MAX_PROCESSES; i++)
		if (gpu->processes[i].gi == instance->gi)
			return NVML_IN_USE;
	if ((result = change_begin()) != NVML_OK)
		return result;
	instance->ci_used = 0;
	change_end();
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlGpuInstanceGetComputeInstances(nvml_gpu_instance instance, unsigned int kind,
							   nvml_compute_instance *out, unsigned int *count)
{
	struct gpusim_gpu *gpu;

	REQUIRE_INSTANCE(gpu, instance);
	if (out == NULL || count == NULL)
		return NVML_INVALID_ARGUMENT;
	*count = 0;
	if (instance->ci_used && instance->ci_profile == kind)
		out[(*count)++] = instance;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlComputeInstanceGetInfo_v2(nvml_compute_instance instance, struct nvml_compute_instance_info *out)
{
	struct gpusim_gpu *gpu;

	REQUIRE_INSTANCE(gpu, instance);
	if (out == NULL || !instance->ci_used)
		return NVML_INVALID_ARGUMENT;
	*out = (struct nvml_compute_instance_info){
		gpu, instance, instance->ci, instance->ci_profile, {0, gpu->profiles[instance->profile].slices}};
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceIsMigDeviceHandle(nvml_device device, unsigned int *is)
{
	REQUIRE_INIT();
	if (is == NULL)
		return NVML_INVALID_ARGUMENT;
	*is = mig_of(device) != NULL;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetMigDeviceHandleByIndex(nvml_device device, unsigned int index, nvml_device *out)
{
	struct gpusim_gpu *gpu;

	REQUIRE(gpu, device, out);
	if (index >= GPUSIM_MAX_INSTANCES)
		return NVML_INVALID_ARGUMENT;
	for (unsigned int m = 0; m < GPUSIM_MAX_INSTANCES; m++) {
		if (!gpu->instances[m].used || !gpu->instances[m].ci_used || index-- > 0)
			continue;
		*out = &gpu->instances[m];
		return NVML_OK;
	}
	return NVML_NOT_FOUND;
}

NVML_EXPORT nvml_return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvml_device device, nvml_device *out)
{
	REQUIRE_INIT();
	if (out == NULL || mig_of(device) == NULL)
		return NVML_INVALID_ARGUMENT;
	*out = owner(device);
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetGpuInstanceId(nvml_device device, unsigned int *id)
{
	REQUIRE_INIT();
	if (id == NULL || mig_of(device) == NULL)
		return NVML_INVALID_ARGUMENT;
	*id = mig_of(device)->gi;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetComputeInstanceId(nvml_device device, unsigned int *id)
{
	REQUIRE_INIT();
	if (id == NULL || mig_of(device) == NULL)
		return NVML_INVALID_ARGUMENT;
	*id = mig_of(device)->ci;
	return NVML_OK;
}
