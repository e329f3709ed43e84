/* Copies a tile's pinned lists to the lists of the frame. */
#include "pipeline/frame/tiles.h"

#include <string.h>

#include "cpu/schedule/threads.h"

static stage_status stage_status_of(hs_status st) {
  if (st == HS_OK) return STAGE_OK;
  return st == HS_ERR_MEMORY ? STAGE_OUT_OF_MEMORY : STAGE_DEVICE;
}

stage_status tile_on_device_begin(hs_context *c, const frame_request *r, const device_tile *tile) {
  return stage_status_of(c->engine->tiles->begin(c, r, tile));
}

stage_status tile_on_device_finish(hs_context *c, const device_tile *tile, device_tile_result *result) {
  return stage_status_of(c->engine->tiles->finish(c, tile, result));
}

/* ------------------------------------------------- appending some of the keypoints */

static void copy_keypoint(const keypoint_list *to, uint32_t n, const keypoint_list *from, uint32_t i) {
  to->x[n] = from->x[i];
  to->y[n] = from->y[i];
  to->sigma[n] = from->sigma[i];
  to->response[n] = from->response[i];
  to->column[n] = from->column[i];
  to->row[n] = from->row[i];
  to->octave[n] = from->octave[i];
  to->level[n] = from->level[i];
}

/* Appends the features of keypoint i, beginning at feature *next. n: the keypoint's index in the frame's list. */
static void append_features(const device_tile_result *t, uint32_t i, uint32_t n, size_t descriptor_bytes,
                            uint32_t *next, workspace *w) {
  const feature_list *from = &t->feature_list, *to = &w->features;
  for (; *next < t->features && from->keypoint[*next] == i; ++*next) {
    const uint32_t at = (*to->count)++;
    if (at >= to->capacity) continue;
    to->keypoint[at] = n;
    to->orientation[at] = from->orientation[*next];
    if (descriptor_bytes > 0)
      memcpy(w->descriptors + at * descriptor_bytes, t->descriptors + *next * descriptor_bytes, descriptor_bytes);
  }
}

static uint32_t append_kept(const device_tile_result *t, const position_filter *filter, size_t descriptor_bytes,
                            workspace *w) {
  const keypoint_list *from = &t->keypoint_list, *to = &w->keypoints;
  uint32_t next = 0, kept = 0;
  for (uint32_t i = 0; i < t->keypoints; i++) {
    if (position_kept(filter, from->x[i], from->y[i])) {
      const uint32_t n = (*to->count)++;
      if (n < to->capacity) copy_keypoint(to, n, from, i);
      if (n < to->capacity && w->shapes) w->shapes[n] = t->shapes[i];
      append_features(t, i, n, descriptor_bytes, &next, w);
      kept++;
    }
    while (next < t->features && t->feature_list.keypoint[next] == i) next++;
  }
  return kept;
}

/* ------------------------------------------------- appending all keypoints */

enum { CHUNK_ITEMS = 4096 };

/* Job that appends a tile's lists to those of the frame. */
typedef struct append_job {
  const device_tile_result *tile;
  workspace *lists;
  uint32_t first_keypoint, first_feature;
  size_t descriptor_bytes;
} append_job;

/* Returns the number of items of the chunk that begins at `first`, out of `count` items. */
static uint32_t items_from(uint32_t first, uint32_t count) {
  if (first >= count) return 0;
  return count - first < CHUNK_ITEMS ? count - first : CHUNK_ITEMS;
}

static void append_keypoints_of_chunk(const append_job *j, uint32_t first) {
  const keypoint_list *from = &j->tile->keypoint_list, *to = &j->lists->keypoints;
  const size_t count = items_from(first, j->tile->keypoints), at = (size_t)j->first_keypoint + first;
  memcpy(to->x + at, from->x + first, sizeof *to->x * count);
  memcpy(to->y + at, from->y + first, sizeof *to->y * count);
  memcpy(to->sigma + at, from->sigma + first, sizeof *to->sigma * count);
  memcpy(to->response + at, from->response + first, sizeof *to->response * count);
  memcpy(to->column + at, from->column + first, sizeof *to->column * count);
  memcpy(to->row + at, from->row + first, sizeof *to->row * count);
  memcpy(to->octave + at, from->octave + first, sizeof *to->octave * count);
  memcpy(to->level + at, from->level + first, sizeof *to->level * count);
  affine_shape *shapes = j->lists->shapes;
  if (shapes && count > 0) memcpy(shapes + at, j->tile->shapes + first, sizeof *shapes * count);
}

static void append_features_of_chunk(const append_job *j, uint32_t first) {
  const feature_list *from = &j->tile->feature_list, *to = &j->lists->features;
  const size_t count = items_from(first, j->tile->features), at = (size_t)j->first_feature + first;
  const size_t bytes = j->descriptor_bytes;
  for (size_t i = 0; i < count; i++) to->keypoint[at + i] = j->first_keypoint + from->keypoint[first + i];
  memcpy(to->orientation + at, from->orientation + first, sizeof *to->orientation * count);
  if (bytes > 0 && count > 0)
    memcpy(j->lists->descriptors + at * bytes, j->tile->descriptors + first * bytes, bytes * count);
}

static void append_chunk(void *job, int32_t chunk, int32_t worker) {
  (void)worker;
  append_keypoints_of_chunk(job, (uint32_t)chunk * CHUNK_ITEMS);
  append_features_of_chunk(job, (uint32_t)chunk * CHUNK_ITEMS);
}

static bool fits(uint32_t first, uint32_t count, uint32_t capacity) {
  return first <= capacity && count <= capacity - first;
}

static bool keeps_all(const position_filter *f) {
  return !f->mask && f->x0 == INT32_MIN && f->y0 == INT32_MIN && f->x1 == INT32_MAX && f->y1 == INT32_MAX;
}

uint32_t tile_on_device_append(stage_queue *queue, const device_tile_result *t, const position_filter *filter,
                               size_t descriptor_bytes, workspace *w) {
  append_job job = {t, w, *w->keypoints.count, *w->features.count, descriptor_bytes};
  const uint32_t longer = t->keypoints > t->features ? t->keypoints : t->features;
  if (!keeps_all(filter)) return append_kept(t, filter, descriptor_bytes, w);
  *w->keypoints.count += t->keypoints;
  *w->features.count += t->features;
  if (fits(job.first_keypoint, t->keypoints, w->keypoints.capacity) &&
      fits(job.first_feature, t->features, w->features.capacity))
    queue_run(queue, (int32_t)((longer + CHUNK_ITEMS - 1) / CHUNK_ITEMS), append_chunk, &job);
  return t->keypoints;
}
