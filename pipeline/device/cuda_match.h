/*
 * Matching on a context's CUDA device.
 *
 * Device memory and pinned host memory are kept in cuda_state.matching and grow to the largest request. All calls block.
 */
#ifndef HARTSIFT_DEVICE_CUDA_MATCH_H
#define HARTSIFT_DEVICE_CUDA_MATCH_H

#include "cuda/runtime/device.h"
#include "pipeline/context/engine.h"

/* Fills forward [first.count] and, unless null, backward [second.count] in host memory. Either list may be empty.
   Statuses: HS_ERR_LIMIT, HS_ERR_MEMORY, HS_ERR_DEVICE. */
hs_status cuda_match_run(hs_context *context, const match_request *request, const match_placement *place,
                         match_nearest *forward, match_nearest *backward);

/* The pairs of a request, chosen on the device. *pairs: in host memory of the context until its next matching. Statuses as
   cuda_match_run. */
hs_status cuda_match_pairs(hs_context *context, const match_request *request, const match_placement *place,
                           const match_pair **pairs, size_t *count);

/* Frees cuda_state.matching. */
void cuda_match_destroy(hs_context *context);

struct cuda_state;
/* Adds the bytes that matching holds on the device, and pinned on the host. */
void cuda_match_memory(const struct cuda_state *state, uint64_t *device_bytes, uint64_t *pinned_bytes);

#endif
