/* Scratch of the keypoint stages: where everything lies, and its reset. */
#include "cuda/keypoints/frame_view.h"

#include "cuda/runtime/launch_step.cuh"

enum { SCRATCH_ALIGNMENT = 256 };

/* Takes `count` items of `size` from the running offset; null without a base. */
static void *take(char *base, size_t *offset, size_t count, size_t size) {
  void *at = base ? base + *offset : nullptr;
  *offset += (count * size + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
  return at;
}

static size_t list_tiles(uint32_t capacity) { return (size_t)capacity / LIST_TILE + 1; }

size_t cuda_keypoint_scratch_layout(const cuda_keypoint_capacity *capacity, void *base, cuda_keypoint_scratch *s) {
  char *b = (char *)base;
  size_t at = 0;
  const size_t word = sizeof(uint32_t);
  s->counters = b;
  s->candidate_count = (uint32_t *)take(b, &at, 1, word);
  s->tickets = (uint32_t *)take(b, &at, TICKETS, word);
  s->settled_tiles = (uint32_t *)take(b, &at, MASK_TILES_MAX, word);
  s->work_counts = (uint32_t *)take(b, &at, 2 * WORK_BINS, word);
  s->work_cursors = (uint32_t *)take(b, &at, 2 * WORK_BINS, word);
  s->select_digits = (uint32_t *)take(b, &at, SELECT_PASSES * SELECT_DIGITS, word);
  s->grid_counts = (uint32_t *)take(b, &at, capacity->cells, word);
  s->grid_cursors = (uint32_t *)take(b, &at, capacity->cells, word);
  s->peak_tiles = (uint32_t *)take(b, &at, list_tiles(capacity->keypoints), word);
  s->select_above = (uint32_t *)take(b, &at, list_tiles(capacity->features), word);
  s->select_equal = (uint32_t *)take(b, &at, list_tiles(capacity->features), word);
  s->counter_bytes = at;
  s->histograms = (int32_t *)take(b, &at, (size_t)capacity->keypoints * ORIENT_BINS, sizeof(int32_t));
  s->peak_counts = (uint8_t *)take(b, &at, capacity->keypoints, 1);
  s->peak_angles = (float *)take(b, &at, (size_t)capacity->keypoints * ORIENT_PEAKS_MAX, sizeof(float));
  s->select_keys = (uint32_t *)take(b, &at, capacity->features, word);
  const size_t ranked = capacity->cells > 0 ? capacity->features : 0;
  s->grid_first = (uint32_t *)take(b, &at, capacity->cells, word);
  s->grid_ranks = (uint32_t *)take(b, &at, 1, word);
  s->grid_cells = (uint32_t *)take(b, &at, ranked, word);
  s->grid_list = (uint32_t *)take(b, &at, ranked, word);
  s->grid_keys = (uint32_t *)take(b, &at, ranked, word);
  s->order = (uint32_t *)take(b, &at, capacity->features, word);
  return at;
}

/* Clears `bytes` at the same place of every picture of a group. */
static stage_status clear_each(const cuda_frame_view *view, void *first, size_t bytes, cuda_stream stream) {
  if (view->group <= 1) return device_clear(first, bytes, stream);
  assert(!launch_is_listed()); /* a group has no step */
  const cudaError_t error = cudaMemset2DAsync(first, view->group_stride_bytes, 0, bytes, (size_t)view->group, stream);
  return error == cudaSuccess ? STAGE_OK : STAGE_DEVICE;
}

stage_status cuda_keypoint_reset_launch(const cuda_frame_view *view, cuda_stream stream) {
  const stage_status st = clear_each(view, view->scratch.counters, view->scratch.counter_bytes, stream);
  if (st != STAGE_OK || !view->settled_words) return st;
  return clear_each(view, view->settled_words, sizeof(uint32_t) * (size_t)view->mask_words, stream);
}
