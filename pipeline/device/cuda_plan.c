/* Plans made on the host for a frame on a device: the plan of its memory, and the table of its graphs. */
#include <string.h>

#include "cuda/pyramid/pyramid_cuda.h"
#include "pipeline/base/memory.h"
#include "pipeline/context/plan.h"
#include "pipeline/device/cuda_graph_cache.h"
#include "stages/affine.h"
#include "stages/image.h"

_Static_assert(PLAN_ALIGNMENT % PLANE_ALIGNMENT_BYTES == 0, "buffers begin where planes may");
_Static_assert(PLANE_ALIGNMENT_FLOATS * sizeof(float) == PLANE_ALIGNMENT_BYTES &&
                   PLANE_ALIGNMENT_FLOATS % PLANE_STRIDE_FLOATS == 0,
               "levels of an octave follow one another as planes");

static bool add(frame_plan *plan, plan_buffer buffer, int32_t octave, size_t count, size_t item) {
  const plan_entry e = {
      .buffer = buffer, .space = SPACE_DEVICE, .octave_index = octave, .first_step = 0, .last_step = STEP_COUNT};
  return plan_add(plan, e, count, item);
}

static bool add_octave(frame_plan *plan, const device_request *device, int32_t o) {
  const pyramid_geometry *g = &plan->geometry;
  size_t floats;
  plan->stride[o] = PLANE_ROUND_UP((size_t)g->width[o], PLANE_STRIDE_FLOATS);
  if (!hs_size_mul(plan->stride[o], (size_t)g->height[o], &floats) || floats > SIZE_MAX / 64) return false;
  floats = PLANE_ROUND_UP(floats + PLANE_SLACK_FLOATS, PLANE_ALIGNMENT_FLOATS);
  plan->level_floats[o] = floats;
  return add(plan, BUFFER_LEVELS, o, (size_t)plan->request.rules.scales + 3, floats * sizeof(float)) &&
         add(plan, BUFFER_BLUR_WORK, o, device->blur_work ? 1 : 0, floats * sizeof(float)) &&
         add(plan, BUFFER_DOG, o, device->dog ? (size_t)plan->request.rules.scales + 2 : 0, floats * sizeof(float));
}

/* Finds where each octave's masks begin and how many words all masks take. False: they exceed 32 bits. */
static bool lay_masks(const frame_plan *plan, uint32_t mask_offset[OCTAVES_MAX], uint32_t *mask_words) {
  const pyramid_geometry *g = &plan->geometry;
  uint64_t at = 0;
  for (int32_t o = 0; o < g->octave_count; o++) {
    mask_offset[o] = (uint32_t)at;
    at += (uint64_t)mask_words_per_row(g->width[o]) * (uint64_t)g->height[o] * (uint64_t)plan->request.rules.scales;
    at = (at + 3) & ~(uint64_t)3;
    if (at > UINT32_MAX - 64) return false;
  }
  *mask_words = (uint32_t)at;
  return true;
}

hs_status plan_make_device(const plan_request *request, const device_request *device, frame_plan *plan,
                           uint32_t mask_offset[OCTAVES_MAX], uint32_t *mask_words) {
  memset(plan, 0, sizeof *plan);
  plan->request = *request;
  if (pyramid_geometry_of(request->width, request->height, &request->rules, &plan->geometry) != STAGE_OK)
    return HS_ERR_LIMIT;
  plan_decide_capacities(plan);
  const plan_request *r = &plan->request;
  if (!lay_masks(plan, mask_offset, mask_words)) return HS_ERR_LIMIT;
  const size_t scratch =
      device->scratch_bytes(*mask_words, r->keypoint_capacity, r->feature_capacity, device->grid_cells);
  bool ok =
      add(plan, BUFFER_COUNTS, 0, 1, DEVICE_COUNTS_BYTES) && add(plan, BUFFER_PICTURE, 0, 1, device->picture_bytes) &&
      add(plan, BUFFER_MASK, 0, 1, device->mask_bytes) && add(plan, BUFFER_GRAY, 0, 1, device->gray_bytes) &&
      add(plan, BUFFER_HISTOGRAM, 0, device->equalize ? 256 : 0, sizeof(uint64_t)) &&
      add(plan, BUFFER_KEYPOINTS, 0, r->keypoint_capacity, KEYPOINT_BYTES) &&
      add(plan, BUFFER_SHAPES, 0, device->affine ? r->keypoint_capacity : 0, sizeof(affine_shape)) &&
      add(plan, BUFFER_FEATURES, 0, r->feature_capacity, FEATURE_BYTES) &&
      add(plan, BUFFER_SELECTED, 0, device->selection ? r->feature_capacity : 0, FEATURE_BYTES) &&
      add(plan, BUFFER_RECORDS, 0, device->resident ? r->feature_capacity : 0, sizeof(hs_keypoint)) &&
      add(plan, BUFFER_DESCRIPTORS, 0, device->resident ? r->feature_capacity : 0, r->descriptor_bytes) &&
      add(plan, BUFFER_FRAMES, 0, device->resident && device->affine ? r->feature_capacity : 0, sizeof(hs_frame)) &&
      add(plan, BUFFER_SCRATCH, 0, 1, scratch) && add(plan, BUFFER_CANDIDATES, 0, *mask_words, sizeof(uint32_t)) &&
      add(plan, BUFFER_SETTLED, 0, *mask_words, sizeof(uint32_t));
  for (int32_t o = 0; o < plan->geometry.octave_count && ok; o++) ok = add_octave(plan, device, o);
  return ok ? HS_OK : HS_ERR_LIMIT;
}

/* ---- the table of graphs; it is short, so a linear search suffices */

graph_entry *graph_cache_meet(graph_cache *cache, const graph_key *key, bool *again) {
  graph_entry *oldest = &cache->entries[0], *found = NULL;
  for (int i = 0; i < GRAPHS_KEPT && !found; i++) {
    graph_entry *e = &cache->entries[i];
    if (e->met > 0 && memcmp(&e->key, key, sizeof *key) == 0) found = e;
    if (e->met < oldest->met) oldest = e;
  }
  *again = found != NULL;
  if (!found) {
    found = oldest;
    memcpy(&found->key, key, sizeof *key); /* including the padding */
  }
  found->met = ++cache->frames;
  if (!*again) found->first = found->met;
  return found;
}

graph_spare *graph_cache_spare(graph_cache *cache, uint64_t shape) {
  graph_spare *oldest = &cache->spares[0];
  for (int i = 0; i < SPARES_KEPT; i++) {
    graph_spare *s = &cache->spares[i];
    if (s->shape == shape) return s;
    if (s->frame < oldest->frame) oldest = s;
  }
  return oldest;
}

graph_spare *graph_cache_spare_of(graph_cache *cache, const graph_entry *entry) {
  for (int i = 0; i < SPARES_KEPT; i++) {
    graph_spare *s = &cache->spares[i];
    if (s->shape != 0 && s->frame == entry->first) return s;
  }
  return NULL;
}
