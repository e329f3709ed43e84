/* A failure of the device as a context's. */
#include "pipeline/device/cuda_state.h"

hs_status cuda_failure(hs_context *c, stage_status st, const char *what) {
  if (st == STAGE_OVERFLOW) return CONTEXT_FAIL(c, HS_ERR_LIMIT, "%s: too large for a grid of the device", what);
  const char *why = device_error_text();
  if (st == STAGE_OUT_OF_MEMORY) return CONTEXT_FAIL(c, HS_ERR_MEMORY, "%s: %s", what, why);
  return CONTEXT_FAIL(c, HS_ERR_DEVICE, "%s: %s", what, why);
}
