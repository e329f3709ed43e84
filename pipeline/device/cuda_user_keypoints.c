/* User keypoints. One pinned block holds their lists in the device's layout, so that each list is uploaded with one
   copy. */
#include "pipeline/device/cuda_engine.h"

#include "pipeline/context/engine.h"
#include "pipeline/device/cuda_state.h"

/* Capacities are powers of two, USER_CAPACITY_MIN or more, so that calls with different numbers of keypoints use the
   same graph. */
enum { USER_CAPACITY_MIN = 1024, COUNTS_BYTES = 256 };

static uint32_t capacity_for(uint32_t count) {
  uint32_t capacity = USER_CAPACITY_MIN;
  while (capacity < count) capacity *= 2;
  return capacity;
}

static size_t block_bytes(uint32_t capacity) {
  return COUNTS_BYTES + (size_t)capacity * (KEYPOINT_BYTES + FEATURE_BYTES);
}

static stage_status make_block(cuda_state *s, uint32_t capacity) {
  if (capacity <= s->user_capacity) return STAGE_OK;
  device_free_pinned(s->user_lists);
  s->user_capacity = 0;
  void *host = NULL, *device = NULL;
  const stage_status st = device_alloc_pinned(&host, &device, block_bytes(capacity));
  s->user_lists = host;
  if (st == STAGE_OK) s->user_capacity = capacity;
  return st;
}

size_t cuda_user_keypoints_bytes(const cuda_state *s) {
  return s->user_capacity > 0 ? block_bytes(s->user_capacity) : 0;
}

hs_status cuda_user_lists(hs_context *c, user_keypoints *user, keypoint_list *keypoints, feature_list *features) {
  cuda_state *s = cuda_of(c);
  int32_t previous;
  user->capacity = capacity_for(user->count);
  stage_status st = device_enter(s->device, &previous);
  if (st == STAGE_OK) {
    st = make_block(s, user->capacity);
    device_leave(previous);
  }
  if (st != STAGE_OK) return cuda_failure(c, st, "pinned memory for user keypoints");
  uint32_t *counts = (uint32_t *)(void *)s->user_lists;
  unsigned char *lists = s->user_lists + COUNTS_BYTES;
  counts[0] = counts[1] = counts[2] = counts[3] = 0;
  *keypoints = workspace_keypoints(lists, user->capacity, &counts[0]);
  *features = workspace_features(lists + (size_t)user->capacity * KEYPOINT_BYTES, user->capacity, &counts[1]);
  return HS_OK;
}

stage_status cuda_user_keypoints_upload(const cuda_state *s, const user_keypoints *user, cuda_stream stream) {
  const unsigned char *lists = s->user_lists + COUNTS_BYTES;
  const size_t keypoint_bytes = (size_t)user->capacity * KEYPOINT_BYTES;
  unsigned char *counts = cuda_slab_buffer(s, BUFFER_COUNTS), *keypoints = cuda_slab_buffer(s, BUFFER_KEYPOINTS);
  stage_status st = device_copy_to(counts, s->user_lists, 4 * sizeof(uint32_t), stream);
  if (st == STAGE_OK) st = device_copy_to(keypoints, lists, keypoint_bytes, stream);
  if (st == STAGE_OK && user->oriented)
    st = device_copy_to(cuda_slab_buffer(s, BUFFER_FEATURES), lists + keypoint_bytes,
                        (size_t)user->capacity * FEATURE_BYTES, stream);
  return st;
}

hs_status cuda_user_keypoints_of(hs_context *c, uint32_t count, const uint32_t **keypoint) {
  const cuda_state *s = cuda_of(c);
  void *memory;
  hs_status st = context_scratch(c, SCRATCH_ORIENTATIONS, (size_t)count + 1, sizeof **keypoint, &memory);
  if (st != HS_OK) return st;
  int32_t previous;
  stage_status done = device_enter(s->device, &previous);
  if (done == STAGE_OK) {
    done = device_copy_from(memory, cuda_slab_buffer(s, BUFFER_FEATURES), count * sizeof **keypoint, s->stream);
    if (done == STAGE_OK) done = device_stream_wait(s->stream);
    device_leave(previous);
  }
  *keypoint = memory;
  return done == STAGE_OK ? HS_OK : cuda_failure(c, done, "reading the features of user keypoints");
}
