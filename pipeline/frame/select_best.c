/* Selection over a grid, for both forms of features: lists within a frame, and records after it. */
#include "pipeline/frame/run_frame.h"

#include <string.h>

#include "pipeline/base/memory.h"
#include "pipeline/context/options.h"
#include "stages/select.h"

hs_status grid_choice_reserve(hs_context *c, uint32_t features) {
  void *memory;
  return options_use_grid(&c->options) ? context_scratch(c, SCRATCH_GRID, 1, scratch_grid_bytes(features), &memory)
                                       : HS_OK;
}

static grid_shape shape_of(const hs_context *c, int32_t width, int32_t height) {
  return (grid_shape){c->options.grid_columns, c->options.grid_rows, width, height};
}

/* Returns the key by which features are ranked. Responses and sigmas are not negative, so their bits as integers have
   the order of the values. */
static uint32_t list_key(const select_args *a, uint32_t feature) {
  const uint32_t k = a->features.keypoint[feature];
  return hs_float_bits(a->rule == SELECT_STRONGEST ? a->keypoints.response[k] : a->keypoints.sigma[k]);
}

void grid_choice_lists(hs_context *c, const select_args *a, int32_t width, int32_t height) {
  const feature_list *f = &a->features;
  const grid_shape shape = shape_of(c, width, height);
  const uint32_t n = *f->count;
  *a->kept_described = a->described_count;
  if (n > f->capacity || n <= a->max_features) return;
  grid_item *items = c->scratch.memory[SCRATCH_GRID];
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t k = f->keypoint[i];
    items[i] = grid_item_of(grid_cell(&shape, a->keypoints.x[k], a->keypoints.y[k]), list_key(a, i), i);
  }
  grid_choice choice = grid_choose(items, items + n, n, a->max_features);
  uint32_t kept = 0;
  *a->kept_described = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (!grid_keeps(&choice, i, list_key(a, i))) continue;
    select_move(a, i, kept++);
  }
  *f->count = kept;
}

static uint32_t record_key(const hs_keypoint *k, hs_selection selection) {
  return hs_float_bits(selection == HS_SELECT_RESPONSE ? k->response : k->sigma);
}

hs_status grid_choice_records(hs_context *c, const feature_records *r, int32_t width, int32_t height, uint32_t *count) {
  const uint32_t n = *count, most = (uint32_t)c->options.max_features;
  const hs_selection selection = c->options.selection;
  const grid_shape shape = shape_of(c, width, height);
  if (!options_use_grid(&c->options) || n <= most) return HS_OK;
  const hs_status st = grid_choice_reserve(c, n);
  if (st != HS_OK) return st;
  grid_item *items = c->scratch.memory[SCRATCH_GRID];
  for (uint32_t i = 0; i < n; i++) {
    const hs_keypoint *k = &r->keypoints[i];
    items[i] = grid_item_of(grid_cell(&shape, k->x, k->y), record_key(k, selection), i);
  }
  grid_choice choice = grid_choose(items, items + n, n, most);
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (!grid_keeps(&choice, i, record_key(&r->keypoints[i], selection))) continue;
    feature_records_move(r, i, kept++);
  }
  *count = kept;
  return HS_OK;
}

hs_status grid_choice_result(hs_context *c, const frame_request *r, frame_result *result) {
  /* the context owns the pinned results, so they may be changed */
  const feature_records records = {.keypoints = (hs_keypoint *)(uintptr_t)result->keypoints,
                                   .frames = (hs_frame *)(uintptr_t)result->frames,
                                   .descriptors = (void *)(uintptr_t)result->descriptors,
                                   .descriptor_bytes = r->descriptor_bytes};
  if (!options_use_grid(&c->options)) return HS_OK;
  const hs_status st = grid_choice_records(c, &records, r->source.width, r->source.height, &result->count);
  if (st == HS_OK) c->statistics.features = result->count;
  return st;
}

/* ------------------------------------------------- by the stage, or over a grid */

stage_status select_features(hs_context *c, const frame_request *r, workspace *w, uint32_t described) {
  const source_view *picture = &r->source;
  if (c->options.max_features == 0 || r->user_keypoints) return STAGE_OK;
  const select_args args = {.keypoints = w->keypoints,
                            .features = w->features,
                            .max_features = (uint32_t)c->options.max_features,
                            .rule = (select_rule)c->options.selection,
                            .descriptors = w->descriptors,
                            .descriptor_bytes = r->descriptor_bytes,
                            .described_count = described,
                            .kept_described = &described};
  if (options_use_grid(&c->options)) {
    grid_choice_lists(c, &args, picture->width, picture->height);
    return STAGE_OK;
  }
  return c->ops.select(c->queue, &args);
}
