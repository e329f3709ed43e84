/* Matching on a context's CUDA device; see match_cuda.h. */
#include "pipeline/match_cuda.h"

hs_status match_cuda_run(hs_context *c, const match_request *request, const match_cuda_place *place,
                         match_nearest *forward, match_nearest *backward) {
  (void)request;
  (void)place;
  (void)forward;
  (void)backward;
  return CONTEXT_FAIL(c, HS_ERR_NO_DEVICE, "this build has no matching on CUDA devices");
}

void match_cuda_destroy(hs_context *c) { (void)c; }

void match_cuda_memory(const hs_context *c, uint64_t *device_bytes, uint64_t *pinned_bytes) {
  (void)c;
  *device_bytes = *pinned_bytes = 0;
}
