/*
 * The engines of this build, and the choice of one for a context.
 */
#ifndef HARTSIFT_LIFETIME_ENGINES_H
#define HARTSIFT_LIFETIME_ENGINES_H

#include "pipeline/context/engine.h"

/* Opens the engine that options.device and HARTSIFT_DEVICE ask for: sets context->engine, and the CPU's stages, which a
   context on a device also has. HS_DEVICE_AUTO: opens the device if it is usable, else the CPU; context->no_device then
   says why. variant: as in hs_options. On failure message says why. Statuses: HS_ERR_OPTION, HS_ERR_MEMORY,
   HS_ERR_NO_DEVICE, HS_ERR_THREAD. */
hs_status engine_choose(hs_context *context, const char *variant, char *message, size_t message_bytes);

/* Returns how many devices are usable; 0: reason says why. */
int32_t engine_count_devices(char *reason, size_t reason_bytes);

/* Returns whether this build has an engine for devices at all. */
bool engine_device_is_built(void);

#endif
