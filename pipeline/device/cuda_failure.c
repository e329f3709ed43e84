/* A failed call of the device as the context's last error. */
#include "pipeline/device/cuda_failure.h"

#include "cuda/runtime/device.h"
#include "pipeline/device/cuda_state.h"

void cuda_memory_reason(const struct cuda_state *s, const char *what, size_t needed, char *reason, size_t bytes) {
  device_answer a = {.index = s->device, .name = s->info.name};
  int32_t previous = -1;
  if (device_enter(s->device, &previous) == STAGE_OK) (void)device_memory(&a.free_bytes, &a.memory_bytes);
  device_leave(previous);
  device_reason_memory(&a, what, needed, reason, bytes);
}

hs_status cuda_failure(hs_context *c, stage_status st, const char *what) {
  if (st == STAGE_OVERFLOW) return CONTEXT_FAIL(c, HS_ERR_LIMIT, "%s: too large for a grid of the device", what);
  const char *why = device_error_text();
  if (st == STAGE_OUT_OF_MEMORY) return CONTEXT_FAIL(c, HS_ERR_MEMORY, "%s: %s", what, why);
  return CONTEXT_FAIL(c, HS_ERR_DEVICE, "CUDA device %d (%s), %s: %s", cuda_of(c)->device, cuda_of(c)->info.name, what,
                      why);
}

hs_status cuda_memory_failure(hs_context *c, stage_status st, const char *what, size_t needed) {
  char reason[ERROR_TEXT_BYTES / 2];
  if (st != STAGE_OUT_OF_MEMORY) return cuda_failure(c, st, what);
  (void)device_error_text(); /* clears it */
  cuda_memory_reason(cuda_of(c), what, needed, reason, sizeof reason);
  return CONTEXT_FAIL(c, HS_ERR_MEMORY, "CUDA device %d: %s", cuda_of(c)->device, reason);
}
