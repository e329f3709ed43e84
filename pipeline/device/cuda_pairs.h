/*
 * Many pairs of images matched on a context's CUDA device: images that stay there, and batches of pairs in turn.
 *
 * Called from two threads at most: one brings and drops images, one runs batches; each has a stream of its own and wraps
 * its calls in device_enter and device_leave. What goes wrong is in device_error_text() of the calling thread.
 */
#ifndef HARTSIFT_DEVICE_CUDA_PAIRS_H
#define HARTSIFT_DEVICE_CUDA_PAIRS_H

#include "pipeline/context/engine.h"

/* Device memory that may be taken now: half of what is free. 0: it cannot be told. */
uint64_t cuda_pairs_free_bytes(const hs_context *context);

/* batch_bytes: device memory of each batch; half as much is pinned on the host. message: why it failed. Statuses:
   HS_ERR_MEMORY, HS_ERR_DEVICE. */
hs_status cuda_pairs_open(hs_context *context, uint64_t batch_bytes, pair_matcher **pairs, char *message,
                          size_t message_bytes);
void cuda_pairs_close(pair_matcher *pairs);

/* Bytes on the device of an image, and of one pair in a batch. */
uint64_t cuda_pairs_image_bytes(size_t count);
uint64_t cuda_pairs_pair_bytes(size_t first_count, size_t second_count);

/* Makes the calling thread one of this device's. */
stage_status cuda_pairs_enter(const pair_matcher *pairs, int32_t *previous);
void cuda_pairs_leave(int32_t previous);

/* Copies 8-bit descriptors to the device and waits for them. */
stage_status cuda_pairs_bring(pair_matcher *pairs, const void *descriptors, uint32_t count, device_descriptors **image);
void cuda_pairs_drop(pair_matcher *pairs, device_descriptors *image);

/* Begins to match count pairs (1..PAIRS_PER_BATCH) of together at most batch_bytes, as batch number `batch`, which
   must not be in flight. */
stage_status cuda_pairs_begin(pair_matcher *pairs, int32_t batch, const descriptor_pair *images, uint32_t count,
                              const match_limits *limits, bool mutual);
/* Waits for it. */
stage_status cuda_pairs_finish(pair_matcher *pairs, int32_t batch);
/* The matches of one of its pairs, valid until the batch begins again. */
const match_pair *cuda_pairs_result(const pair_matcher *pairs, int32_t batch, uint32_t pair, uint32_t *count);

/* What device_error_text() says, in every build. */
const char *cuda_pairs_error(void);

#endif
