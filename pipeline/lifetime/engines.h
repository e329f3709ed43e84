/*
 * The engines of this build, and the choice of an engine for a context.
 */
#ifndef HARTSIFT_LIFETIME_ENGINES_H
#define HARTSIFT_LIFETIME_ENGINES_H

#include "pipeline/context/engine.h"

/* Opens the engine that options.device and HARTSIFT_DEVICE request: sets context->engine, and the CPU's stages, which a
   context on a device has too. HS_DEVICE_AUTO: opens the device if it is usable, else the CPU, and context->no_device
   has the reason. variant: as in hs_expert_options. On failure message has the reason. Statuses: HS_ERR_OPTION,
   HS_ERR_MEMORY, HS_ERR_NO_DEVICE, HS_ERR_THREAD. */
hs_status engine_choose(hs_context *context, const char *variant, char *message, size_t message_bytes);

/* Returns the number of usable devices; 0: reason says why. */
int32_t engine_count_devices(char *reason, size_t reason_bytes);

/* Lets a program that uses only this device start without the others; see engine.show_only. */
void engine_show_only(int32_t index);

/* Returns whether this build has an engine for devices. */
bool engine_device_is_built(void);

#endif
