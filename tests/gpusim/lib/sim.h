/* What the parts of the library share. */
#ifndef GPUSIM_SIM_H
#define GPUSIM_SIM_H

#include "nvml.h"
#include "table.h"

extern struct gpusim_table *table; /* NULL while nobody has initialised */

struct gpusim_gpu *gpu_of(nvml_device device);
struct gpusim_instance *mig_of(nvml_device device);
nvml_return fault(const char *call, const struct gpusim_gpu *gpu);
nvml_return give(char *out, unsigned int size, const char *text);
nvml_return change_begin(void);
void change_end(void);

#define REQUIRE_INIT()                                                                                                \
	do {                                                                                                           \
		nvml_return code_;                                                                                     \
		if (table == NULL)                                                                                     \
			return NVML_UNINITIALIZED;                                                                     \
		if ((code_ = fault(__func__, NULL)) != NVML_OK)                                                        \
			return code_;                                                                                  \
	} while (0)

/* REQUIRE sets gpu to what device is, or returns why it cannot be asked. */
#define REQUIRE(gpu, device, out)                                                                                     \
	do {                                                                                                           \
		nvml_return code_;                                                                                     \
		if (table == NULL)                                                                                     \
			return NVML_UNINITIALIZED;                                                                     \
		(gpu) = gpu_of(device);                                                                                \
		if ((gpu) == NULL || (out) == NULL)                                                                    \
			return NVML_INVALID_ARGUMENT;                                                                  \
		if ((code_ = fault(__func__, gpu)) != NVML_OK)                                                         \
			return code_;                                                                                  \
		if ((gpu)->lost || (gpu)->absent)                                                                      \
			return NVML_GPU_IS_LOST;                                                                       \
	} while (0)

#endif
