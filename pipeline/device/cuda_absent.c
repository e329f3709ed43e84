/* A build without CUDA: the functions of cuda_frame.h, cuda_jpeg.h, cuda_match.h, cuda_neighbours.h and cuda_pairs.h
   fail and say that there is no CUDA. */
#include <stdio.h>

#include "pipeline/base/message.h"
#include "pipeline/device/cuda_frame.h"
#include "pipeline/device/cuda_given.h"
#include "pipeline/device/cuda_jpeg.h"
#include "pipeline/device/cuda_match.h"
#include "pipeline/device/cuda_neighbours.h"
#include "pipeline/device/cuda_pairs.h"
#include "pipeline/device/cuda_tiles.h"

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

hs_status cuda_frame_give(hs_context *c, int32_t set, const hs_features *found, hs_features *features) {
  (void)set;
  (void)found;
  (void)features;
  return CONTEXT_FAIL(c, HS_ERR_NO_DEVICE, WITHOUT_CUDA);
}

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

uint32_t cuda_frame_room(const hs_context *c, feature_records *records) {
  (void)c;
  *records = (feature_records){0};
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

hs_status cuda_tiles_prepare(hs_context *c, const frame_request *r, hs_status status) {
  (void)r;
  (void)status;
  return CONTEXT_FAIL(c, HS_ERR_NO_DEVICE, WITHOUT_CUDA);
}

void cuda_tiles_rows(const hs_context *c, const plane_region *core, int32_t *y0, int32_t *y1) {
  (void)c;
  (void)core;
  *y0 = *y1 = 0;
}

hs_status cuda_tile_begin(hs_context *c, const frame_request *r, const cuda_tile *tile) {
  (void)r;
  (void)tile;
  return CONTEXT_FAIL(c, HS_ERR_NO_DEVICE, WITHOUT_CUDA);
}

hs_status cuda_tile_finish(hs_context *c, const cuda_tile *tile, cuda_tile_result *result) {
  (void)tile;
  *result = (cuda_tile_result){0};
  return CONTEXT_FAIL(c, HS_ERR_NO_DEVICE, WITHOUT_CUDA);
}

void cuda_tiles_abandon(hs_context *c) { (void)c; }

bool cuda_tiles_query(hs_context *c, const frame_request *r, uint64_t *device_bytes, uint64_t *host_bytes) {
  (void)c;
  (void)r;
  (void)device_bytes;
  (void)host_bytes;
  return false;
}

bool cuda_tiles_query_rows(hs_context *c, const frame_request *r, uint64_t *device_bytes, uint64_t *host_bytes) {
  (void)c;
  (void)r;
  (void)device_bytes;
  (void)host_bytes;
  return false;
}

hs_status cuda_given_room(hs_context *c, cuda_given *given, keypoint_list *keypoints, feature_list *features) {
  (void)given;
  (void)keypoints;
  (void)features;
  return CONTEXT_FAIL(c, HS_ERR_NO_DEVICE, WITHOUT_CUDA);
}

hs_status cuda_given_keypoints_of(hs_context *c, uint32_t count, const uint32_t **keypoint) {
  (void)count;
  (void)keypoint;
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

hs_status cuda_neighbours_nearest(hs_context *c, const match_request *r, float bound, uint32_t k,
                                  match_neighbour *nearest) {
  (void)r;
  (void)bound;
  (void)k;
  (void)nearest;
  return CONTEXT_FAIL(c, HS_ERR_NO_DEVICE, WITHOUT_CUDA);
}

hs_status cuda_neighbours_within(hs_context *c, const match_request *r, float bound, cuda_neighbours_take take,
                                 void *user) {
  (void)r;
  (void)bound;
  (void)take;
  (void)user;
  return CONTEXT_FAIL(c, HS_ERR_NO_DEVICE, WITHOUT_CUDA);
}

void cuda_match_destroy(hs_context *c) { (void)c; }

void cuda_match_memory(const hs_context *c, uint64_t *device_bytes, uint64_t *pinned_bytes) {
  (void)c;
  *device_bytes = *pinned_bytes = 0;
}

cuda_jpeg_state cuda_jpeg_open(hs_context *c) {
  (void)c;
  return CUDA_JPEG_OFF;
}

void cuda_jpeg_judge(hs_context *c, const char *reason) {
  (void)c;
  (void)reason;
}

cuda_jpeg_state cuda_jpeg_ask(const hs_context *c, const char **reason) {
  (void)c;
  *reason = WITHOUT_CUDA;
  return CUDA_JPEG_OFF;
}

void *cuda_jpeg_room(hs_context *c, size_t bytes) {
  (void)c;
  (void)bytes;
  return NULL;
}

bool cuda_jpeg_decode(hs_context *c, const cuda_jpeg_picture *pictures, int32_t count, cuda_jpeg_rows *rows) {
  (void)c;
  (void)pictures;
  (void)count;
  (void)rows;
  return false;
}

int32_t cuda_jpeg_refused(const hs_context *c) {
  (void)c;
  return -1;
}

hs_status cuda_jpeg_fetch(hs_context *c, const cuda_jpeg_rows *rows, int32_t width, int32_t height, unsigned char *to) {
  (void)rows;
  (void)width;
  (void)height;
  (void)to;
  return CONTEXT_FAIL(c, HS_ERR_NO_DEVICE, WITHOUT_CUDA);
}

bool cuda_pairs_wanted(const hs_context *c) {
  (void)c;
  return false;
}

uint64_t cuda_pairs_free_bytes(const hs_context *c) {
  (void)c;
  return 0;
}

hs_status cuda_pairs_open(hs_context *c, uint64_t batch_bytes, cuda_pairs **pairs, char *message,
                          size_t message_bytes) {
  (void)c;
  (void)batch_bytes;
  *pairs = NULL;
  hs_message_set(message, message_bytes, "%s", WITHOUT_CUDA);
  return HS_ERR_NO_DEVICE;
}

void cuda_pairs_close(cuda_pairs *p) { (void)p; }

uint64_t cuda_pairs_image_bytes(size_t count) {
  (void)count;
  return 0;
}

uint64_t cuda_pairs_pair_bytes(size_t first_count, size_t second_count) {
  (void)first_count;
  (void)second_count;
  return 0;
}

stage_status cuda_pairs_enter(const cuda_pairs *p, int32_t *previous) {
  (void)p;
  (void)previous;
  return STAGE_DEVICE;
}

void cuda_pairs_leave(int32_t previous) { (void)previous; }

stage_status cuda_pairs_bring(cuda_pairs *p, const void *descriptors, uint32_t count, cuda_pair_image **image) {
  (void)p;
  (void)descriptors;
  (void)count;
  *image = NULL;
  return STAGE_DEVICE;
}

void cuda_pairs_drop(cuda_pairs *p, cuda_pair_image *image) {
  (void)p;
  (void)image;
}

stage_status cuda_pairs_begin(cuda_pairs *p, int32_t batch, const cuda_pair_of_images *images, uint32_t count,
                              const match_limits *limits, bool mutual) {
  (void)p;
  (void)batch;
  (void)images;
  (void)count;
  (void)limits;
  (void)mutual;
  return STAGE_DEVICE;
}

stage_status cuda_pairs_finish(cuda_pairs *p, int32_t batch) {
  (void)p;
  (void)batch;
  return STAGE_DEVICE;
}

const match_pair *cuda_pairs_result(const cuda_pairs *p, int32_t batch, uint32_t pair, uint32_t *count) {
  (void)p;
  (void)batch;
  (void)pair;
  *count = 0;
  return NULL;
}

const char *cuda_pairs_error(void) { return WITHOUT_CUDA; }
