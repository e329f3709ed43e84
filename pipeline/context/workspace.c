/* Views of a frame's buffers in the slab. */
#include "pipeline/context/engine.h"

#include <string.h>

#include "cpu/schedule/threads.h"

static void *buffer(const frame_plan *plan, unsigned char *slab, plan_buffer which, int32_t octave) {
  const plan_entry *e = plan_find(plan, which, octave);
  return e ? slab + e->offset : NULL;
}

/* Lays out the arrays of the keypoint list: widest items first and the capacity a multiple of 32, so that each array is
   aligned. */
keypoint_list workspace_keypoints(unsigned char *memory, uint32_t capacity, uint32_t *count) {
  float *f = (float *)(void *)memory;
  keypoint_list k = {.count = count, .capacity = capacity};
  k.x = f;
  k.y = f + capacity;
  k.sigma = f + 2 * (size_t)capacity;
  k.response = f + 3 * (size_t)capacity;
  k.column = (int32_t *)(void *)(f + 4 * (size_t)capacity);
  k.row = k.column + capacity;
  k.octave = (int16_t *)(void *)(k.row + capacity);
  k.level = k.octave + capacity;
  return k;
}

feature_list workspace_features(unsigned char *memory, uint32_t capacity, uint32_t *count) {
  uint32_t *keypoint = (uint32_t *)(void *)memory;
  const feature_list f = {.count = count,
                          .capacity = capacity,
                          .keypoint = keypoint,
                          .orientation = (float *)(void *)(keypoint + capacity)};
  return f;
}

void workspace_view(const frame_plan *plan, unsigned char *slab, workspace *w) {
  const pyramid_geometry *g = &plan->geometry;
  memset(w, 0, sizeof *w);
  for (int32_t o = 0; o < g->octave_count && plan->tile_side == 0; o++) {
    w->octaves[o] = (octave_view){.levels = buffer(plan, slab, BUFFER_LEVELS, o),
                                  .level_floats = plan->level_floats[o],
                                  .stride = plan->stride[o],
                                  .width = g->width[o],
                                  .height = g->height[o],
                                  .octave = g->first_octave + o};
    w->blur_work[o] =
        (plane_view){buffer(plan, slab, BUFFER_BLUR_WORK, o > 0), g->width[o], g->height[o], plan->stride[o]};
  }
  uint32_t *counts = buffer(plan, slab, BUFFER_COUNTS, 0);
  counts[0] = counts[1] = 0;
  w->keypoints =
      workspace_keypoints(buffer(plan, slab, BUFFER_KEYPOINTS, 0), plan->request.keypoint_capacity, &counts[0]);
  w->features = workspace_features(buffer(plan, slab, BUFFER_FEATURES, 0), plan->request.feature_capacity, &counts[1]);
  for (int32_t i = 0; i < 2; i++) w->detect_work[i] = buffer(plan, slab, BUFFER_DETECT, i);
  w->descriptors = buffer(plan, slab, BUFFER_DESCRIPTORS, 0);
  w->sources = buffer(plan, slab, BUFFER_SOURCES, 0);
  w->shapes = buffer(plan, slab, BUFFER_SHAPES, 0);
  w->graph = buffer(plan, slab, BUFFER_GRAPH, 0);
  w->warped = buffer(plan, slab, BUFFER_WARPED, 0);
}

hs_keypoint workspace_keypoint(const keypoint_list *k, uint32_t n, float orientation) {
  return (hs_keypoint){k->x[n], k->y[n], k->sigma[n], orientation, k->response[n], k->octave[n], k->level[n]};
}

hs_frame workspace_frame(const workspace *w, uint32_t n) {
  const uint32_t item = w->order ? w->order[n] : n, k = w->features.keypoint[item];
  float a[4];
  affine_frame_of(&w->shapes[k], w->keypoints.sigma[k], w->features.orientation[item], a);
  return (hs_frame){a[0], a[1], a[2], a[3]};
}

/* ------------------------------------------------- copies in chunks, which threads share */

enum { FEATURES_A_CHUNK = 1024 };

typedef struct copy_job {
  const workspace *lists;
  uint32_t count;
  size_t descriptor_bytes;
  hs_keypoint *keypoints;
  unsigned char *descriptors;
} copy_job;

static void copy_chunk(void *job, int32_t chunk, int32_t worker) {
  const copy_job *j = job;
  const workspace *w = j->lists;
  const size_t bytes = j->descriptor_bytes;
  const uint32_t first = (uint32_t)chunk * FEATURES_A_CHUNK, left = j->count - first;
  const uint32_t end = first + (left < FEATURES_A_CHUNK ? left : FEATURES_A_CHUNK);
  (void)worker;
  for (uint32_t i = first; i < end; i++) {
    const uint32_t n = w->order ? w->order[i] : i;
    j->keypoints[i] = workspace_keypoint(&w->keypoints, w->features.keypoint[n], w->features.orientation[n]);
    if (bytes > 0) memcpy(j->descriptors + i * bytes, w->descriptors + n * bytes, bytes);
  }
}

void listed_features_copy(stage_queue *queue, const workspace *lists, uint32_t count, size_t descriptor_bytes,
                          hs_keypoint *keypoints, void *descriptors) {
  copy_job job = {lists, count, descriptor_bytes, keypoints, descriptors};
  queue_run(queue, (int32_t)((count + FEATURES_A_CHUNK - 1) / FEATURES_A_CHUNK), copy_chunk, &job);
}
