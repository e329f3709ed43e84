/*
 * Matching on a context's CUDA device. In a build without CUDA the same functions fail and say so.
 *
 * Device memory and pinned host memory are kept in context->cuda_match and grow to the largest request. All calls block.
 */
#ifndef HARTSIFT_DEVICE_CUDA_MATCH_H
#define HARTSIFT_DEVICE_CUDA_MATCH_H

#include "cuda/device/stream.h"
#include "pipeline/context/context.h"
#include "pipeline/context/match_request.h"

/* Where the lists lie, and the stream in whose order they are complete (null: the context's). */
typedef struct cuda_match_place {
  cuda_stream stream;
  bool on_device; /* keypoints and descriptors of the request are device memory; else host memory */
} cuda_match_place;

/* Fills forward [first.count] and, unless null, backward [second.count] in host memory. Either list may be empty.
   Statuses: HS_ERR_LIMIT, HS_ERR_MEMORY, HS_ERR_DEVICE; HS_ERR_NO_DEVICE without CUDA. */
hs_status cuda_match_run(hs_context *context, const match_request *request, const cuda_match_place *place,
                         match_nearest *forward, match_nearest *backward);

/* The pairs of a request, chosen on the device. *pairs: in host memory of the context until its next matching. Statuses as
   cuda_match_run. */
hs_status cuda_match_pairs(hs_context *context, const match_request *request, const cuda_match_place *place,
                           const match_pair **pairs, size_t *count);

/* Frees context->cuda_match; before cuda_frame_destroy. */
void cuda_match_destroy(hs_context *context);

/* Bytes that matching holds on the device, and pinned on the host. */
void cuda_match_memory(const hs_context *context, uint64_t *device_bytes, uint64_t *pinned_bytes);

#endif
