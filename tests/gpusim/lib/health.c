/* What tells how a GPU is: events, error counters, field values, processes. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim.h"

/* An event set remembers where it is in the table's ring and what it wants. */
struct event_set {
	uint64_t next;
	uint64_t types[GPUSIM_MAX_GPUS];
};

NVML_EXPORT nvml_return nvmlEventSetCreate(struct event_set **out)
{
	REQUIRE_INIT();
	if (out == NULL)
		return NVML_INVALID_ARGUMENT;
	if ((*out = calloc(1, sizeof(**out))) == NULL)
		return NVML_MEMORY;
	(*out)->next = table->event_count;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlEventSetFree(struct event_set *set)
{
	REQUIRE_INIT();
	free(set);
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetSupportedEventTypes(nvml_device device, unsigned long long *types)
{
	struct gpusim_gpu *gpu;

	REQUIRE(gpu, device, types);
	*types = NVML_EVENT_ALL;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceRegisterEvents(nvml_device device, unsigned long long types, struct event_set *set)
{
	struct gpusim_gpu *gpu;

	REQUIRE(gpu, device, set);
	if (types & ~NVML_EVENT_ALL)
		return NVML_NOT_SUPPORTED;
	set->types[gpu - table->gpus] |= types;
	return NVML_OK;
}

/* next_event hands out the first event that the set wants; 0 if there is none. */
static int next_event(struct event_set *set, struct nvml_event *out)
{
	if (table->event_count > set->next + GPUSIM_MAX_EVENTS)
		set->next = table->event_count - GPUSIM_MAX_EVENTS; /* too late for the older ones */
	while (set->next < table->event_count) {
		const struct gpusim_event *e = &table->events[set->next++ % GPUSIM_MAX_EVENTS];

		if (e->gpu < table->count && set->types[e->gpu] & e->type) {
			*out = (struct nvml_event){&table->gpus[e->gpu], e->type, e->data, e->gi, e->ci};
			return 1;
		}
	}
	return 0;
}

NVML_EXPORT nvml_return nvmlEventSetWait_v2(struct event_set *set, struct nvml_event *out, unsigned int timeout)
{
	const struct timespec step = {0, 2000000};

	REQUIRE_INIT();
	if (set == NULL || out == NULL)
		return NVML_INVALID_ARGUMENT;
	for (unsigned int waited = 0;; waited += 2) {
		if (next_event(set, out))
			return NVML_OK;
		if (waited >= timeout)
			return NVML_TIMEOUT;
		nanosleep(&step, NULL);
	}
}

NVML_EXPORT nvml_return nvmlDeviceGetFieldValues(nvml_device device, int count, struct nvml_field *values)
{
	struct gpusim_gpu *gpu;

	REQUIRE(gpu, device, values);
	for (int i = 0; i < count; i++) {
		values[i].result = NVML_NOT_SUPPORTED;
		if (values[i].id != NVML_FIELD_RECOVERY_ACTION)
			continue;
		values[i].result = NVML_OK;
		values[i].type = NVML_VALUE_UNSIGNED_INT;
		values[i].value.ull = gpu->recovery;
	}
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetRemappedRows(nvml_device device, unsigned int *correctable, unsigned int *uncorrectable,
						  unsigned int *pending, unsigned int *failed)
{
	struct gpusim_gpu *gpu;

	REQUIRE(gpu, device, correctable);
	if (uncorrectable == NULL || pending == NULL || failed == NULL)
		return NVML_INVALID_ARGUMENT;
	*correctable = gpu->remap_correctable;
	*uncorrectable = gpu->remap_uncorrectable;
	*pending = gpu->remap_pending;
	*failed = gpu->remap_failed;
	return NVML_OK;
}

/* Type 1 is uncorrected, counter 0 since the last reset, 1 ever; corrected errors are not simulated. */
NVML_EXPORT nvml_return nvmlDeviceGetTotalEccErrors(nvml_device device, unsigned int type, unsigned int counter, unsigned long long *count)
{
	struct gpusim_gpu *gpu;

	REQUIRE(gpu, device, count);
	if (type > 1 || counter > 1)
		return NVML_INVALID_ARGUMENT;
	*count = type == 0 ? 0 : counter == 0 ? gpu->ecc_volatile : gpu->ecc_aggregate;
	return NVML_OK;
}

NVML_EXPORT nvml_return nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned int *count, struct nvml_process *out)
{
	struct gpusim_gpu *gpu;
	unsigned int n, room;

	REQUIRE(gpu, device, count);
	room = *count;
	*count = n = gpu->process_count < GPUSIM_MAX_PROCESSES ? gpu->process_count : GPUSIM_MAX_PROCESSES;
	if (n == 0)
		return NVML_OK;
	if (out == NULL || room < n)
		return NVML_INSUFFICIENT_SIZE;
	for (unsigned int i = 0; i < n; i++) {
		const struct gpusim_process *p = &gpu->processes[i];

		out[i] = (struct nvml_process){p->pid, p->bytes, p->gi, p->ci};
	}
	return NVML_OK;
}
