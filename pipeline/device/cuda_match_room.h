/*
 * What matching holds on a device, shared by the calls that match there: lists, places of a guide, work, and what a call
 * wants besides.
 */
#ifndef HARTSIFT_DEVICE_CUDA_MATCH_ROOM_H
#define HARTSIFT_DEVICE_CUDA_MATCH_ROOM_H

#include "cuda/match/match_cuda.h"
#include "pipeline/device/cuda_match.h"

/* What a context holds on its device for matching. */
struct cuda_match_state {
  unsigned char *slab; /* device */
  size_t slab_bytes;
  void *pinned, *d_pinned; /* host memory, and its address on the device */
  size_t pinned_bytes;
  bool prepared;
};

/* A request on the device: what the kernels take, and where it lies in the slab and in pinned memory. */
typedef struct device_matching {
  match_args args;
  cuda_match_work work;
  void *descriptors[2]; /* copies; null: the caller's own are used */
  void *keypoints[2];
  void *extra; /* as many bytes as were asked for, aligned to 256 */
  size_t slab_bytes, pinned_bytes;
} device_matching;

/* What comes back. */
typedef enum match_wanted { WANTED_NEAREST, WANTED_BOTH_NEAREST, WANTED_PAIRS, WANTED_MUTUAL_PAIRS } match_wanted;

/* The state, made when it is first wanted, and all memory of a request. On the context's device. Statuses: HS_ERR_LIMIT,
   HS_ERR_MEMORY, HS_ERR_DEVICE. */
hs_status cuda_match_make_room(hs_context *context, const match_request *request, const match_placement *place,
                               match_wanted wanted, size_t extra_bytes, device_matching *d);

/* Brings the first (0) or the second list (1) to the device, with its places. */
stage_status cuda_match_bring(const match_request *request, const match_placement *place, int which,
                              const device_matching *d, cuda_stream stream);

#endif
