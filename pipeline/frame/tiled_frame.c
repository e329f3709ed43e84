/* A frame in tiles: octave after octave, tile after tile: levels, keypoints, orientations, descriptors. Each finished
   octave is then put in order. */
#include "pipeline/frame/run_frame.h"

#include "cpu/schedule/stage_jobs.h"
#include "pipeline/context/options.h"
#include "pipeline/frame/tiles.h"

/* The frame being run. */
typedef struct tiled_frame {
  hs_context *context;
  const frame_request *request;
  source_view source; /* the picture, or its rows that are in the band */
  row_band band;
  workspace *lists;
  tile_levels tile;
  bool on_device;
  device_tile_result result; /* results of the last tile on the device */
  int32_t octave;            /* octave whose tiles are processed */
  uint64_t candidates;
  uint64_t keypoints;   /* number of keypoints so far, even beyond the capacity of the lists */
  bool full;            /* a list is full, so keypoints are only counted */
  uint64_t done, total; /* samples of the processed tiles, and of all tiles */
  tile_prune prune;
  tile_order order;
} tiled_frame;

/* Numbers of candidates and keypoints found in a tile. */
typedef struct tile_findings {
  uint32_t keypoints, escaped;
  uint64_t candidates;
  bool complete; /* the tile's scratch had enough capacity */
} tile_findings;

/* A tile, or the surroundings of an escaped candidate. */
typedef struct tile_work {
  plane_region core;
  const escaped_candidate *seed; /* candidate to follow; null: the tile is searched */
  escaped_candidate *escaped;
  uint32_t escaped_capacity;
  bool gives_base;
  int32_t slot; /* device only: the tile's slot */
  bool begun;   /* device only: the tile has been started */
} tile_work;

static void *buffer_of(const tiled_frame *f, plan_buffer which) {
  const plan_entry *e = plan_find(&f->context->plan, which, 0);
  return e ? f->context->slab + e->offset : NULL;
}

/* Returns the part of the list from item `first` on, with a separate count. */
static keypoint_list list_from(const keypoint_list *k, uint32_t first, uint32_t most, uint32_t *count) {
  const uint32_t left = k->capacity - first;
  *count = 0;
  return (keypoint_list){.count = count,
                         .capacity = left < most ? left : most,
                         .x = k->x + first,
                         .y = k->y + first,
                         .sigma = k->sigma + first,
                         .response = k->response + first,
                         .column = k->column + first,
                         .row = k->row + first,
                         .octave = k->octave + first,
                         .level = k->level + first};
}

/* Computes a tile's levels, finds its keypoints and appends them to the list. */
static stage_status find_keypoints(tiled_frame *f, const tile_work *work, tile_findings *found) {
  stage_status st = tile_levels_make(&f->tile, &work->core);
  if (st == STAGE_OK && work->gives_base) st = tile_levels_give_base(&f->tile);
  if (st != STAGE_OK) return st;
  hs_context *c = f->context;
  const keypoint_list *all = &f->lists->keypoints;
  const plane_view plane = octave_level(&f->tile.views[0], 0);
  const detect_part part = {.search = work->core,
                            .follow = region_about(work->core, TILE_HALO, &plane),
                            .seed = work->seed,
                            .escaped = work->escaped,
                            .escaped_capacity = work->escaped_capacity,
                            .escaped_count = &found->escaped};
  const detect_args args = {.octaves = f->tile.views,
                            .octave_count = 1,
                            .border = (border_mode)options_rules(&c->options)->border_rule,
                            .top_filter = &c->step_filter[c->options.scales + 2],
                            .params = c->params,
                            .filter = f->request->filter,
                            .work = buffer_of(f, BUFFER_DETECT),
                            .keypoints = list_from(all, *all->count, c->plan.tile_keypoints, &found->keypoints),
                            .candidates = &found->candidates,
                            .part = &part};
  st = c->ops.detect(c->queue, &args);
  found->complete = found->keypoints <= c->plan.tile_keypoints && found->escaped <= work->escaped_capacity;
  return st;
}

static device_tile tile_of(const tiled_frame *f, const tile_work *work) {
  return (device_tile){f->octave, work->core, work->seed, work->gives_base, work->slot, f->source};
}

/* Like find_keypoints, on the device, which also describes the keypoints. The results stay in device memory. */
static stage_status find_on_device(tiled_frame *f, const tile_work *work, tile_findings *found) {
  const device_tile tile = tile_of(f, work);
  stage_status st = work->begun ? STAGE_OK : tile_on_device_begin(f->context, f->request, &tile);
  if (st == STAGE_OK) st = tile_on_device_finish(f->context, &tile, &f->result);
  if (st != STAGE_OK) return st;
  const device_tile_result *r = &f->result;
  *found = (tile_findings){r->keypoints, r->escaped, r->candidates, r->complete};
  for (uint32_t i = 0; i < r->escaped && r->complete && i < work->escaped_capacity; i++)
    work->escaped[i] = r->escaped_list[i];
  return STAGE_OK;
}

/* Returns the arguments of the stages for shapes, for the lists from first_keypoint and first_feature on. */
static affine_args shape_args(const tiled_frame *f, uint32_t first_keypoint, uint32_t first_feature) {
  const hs_context *c = f->context;
  const workspace *w = f->lists;
  const pyramid_geometry *g = &c->plan.geometry;
  return (affine_args){.octaves = f->tile.views,
                       .first_octave = g->first_octave + f->tile.octave,
                       .octave_count = g->octave_count - f->tile.octave,
                       .first_keypoint = first_keypoint,
                       .first_feature = first_feature,
                       .keypoints = w->keypoints,
                       .features = w->features,
                       .shapes = w->shapes,
                       .params = c->params,
                       .scales = &c->scales,
                       .descriptors = w->descriptors};
}

static stage_status orient(tiled_frame *f, uint32_t first_keypoint) {
  hs_context *c = f->context;
  const workspace *w = f->lists;
  const int32_t octave = c->plan.geometry.first_octave + f->tile.octave;
  const orient_args args = {f->tile.views, octave, first_keypoint, w->keypoints, w->features, c->params, &c->scales};
  if (!c->options.affine) return c->ops.orient(c->queue, &args);
  const affine_args shaped = shape_args(f, first_keypoint, 0);
  const stage_status st = affine_shape_run(c->queue, &c->ops, &shaped);
  return st == STAGE_OK ? affine_orient_run(c->queue, &c->ops, &shaped, w->warped) : st;
}

static stage_status describe(tiled_frame *f, uint32_t first_feature) {
  hs_context *c = f->context;
  const workspace *w = f->lists;
  const pyramid_geometry *g = &c->plan.geometry;
  const int32_t octave = g->first_octave + f->tile.octave, octaves = g->octave_count - f->tile.octave;
  const describe_args args = {f->tile.views, octave,    octaves,    first_feature, w->keypoints,
                              w->features,   c->params, &c->scales, w->descriptors};
  const affine_args shaped = shape_args(f, 0, first_feature);
  return c->options.affine ? affine_describe_run(c->queue, &c->ops, &shaped, w->warped)
                           : c->ops.describe(c->queue, &args);
}

/* Orients and describes the keypoints from first_keypoint on. */
static stage_status finish_features(tiled_frame *f, const tile_work *work, uint32_t first_keypoint) {
  const workspace *w = f->lists;
  const uint32_t first_feature = *w->features.count;
  const stage_status st = orient(f, first_keypoint);
  if (*w->features.count > w->features.capacity) f->full = true;
  if (st != STAGE_OK || f->full) return st;
  tile_prune_features(&f->prune, w, 0, first_feature, work->seed ? NULL : &work->core);
  return f->request->descriptor_bytes == 0 ? st : describe(f, first_feature);
}

/* Appends the device's results to the lists. */
static void take_from_device(tiled_frame *f, const tile_work *work) {
  workspace *w = f->lists;
  const size_t descriptor_bytes = f->request->descriptor_bytes;
  const uint32_t first = *w->features.count;
  if (!f->result.complete) { /* the lists are full, so its keypoints are only counted */
    f->keypoints += f->result.keypoints;
    f->full = true;
    return;
  }
  f->keypoints += tile_on_device_append(f->context->queue, &f->result, &f->request->filter, descriptor_bytes, w);
  if (*w->keypoints.count > w->keypoints.capacity || *w->features.count > w->features.capacity) f->full = true;
  if (!f->full) tile_prune_features(&f->prune, w, descriptor_bytes, first, work->seed ? NULL : &work->core);
}

/* Adds the CPU's results to the lists; their keypoints are already appended. */
static stage_status take_from_cpu(tiled_frame *f, const tile_work *work, uint32_t keypoints) {
  const keypoint_list *k = &f->lists->keypoints;
  const uint32_t first = *k->count;
  f->keypoints += keypoints;
  if (keypoints > k->capacity - first) f->full = true;
  if (f->full) return STAGE_OK;
  *k->count = first + keypoints;
  return finish_features(f, work, first);
}

static stage_status process_tile(tiled_frame *f, const tile_work *work);

/* Divides a tile that has too many keypoints for its scratch, and processes both halves. */
static stage_status work_off_halves(tiled_frame *f, const tile_work *work) {
  tile_work half[2] = {*work, *work};
  const plane_region *r = &work->core;
  if (r->x1 - r->x0 > r->y1 - r->y0)
    half[0].core.x1 = half[1].core.x0 = r->x0 + (r->x1 - r->x0) / 2;
  else
    half[0].core.y1 = half[1].core.y0 = r->y0 + (r->y1 - r->y0) / 2;
  half[0].gives_base = half[1].gives_base = false;
  half[0].begun = half[1].begun = false;
  const stage_status st = process_tile(f, &half[0]);
  return st == STAGE_OK ? process_tile(f, &half[1]) : st;
}

/* Follows the candidates that left the tile, each around its current sample. */
static stage_status follow_escaped(tiled_frame *f, const tile_work *work, uint32_t count) {
  stage_status st = STAGE_OK;
  for (uint32_t i = 0; i < count && st == STAGE_OK; i++) {
    const escaped_candidate *s = &work->escaped[i];
    escaped_candidate now = *s, next = {.step = REFINE_STEPS};
    for (; now.step < REFINE_STEPS && st == STAGE_OK; now = next) {
      const tile_work escaped_tile = {.core = {now.x, now.y, now.x + 1, now.y + 1},
                                      .seed = &now,
                                      .escaped = &next,
                                      .escaped_capacity = 1,
                                      .slot = work->slot};
      next.step = REFINE_STEPS;
      st = process_tile(f, &escaped_tile);
    }
  }
  return st;
}

/* Processes a tile, from its levels to its descriptors. */
static stage_status process_tile(tiled_frame *f, const tile_work *work) {
  const plane_region *r = &work->core;
  tile_findings found = {0};
  stage_status st = f->on_device ? find_on_device(f, work, &found) : find_keypoints(f, work, &found);
  if (st != STAGE_OK) return st;
  const bool divisible = !work->seed && (r->x1 - r->x0 > 1 || r->y1 - r->y0 > 1);
  if (divisible && !f->full && !found.complete) return work_off_halves(f, work);
  f->candidates += found.candidates;
  if (f->on_device)
    take_from_device(f, work);
  else
    st = take_from_cpu(f, work, found.keypoints);
  if (st != STAGE_OK || f->full || work->seed) return st;
  return follow_escaped(f, work, found.escaped);
}

/* Reports progress after a tile. */
static stage_status step(tiled_frame *f, stage_status st, const plane_region *tile) {
  f->done += (uint64_t)(tile->x1 - tile->x0) * (uint64_t)(tile->y1 - tile->y0);
  if (st != STAGE_OK) return st;
  return context_progress(f->context, f->done, f->total) == HS_OK ? STAGE_OK : STAGE_CANCELLED;
}

/* Finds tile n of the octave, from left to right and top to bottom. False: there are no more. */
static bool tile_at(const tiled_frame *f, int32_t n, tile_work *work) {
  const frame_plan *plan = &f->context->plan;
  const int32_t side = plan->tile_side, width = plan->geometry.width[f->octave],
                height = plan->geometry.height[f->octave], columns = (width - 1) / side + 1, x = n % columns * side,
                y = n / columns * side;
  if (n / columns > (height - 1) / side) return false;
  *work = (tile_work){.core = {x, y, width - x > side ? x + side : width, height - y > side ? y + side : height},
                      .escaped = buffer_of(f, BUFFER_ESCAPED),
                      .escaped_capacity = f->on_device ? TILE_DEVICE_ESCAPED : plan->tile_keypoints,
                      .gives_base = true,
                      .slot = n % TILE_SLOTS};
  return true;
}

/* If the picture is read row by row: makes the band hold the rows for a tile of the first octave. */
static stage_status hold_rows(tiled_frame *f, const plane_region *core) {
  const frame_plan *plan = &f->context->plan;
  int32_t y0, y1;
  if (!f->band.feed || f->octave > 0) return STAGE_OK;
  if (f->on_device)
    f->context->engine->tiles->rows(f->context, core, &y0, &y1);
  else
    tile_rows(&f->tile.halos, &plan->request, &plan->geometry, core, &y0, &y1);
  return row_band_hold(&f->band, y0, y1, &f->source) ? STAGE_OK : STAGE_CANCELLED;
}

static stage_status begin_rows(tiled_frame *f) {
  const frame_plan *plan = &f->context->plan;
  const plan_entry *e = plan_find(plan, f->on_device ? BUFFER_ROWS : BUFFER_BASE, 0);
  const bool begun =
      row_band_begin(&f->band, f->request->feed, plan->request.height, f->context->slab + e->offset, e->bytes);
  return begun ? STAGE_OK : STAGE_CANCELLED;
}

/* Returns whether the device may begin the tile `next` before the host lists the results of `now`. It may not if the
   rows for `next` would replace those of `now`, which parts of that tile and escaped candidates may still need. */
static bool begins_early(const tiled_frame *f, const tile_work *now, const tile_work *next) {
  const bool in_rows = f->band.feed && f->octave == 0;
  return f->on_device && (!in_rows || next->core.y0 == now->core.y0);
}

static stage_status begin(tiled_frame *f, tile_work *work) {
  const stage_status st = hold_rows(f, &work->core);
  const device_tile tile = tile_of(f, work);
  work->begun = true;
  return st == STAGE_OK ? tile_on_device_begin(f->context, f->request, &tile) : st;
}

static stage_status work_off_tiles(tiled_frame *f, int32_t octave) {
  tile_work now, next = {0};
  f->octave = octave;
  if (!f->on_device) tile_levels_begin(&f->tile, f->context, &f->source, octave);
  bool more = tile_at(f, 0, &now);
  stage_status st = STAGE_OK;
  if (more && f->on_device) st = begin(f, &now);
  for (int32_t n = 1; more && st == STAGE_OK; n++, now = next) {
    more = tile_at(f, n, &next);
    if (more && begins_early(f, &now, &next)) st = begin(f, &next);
    if (st == STAGE_OK) st = hold_rows(f, &now.core);
    if (st == STAGE_OK) st = step(f, process_tile(f, &now), &now.core);
  }
  if (st != STAGE_OK && f->on_device) f->context->engine->tiles->abandon(f->context);
  return st;
}

static stage_status run_octave(tiled_frame *f, int32_t octave) {
  f->order.first_keypoint = *f->lists->keypoints.count;
  f->order.first_feature = *f->lists->features.count;
  f->order.height = f->context->plan.geometry.height[octave];
  const bool in_rows = octave == 0 && f->request->feed;
  stage_status st = in_rows ? begin_rows(f) : STAGE_OK;
  if (st == STAGE_OK) st = work_off_tiles(f, octave);
  if (st == STAGE_OK && in_rows && !row_band_finish(&f->band)) st = STAGE_CANCELLED;
  if (st == STAGE_OK && !f->full) tile_order_octave(&f->order);
  return st;
}

/* Sets the counts to the capacities that the lists need. The number of features that could not be counted is estimated
   from the keypoints. */
static void ask_for_capacity(const tiled_frame *f) {
  const uint64_t keypoints = f->keypoints, features = keypoints + keypoints / 2;
  const uint32_t counted = *f->lists->features.count;
  *f->lists->keypoints.count = keypoints < UINT32_MAX ? (uint32_t)keypoints : UINT32_MAX;
  *f->lists->features.count = features < UINT32_MAX ? (uint32_t)features : UINT32_MAX;
  if (*f->lists->features.count < counted) *f->lists->features.count = counted;
  /* at least one of the lists was too short */
  if (*f->lists->keypoints.count <= f->lists->keypoints.capacity &&
      *f->lists->features.count <= f->lists->features.capacity)
    *f->lists->features.count = f->lists->features.capacity + 1;
}

/* Ends the lists. With max_features, selects features, for which they must be in their final positions. Otherwise
   features are returned through their order. */
static stage_status finish(const tiled_frame *f) {
  workspace *w = f->lists;
  if (f->order.in_place) return select_features(f->context, f->request, w, *w->features.count);
  w->order = f->order.features;
  *w->keypoints.count = f->order.keypoints;
  *w->features.count = f->order.ordered;
  return STAGE_OK;
}

stage_status tiled_frame_run(hs_context *c, const frame_request *r, workspace *lists, uint64_t *candidates) {
  const pyramid_geometry *g = &c->plan.geometry;
  tiled_frame f = {
      .context = c, .request = r, .source = r->source, .lists = lists, .on_device = r->untiled_status != HS_OK};
  for (int32_t o = 0; o < g->octave_count; o++) f.total += (uint64_t)g->width[o] * (uint64_t)g->height[o];
  f.order = (tile_order){.lists = lists,
                         .queue = c->queue,
                         .scales = c->plan.request.rules.scales,
                         .descriptor_bytes = r->descriptor_bytes,
                         .scratch = buffer_of(&f, BUFFER_ORDER),
                         .features = buffer_of(&f, BUFFER_FEATURE_ORDER),
                         .in_place = c->options.max_features > 0};
  tile_prune_begin(&f.prune, &c->options);
  stage_status st = context_progress(c, 0, f.total) == HS_OK ? STAGE_OK : STAGE_CANCELLED;
  for (int32_t o = 0; o < g->octave_count && st == STAGE_OK; o++) st = run_octave(&f, o);
  if (st != STAGE_OK) return st;
  *candidates = f.candidates;
  if (!f.full) return finish(&f);
  ask_for_capacity(&f);
  return STAGE_OK;
}
