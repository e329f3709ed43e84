/* A build without CUDA: the functions of cuda_frame.h and cuda_match.h fail and say that there is no CUDA. */
#include <stdio.h>

#include "pipeline/base/message.h"
#include "pipeline/device/cuda_frame.h"
#include "pipeline/device/cuda_match.h"

#define WITHOUT_CUDA                                                                                                   \
  "this build is without CUDA: build with -DHARTSIFT_CUDA=ON where a CUDA toolkit is installed, or work on the CPU"

int32_t cuda_frame_lanes(hs_context *c, int32_t width, int32_t height) {
  (void)c;
  (void)width;
  (void)height;
  return 1;
}

hs_status cuda_frame_create(hs_context *c, const char *variant, char *message, size_t bytes) {
  (void)variant;
  c->cuda = NULL;
  hs_message_set(message, bytes, "CUDA device %d: " WITHOUT_CUDA, c->options.device_index);
  return HS_ERR_NO_DEVICE;
}

hs_status cuda_frame_clone(hs_context *c, const hs_context *owner, char *message, size_t bytes) {
  (void)owner;
  return cuda_frame_create(c, NULL, message, bytes);
}

void cuda_frame_destroy(hs_context *c) { (void)c; }

void cuda_frame_use_results(hs_context *c, int32_t set) {
  (void)c;
  (void)set;
}

hs_status cuda_frame_run(hs_context *c, const frame_request *r, const cuda_frame_place *place,
                         cuda_frame_result *result) {
  (void)r;
  (void)place;
  (void)result;
  return CONTEXT_FAIL(c, HS_ERR_NO_DEVICE, WITHOUT_CUDA);
}

bool cuda_frame_groups(const hs_context *c) {
  (void)c;
  return false;
}

hs_status cuda_frame_begin(hs_context *c, const frame_request *r, const cuda_frame_place *place) {
  (void)r;
  (void)place;
  return CONTEXT_FAIL(c, HS_ERR_NO_DEVICE, WITHOUT_CUDA);
}

hs_status cuda_frame_handed_over(hs_context *c, plane_view *level) {
  *level = (plane_view){0};
  return CONTEXT_FAIL(c, HS_ERR_NO_DEVICE, WITHOUT_CUDA);
}

hs_status cuda_frame_end(hs_context *c, const cuda_frame_place *place, cuda_frame_result *result, bool *repeat) {
  *repeat = false;
  return cuda_frame_run(c, NULL, place, result);
}

void cuda_frame_want_room(hs_context *c, uint32_t features) {
  (void)c;
  (void)features;
}

uint32_t cuda_frame_room(const hs_context *c, hs_keypoint **keypoints, void **descriptors) {
  (void)c;
  *keypoints = NULL;
  *descriptors = NULL;
  return 0;
}

int cuda_frame_report(const hs_context *c, char *text, size_t bytes) {
  (void)c;
  return snprintf(text, bytes, "%s", "");
}

void cuda_frame_memory(const hs_context *c, uint64_t *device_bytes, uint64_t *pinned_bytes) {
  (void)c;
  *device_bytes = *pinned_bytes = 0;
}

hs_status cuda_frame_query(hs_context *c, int32_t width, int32_t height, uint64_t *device_bytes,
                           uint64_t *pinned_bytes) {
  (void)width;
  (void)height;
  (void)device_bytes;
  (void)pinned_bytes;
  return CONTEXT_FAIL(c, HS_ERR_NO_DEVICE, WITHOUT_CUDA);
}

hs_status cuda_match_run(hs_context *c, const match_request *r, const cuda_match_place *place, match_nearest *forward,
                         match_nearest *backward) {
  (void)r;
  (void)place;
  (void)forward;
  (void)backward;
  return CONTEXT_FAIL(c, HS_ERR_NO_DEVICE, WITHOUT_CUDA);
}

hs_status cuda_match_pairs(hs_context *c, const match_request *r, const cuda_match_place *place,
                           const match_pair **pairs, size_t *count) {
  (void)r;
  (void)place;
  (void)pairs;
  (void)count;
  return CONTEXT_FAIL(c, HS_ERR_NO_DEVICE, WITHOUT_CUDA);
}

void cuda_match_destroy(hs_context *c) { (void)c; }

void cuda_match_memory(const hs_context *c, uint64_t *device_bytes, uint64_t *pinned_bytes) {
  (void)c;
  *device_bytes = *pinned_bytes = 0;
}
