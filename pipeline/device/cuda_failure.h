/*
 * The message for a failed call of a context's device: the step that failed, and CUDA's reason or, where the device's
 * memory is full, how much was needed and how much is free.
 */
#ifndef HARTSIFT_DEVICE_CUDA_FAILURE_H
#define HARTSIFT_DEVICE_CUDA_FAILURE_H

#include "pipeline/context/context.h"

struct cuda_state;

/* Records the failure and returns its status: HS_ERR_MEMORY, HS_ERR_DEVICE or, for STAGE_OVERFLOW, HS_ERR_LIMIT. */
hs_status cuda_failure(hs_context *context, stage_status status, const char *what);

/* The same where `needed` bytes of device memory were asked for, for `what`. */
hs_status cuda_memory_failure(hs_context *context, stage_status status, const char *what, size_t needed);

/* That the device's memory is full, as device_reason_memory has it. */
void cuda_memory_reason(const struct cuda_state *state, const char *what, size_t needed, char *reason, size_t bytes);

#endif
