/* The pyramid's steps on the regions around one tile, and the band of picture rows. */
#include "pipeline/frame/tiles.h"

#include <string.h>

#include "pipeline/context/options.h"

static void *buffer_of(const hs_context *c, plan_buffer which, int32_t index) {
  const plan_entry *e = plan_find(&c->plan, which, index);
  return e ? c->slab + e->offset : NULL;
}

/* Returns level 0 of an octave after the first. It is in memory as a whole, for all tiles. */
static plane_view base_of(const hs_context *c, int32_t octave) {
  const pyramid_geometry *g = &c->plan.geometry;
  return (plane_view){.data = buffer_of(c, BUFFER_BASE, octave & 1),
                      .width = g->width[octave],
                      .height = g->height[octave],
                      .stride = ((size_t)g->width[octave] + TILE_ALIGNMENT - 1) & ~(size_t)(TILE_ALIGNMENT - 1)};
}

/* Returns the first sample in memory of level 0 of octave `index`. */
static float *memory_of(const hs_context *c, int32_t index) {
  return (float *)buffer_of(c, BUFFER_LEVELS, index) + TILE_SLACK_FLOATS;
}

void tile_levels_begin(tile_levels *t, hs_context *c, const source_view *source, int32_t octave) {
  const pyramid_geometry *g = &c->plan.geometry;
  memset(t, 0, sizeof *t);
  t->context = c;
  t->source = source;
  t->octave = octave;
  t->halos = tile_halos_of(&c->plan.request, g->octave_count - octave);
  for (int32_t i = 0; i < t->halos.octaves; i++)
    t->views[i] = (octave_view){.level_floats = c->plan.level_floats[i],
                                .stride = c->plan.stride[i],
                                .width = g->width[octave + i],
                                .height = g->height[octave + i],
                                .octave = g->first_octave + octave + i};
}

/* Sets the address of sample (0, 0) in each octave, such that the first sample in memory has its coordinates. The
   address is computed as an integer, because it may belong to no object. */
static void set_views(tile_levels *t) {
  const hs_context *c = t->context;
  for (int32_t i = 0; i < t->halos.octaves; i++) {
    int32_t x, y;
    tile_origin(&t->halos, &c->plan.request, &c->plan.geometry, t->octave, &t->core, i, &x, &y);
    const uintptr_t before = (uintptr_t)y * t->views[i].stride + (uintptr_t)x;
    t->views[i].levels = (float *)((uintptr_t)memory_of(c, i) - sizeof(float) * before);
  }
}

static plane_region region_of(const tile_levels *t, int32_t index, int32_t level) {
  return tile_region(&t->halos, &t->context->plan.geometry, t->octave, &t->core, index, level);
}

/* Returns the scratch of the steps, as a plane if a step needs one. */
static plane_view work_of(const tile_levels *t, int32_t index) {
  const octave_view *v = &t->views[index];
  return (plane_view){buffer_of(t->context, BUFFER_BLUR_WORK, 0), v->width, v->height, v->stride};
}

/* Makes level 0 of the first octave from the picture. Levels 1 and 2 are not made yet, so they can hold the doubled and
   the gray picture. */
static stage_status make_first_base(const tile_levels *t) {
  const hs_context *c = t->context;
  base_args args = {.source = *t->source,
                    .first_octave = c->options.first_octave,
                    .grid = options_upsample_grid(&c->options),
                    .border = (border_mode)options_rules(&c->options)->border_rule,
                    .filter = &c->base_filter,
                    .gray = octave_level(&t->views[0], 2),
                    .work = work_of(t, 0),
                    .doubled = octave_level(&t->views[0], 1),
                    .out = octave_level(&t->views[0], 0),
                    .region = region_of(t, 0, 0)};
  args.gray.data = memory_of(c, 0) + 2 * t->views[0].level_floats;
  if (c->options.first_octave < 0) {
    args.gray.width = t->source->width;
    args.gray.height = t->source->height;
  }
  return c->ops.base(c->queue, &args);
}

/* Copies level 0 of a later octave, which is in memory as a whole. */
static void copy_base(const tile_levels *t) {
  const plane_view from = base_of(t->context, t->octave), to = octave_level(&t->views[0], 0);
  const plane_region r = region_of(t, 0, 0);
  for (int32_t y = r.y0; y < r.y1; y++)
    memcpy(to.data + (size_t)y * to.stride + (size_t)r.x0, from.data + (size_t)y * from.stride + (size_t)r.x0,
           sizeof(float) * (size_t)(r.x1 - r.x0));
}

static stage_status make_level_0(const tile_levels *t, int32_t index) {
  const hs_context *c = t->context;
  if (index > 0) {
    const halve_args args = {.in = octave_level(&t->views[index - 1], c->options.scales),
                             .out = octave_level(&t->views[index], 0),
                             .region = region_of(t, index, 0)};
    return c->ops.halve(c->queue, &args);
  }
  if (t->octave == 0) return make_first_base(t);
  copy_base(t);
  return STAGE_OK;
}

static stage_status make_octave(const tile_levels *t, int32_t index) {
  const hs_context *c = t->context;
  stage_status st = make_level_0(t, index);
  for (int32_t s = 1; s < t->halos.levels[index] && st == STAGE_OK; s++) {
    const blur_args args = {.in = octave_level(&t->views[index], s - 1),
                            .out = octave_level(&t->views[index], s),
                            .work = work_of(t, index),
                            .border = (border_mode)options_rules(&c->options)->border_rule,
                            .filter = &c->step_filter[s],
                            .region = region_of(t, index, s)};
    st = c->ops.blur(c->queue, &args);
  }
  return st;
}

stage_status tile_levels_make(tile_levels *t, const plane_region *core) {
  stage_status st = STAGE_OK;
  t->core = *core;
  set_views(t);
  for (int32_t i = 0; i < t->halos.octaves && st == STAGE_OK; i++) st = make_octave(t, i);
  return st;
}

stage_status tile_levels_give_base(const tile_levels *t) {
  const hs_context *c = t->context;
  const int32_t next = t->octave + 1;
  if (next >= c->plan.geometry.octave_count) return STAGE_OK;
  halve_args args = {.in = octave_level(&t->views[0], c->options.scales), .out = base_of(c, next)};
  args.region = (plane_region){t->core.x0 / 2, t->core.y0 / 2, (t->core.x1 + 1) / 2, (t->core.y1 + 1) / 2};
  if (args.region.x1 > args.out.width) args.region.x1 = args.out.width;
  if (args.region.y1 > args.out.height) args.region.y1 = args.out.height;
  return c->ops.halve(c->queue, &args);
}

/* ------------------------------------------------- the band of rows of a picture that is read from a file */

static bool keep(row_feed *feed, hs_status st) {
  feed->failure = st;
  return st == HS_OK;
}

bool row_band_begin(row_band *b, row_feed *feed, int32_t height, void *memory, size_t bytes) {
  const size_t rows = bytes / feed->row_bytes;
  *b = (row_band){.feed = feed, .memory = memory, .height = height, .capacity = height};
  if (rows < (size_t)height) b->capacity = (int32_t)rows;
  return keep(feed, feed->rewind(feed->reader));
}

static uint8_t *row_at(const row_band *b, int32_t y) { return b->memory + (size_t)(y - b->first) * b->feed->row_bytes; }

/* Drops the rows above y. Rows above y that are not read yet are read and overwritten. */
static bool move_to(row_band *b, int32_t y) {
  bool ok = true;
  if (y >= b->end) {
    for (; b->end < y && ok; b->end++) ok = keep(b->feed, b->feed->read(b->feed->reader, b->memory));
    b->first = b->end;
    return ok;
  }
  memmove(b->memory, row_at(b, y), (size_t)(b->end - y) * b->feed->row_bytes);
  b->first = y;
  return true;
}

bool row_band_hold(row_band *b, int32_t y0, int32_t y1, source_view *source) {
  assert(y0 >= b->first && y1 - y0 <= b->capacity);
  bool ok = y0 == b->first || move_to(b, y0);
  for (; ok && b->end < y1; b->end++) ok = keep(b->feed, b->feed->read(b->feed->reader, row_at(b, b->end)));
  /* computed as an integer, because the address may belong to no object */
  source->data = (const void *)((uintptr_t)b->memory - (uintptr_t)b->first * b->feed->row_bytes);
  source->stride_bytes = b->feed->row_bytes;
  return ok;
}

bool row_band_finish(row_band *b) { return move_to(b, b->height); }
