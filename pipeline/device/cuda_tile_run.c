/* Runs one tile on a device: the stages of cuda_record.c on a crop, one after another on the context's stream. */
#include <string.h>

#include "cuda/keypoints/keypoints_cuda.h"
#include "pipeline/context/engine.h"
#include "pipeline/context/options.h"
#include "pipeline/device/cuda_engine.h"
#include "pipeline/device/cuda_state.h"

/* Indices of a tile's counts in BUFFER_COUNTS. */
enum { COUNT_KEYPOINTS, COUNT_FEATURES, COUNT_ESCAPED = 3, COUNTS_BYTES = 4 * sizeof(uint32_t) };

/* A tile being run. */
typedef struct tile_run {
  hs_context *context;
  cuda_state *state;
  const frame_request *request;
  const device_tile *tile;
  int32_t octaves;                     /* the tile's own octave and those over which descriptors are pooled */
  plane_region crop;                   /* in samples of the tile's octave */
  octave_view crops[TILE_OCTAVES_MAX]; /* crop of each octave, viewed as if it were all of it */
  plane_view blur_work[TILE_OCTAVES_MAX];
  cuda_frame_view view;
} tile_run;

static void *buffer(const cuda_state *s, plan_buffer which, int32_t index) {
  const plan_entry *e = plan_find(&s->plan, which, index);
  return e ? s->slab + e->offset : NULL;
}

/* ------------------------------------------------- views */

static void view_octaves(tile_run *t) {
  const frame_plan *plan = &t->state->plan;
  const pyramid_geometry *g = &plan->geometry;
  cuda_frame_view *v = &t->view;
  int32_t width = t->crop.x1 - t->crop.x0, height = t->crop.y1 - t->crop.y0;
  for (int32_t i = 0; i < t->octaves; i++, width /= 2, height /= 2) {
    const int32_t o = t->tile->octave + i;
    t->crops[i] = (octave_view){.levels = buffer(t->state, BUFFER_LEVELS, i),
                                .level_floats = plan->level_floats[i],
                                .stride = plan->stride[i],
                                .width = width,
                                .height = height,
                                .octave = g->first_octave + o};
    t->blur_work[i] = (plane_view){buffer(t->state, BUFFER_BLUR_WORK, i), width, height, plan->stride[i]};
    /* Address at which sample (0, 0) of the octave would be, computed as a number, because it may belong to no
       object. */
    const size_t before = (size_t)(t->crop.y0 >> i) * plan->stride[i] + (size_t)(t->crop.x0 >> i);
    v->octaves[i] = t->crops[i];
    v->octaves[i].levels = (float *)((uintptr_t)t->crops[i].levels - sizeof(float) * before);
    v->octaves[i].width = g->width[o];
    v->octaves[i].height = g->height[o];
    v->mask_offset[i] = i > 0 ? v->mask_words : 0;
  }
}

static void view_part(tile_run *t) {
  const device_tile *tile = t->tile;
  const plane_view plane = {NULL, t->state->plan.geometry.width[tile->octave],
                            t->state->plan.geometry.height[tile->octave], 0};
  cuda_tile_part *part = &t->view.part;
  *part = (cuda_tile_part){.tiled = true,
                           .masked = t->crop,
                           .search = tile->core,
                           .follow = region_about(tile->core, TILE_HALO, &plane),
                           .escaped = buffer(t->state, BUFFER_ESCAPED, 0),
                           .escaped_capacity = TILE_DEVICE_ESCAPED,
                           .escaped_count = (uint32_t *)buffer(t->state, BUFFER_COUNTS, 0) + COUNT_ESCAPED};
  if (tile->seed) part->seed = *tile->seed;
}

static void view_lists(tile_run *t) {
  cuda_state *s = t->state;
  const plan_request *p = &s->plan.request;
  cuda_frame_view *v = &t->view;
  uint32_t *counts = buffer(s, BUFFER_COUNTS, 0);
  const cuda_keypoint_capacity capacity =
      cuda_list_capacity(v->mask_words, p->keypoint_capacity, p->feature_capacity, 0);
  v->params = t->context->params;
  v->filter =
      (position_filter){.x0 = INT32_MIN, .y0 = INT32_MIN, .x1 = INT32_MAX, .y1 = INT32_MAX}; /* the host filters */
  v->keypoints = workspace_keypoints(buffer(s, BUFFER_KEYPOINTS, 0), p->keypoint_capacity, &counts[COUNT_KEYPOINTS]);
  v->shapes = buffer(s, BUFFER_SHAPES, 0);
  v->oriented = workspace_features(buffer(s, BUFFER_FEATURES, 0), p->feature_capacity, &counts[COUNT_FEATURES]);
  v->features = v->oriented;
  v->scales = s->scales;
  (void)cuda_keypoint_scratch_layout(&capacity, buffer(s, BUFFER_SCRATCH, 0), &v->scratch);
}

static void view_tile(tile_run *t) {
  const frame_plan *plan = &t->state->plan;
  cuda_frame_view *v = &t->view;
  const int32_t octaves_left = plan->geometry.octave_count - t->tile->octave;
  t->octaves = tile_halos_of(&plan->request, octaves_left).octaves;
  t->crop = cuda_tile_crop(&plan->request, &plan->geometry, t->tile->octave, &t->tile->core);
  v->octave_count = t->octaves;
  v->first_octave = plan->geometry.first_octave + t->tile->octave;
  v->group = 1;
  v->candidate_words = buffer(t->state, BUFFER_CANDIDATES, 0);
  v->settled_words = buffer(t->state, BUFFER_SETTLED, 0);
  view_part(t);
  v->mask_words = ((uint32_t)cuda_part_words(&v->part, t->context->params.scales) + 3u) & ~3u;
  view_octaves(t);
  view_lists(t);
}

/* ------------------------------------------------- levels */

/* Returns level 0 of an octave after the first. It is in memory for all tiles. */
static plane_view base_of(const cuda_state *s, int32_t octave) {
  const pyramid_geometry *g = &s->plan.geometry;
  return (plane_view){buffer(s, BUFFER_BASE, octave & 1), g->width[octave], g->height[octave],
                      cuda_tile_base_stride(&s->plan, octave)};
}

/* Copies a rectangle of samples from (from_x, from_y) of one plane to (to_x, to_y) of another. */
static stage_status copy_plane(const plane_view *to, int32_t to_x, int32_t to_y, const plane_view *from, int32_t from_x,
                               int32_t from_y, int32_t width, int32_t height, cuda_stream stream) {
  if (width <= 0 || height <= 0) return STAGE_OK;
  return device_copy_rows_to(to->data + (size_t)to_y * to->stride + (size_t)to_x, to->stride * sizeof(float),
                             from->data + (size_t)from_y * from->stride + (size_t)from_x, from->stride * sizeof(float),
                             (size_t)width * sizeof(float), (size_t)height, stream);
}

/* Uploads the pixels of the crop. */
static stage_status upload(const tile_run *t, source_view *crop) {
  cuda_state *s = t->state;
  const source_view *whole = &t->tile->source;
  const size_t pixel_bytes = source_pixel_bytes(whole->type, whole->layout);
  const plane_region r = cuda_tile_pixels(&s->plan.request, &s->plan.geometry, &t->crop);
  frame_request request = {.source = *whole};
  /* Computed as a number: where row 0 would be may belong to no object. */
  request.source.data =
      (const void *)((uintptr_t)whole->data + (uintptr_t)r.y0 * whole->stride_bytes + (uintptr_t)r.x0 * pixel_bytes);
  request.source.width = r.x1 - r.x0;
  request.source.height = r.y1 - r.y0;
  const frame_placement placement = {0};
  record_target target = {.source = request.source, .group = 1};
  s->picture_pitch = cuda_tile_pitch(&s->plan, pixel_bytes);
  target.source.data = buffer(s, BUFFER_PICTURE, t->tile->slot);
  target.source.stride_bytes = s->picture_pitch;
  *crop = target.source;
  stage_status st = device_stream_wait(s->upload); /* the previous tile has left the staging memory */
  if (st == STAGE_OK) st = cuda_upload_memory(t->context, &request, &placement);
  if (st == STAGE_OK) st = cuda_upload(t->context, &request, &target, 1, s->upload);
  if (st == STAGE_OK) st = device_event_record(s->uploaded[0], s->upload);
  return st == STAGE_OK ? device_event_wait(s->uploaded[0], s->stream) : st;
}

/* Makes level 0 of the first octave's crop from the picture. */
static stage_status make_first_base(const tile_run *t) {
  const hs_context *c = t->context;
  const octave_view *o = &t->crops[0];
  const picture_group one = {1, 0};
  source_view source;
  const stage_status st = upload(t, &source);
  /* Levels 1 to 3 are still free, as in cuda_base_args. */
  base_args args = {.source = source,
                    .first_octave = c->options.first_octave,
                    .grid = options_upsample_grid(&c->options),
                    .border = (border_mode)options_rules(&c->options)->border_rule,
                    .filter = &c->base_filter,
                    .gray = octave_level(o, 2),
                    .work = octave_level(o, 3),
                    .doubled = octave_level(o, 1),
                    .out = octave_level(o, 0)};
  if (c->options.first_octave < 0) {
    args.gray.width = source.width;
    args.gray.height = source.height;
  }
  return st == STAGE_OK ? base_group_launch(&args, one, t->state->stream) : st;
}

static stage_status make_base(const tile_run *t) {
  if (t->tile->octave == 0) return make_first_base(t);
  const plane_view from = base_of(t->state, t->tile->octave), to = octave_level(&t->crops[0], 0);
  return copy_plane(&to, 0, 0, &from, t->crop.x0, t->crop.y0, to.width, to.height, t->state->stream);
}

/* Returns where every second sample of level S of octave `index` is written: to level 0 of the tile's next octave. If
   the tile has none: to the memory of level S+1, which is made later; from there give_base copies it. */
static plane_view halved_of(const tile_run *t, int32_t index) {
  const plane_view none = {0};
  if (index + 1 < t->octaves) return octave_level(&t->crops[index + 1], 0);
  if (index > 0 || !t->tile->gives_base) return none;
  plane_view halved = octave_level(&t->crops[0], t->context->options.scales + 1);
  halved.width /= 2;
  halved.height /= 2;
  return halved;
}

static stage_status make_level(const tile_run *t, int32_t index, int32_t level, plane_view halved) {
  const hs_context *c = t->context;
  const blur_launch_args args = {.in = octave_level(&t->crops[index], level - 1),
                                 .out = octave_level(&t->crops[index], level),
                                 .work = t->blur_work[index],
                                 .halved = halved,
                                 .border = (border_mode)options_rules(&c->options)->border_rule,
                                 .filter = &c->step_filter[level]};
  return blur_launch(&args, t->state->stream);
}

/* Copies the samples in the tile to the next octave's base. */
static stage_status give_base(const tile_run *t, const plane_view *halved) {
  const int32_t next = t->tile->octave + 1;
  if (!t->tile->gives_base || next >= t->state->plan.geometry.octave_count) return STAGE_OK;
  const plane_view to = base_of(t->state, next);
  const plane_region *core = &t->tile->core;
  const int32_t x0 = core->x0 / 2, y0 = core->y0 / 2;
  int32_t x1 = (core->x1 + 1) / 2, y1 = (core->y1 + 1) / 2;
  if (x1 > to.width) x1 = to.width;
  if (y1 > to.height) y1 = to.height;
  return copy_plane(&to, x0, y0, halved, x0 - t->crop.x0 / 2, y0 - t->crop.y0 / 2, x1 - x0, y1 - y0, t->state->stream);
}

static stage_status make_levels(const tile_run *t) {
  const int32_t scales = t->context->options.scales;
  stage_status st = make_base(t);
  for (int32_t i = 0; i < t->octaves && st == STAGE_OK; i++) {
    const plane_view none = {0}, halved = halved_of(t, i);
    for (int32_t s = 1; s <= scales && st == STAGE_OK; s++) st = make_level(t, i, s, s == scales ? halved : none);
    if (i == 0 && st == STAGE_OK) st = give_base(t, &halved);
    for (int32_t s = scales + 1; i == 0 && s <= scales + 2 && st == STAGE_OK; s++) st = make_level(t, 0, s, none);
  }
  return st;
}

/* ------------------------------------------------- keypoints */

static stage_status search(const tile_run *t) {
  const cuda_frame_view *v = &t->view;
  const extrema_octave octave = {t->crops[0], NULL, {v->candidate_words, mask_words_per_row(t->crop.x1 - t->crop.x0)}};
  const extrema_launch_args args = {.octaves = &octave, .octave_count = 1, .params = t->context->params, .group = 1};
  const stage_status st = t->tile->seed ? STAGE_OK : extrema_launch(&args, t->state->stream);
  return st == STAGE_OK ? cuda_tile_candidates_launch(v, t->state->stream) : st;
}

/* Returns views of a tile's results in the pinned block, at an address of the host or of the device. The lists are laid
   out as on the device. */
static cuda_tile_lists view_results(const cuda_state *s, int32_t slot, unsigned char *block, frame_readback *readback) {
  const plan_request *p = &s->plan.request;
  cuda_tile_lists lists = {.counts = &readback->tile_counts[slot]};
  block += (size_t)slot * cuda_tile_result_bytes(&s->plan);
  block += (size_t)p->feature_capacity * p->descriptor_bytes; /* first: kernels write them as vectors */
  lists.keypoints = workspace_keypoints(block, p->keypoint_capacity, &lists.counts->keypoints);
  block += (size_t)p->keypoint_capacity * KEYPOINT_BYTES;
  lists.features = workspace_features(block, p->feature_capacity, &lists.counts->features);
  block += (size_t)p->feature_capacity * FEATURE_BYTES;
  if (p->affine) lists.shapes = (affine_shape *)(void *)block;
  if (p->affine) block += (size_t)p->keypoint_capacity * sizeof *lists.shapes;
  lists.escaped = (escaped_candidate *)(void *)block;
  return lists;
}

static stage_status find_keypoints(const tile_run *t) {
  cuda_state *s = t->state;
  const cuda_frame_view *v = &t->view;
  const int32_t slot = t->tile->slot;
  unsigned char *counts = cuda_slab_buffer(s, BUFFER_COUNTS), *block = s->results[s->set].block->device;
  cuda_outputs *outputs = (cuda_outputs *)(void *)(counts + DEVICE_OUTPUTS_AT),
               *from = &s->readback->tile_outputs[slot];
  const cuda_tile_lists lists = view_results(s, slot, block, s->d_readback);
  *from = (cuda_outputs){.descriptors = block + (size_t)slot * cuda_tile_result_bytes(&s->plan)};
  stage_status st = device_clear(counts, COUNTS_BYTES, s->stream);
  if (st == STAGE_OK) st = device_copy_to(outputs, from, sizeof *outputs, s->stream);
  if (st == STAGE_OK) st = cuda_keypoint_reset_launch(v, s->stream);
  if (st == STAGE_OK) st = search(t);
  if (st == STAGE_OK) st = cuda_refine_launch(v, s->variants.refine, s->stream);
  if (st == STAGE_OK) st = cuda_locate_launch(v, s->stream);
  if (st == STAGE_OK && v->shapes) st = cuda_affine_shape_launch(v, s->stream);
  if (st == STAGE_OK) st = cuda_orient_launch(v, s->variants.orient, s->stream);
  if (st == STAGE_OK && t->request->descriptor_bytes > 0)
    st = cuda_describe_launch(v, s->variants.describe, outputs, s->stream);
  if (st == STAGE_OK) st = cuda_tile_lists_launch(v, &lists, s->stream);
  return st == STAGE_OK ? device_event_record(s->tile_ended[slot], s->stream) : st;
}

/* ------------------------------------------------- calls */

/* Waits for both streams: copies may still be reading the caller's picture, and kernels launched before the failure may
   run. */
static void wait_for_all(const cuda_state *s) {
  (void)device_stream_wait(s->upload);
  (void)device_stream_wait(s->stream);
}

void cuda_tiles_abandon(hs_context *c) {
  int32_t previous;
  if (device_enter(cuda_of(c)->device, &previous) != STAGE_OK) return;
  wait_for_all(cuda_of(c));
  device_leave(previous);
}

/* Ends a call: turns the stages' status into the call's, and waits for all work after a failure. */
static hs_status end_call(hs_context *c, stage_status st, int32_t previous) {
  const hs_status status = st == STAGE_OK ? HS_OK : cuda_failure(c, st, "running a tile");
  if (st != STAGE_OK) wait_for_all(cuda_of(c));
  device_leave(previous);
  return status;
}

hs_status cuda_tile_begin(hs_context *c, const frame_request *r, const device_tile *tile) {
  tile_run t = {.context = c, .state = cuda_of(c), .request = r, .tile = tile};
  int32_t previous;
  if (device_enter(cuda_of(c)->device, &previous) != STAGE_OK)
    return cuda_failure(c, STAGE_DEVICE, "entering the device");
  view_tile(&t);
  stage_status st = make_levels(&t);
  if (st == STAGE_OK) st = find_keypoints(&t);
  return end_call(c, st, previous);
}

hs_status cuda_tile_finish(hs_context *c, const device_tile *tile, device_tile_result *result) {
  cuda_state *s = cuda_of(c);
  unsigned char *block = s->results[s->set].block->host;
  const cuda_tile_lists lists = view_results(s, tile->slot, block, s->readback);
  int32_t previous;
  *result = (device_tile_result){0};
  if (device_enter(s->device, &previous) != STAGE_OK) return cuda_failure(c, STAGE_DEVICE, "entering the device");
  const stage_status st = device_event_finish(s->tile_ended[tile->slot]);
  if (st != STAGE_OK) return end_call(c, st, previous);
  const cuda_tile_counts *n = lists.counts;
  *result =
      (device_tile_result){.candidates = tile->seed ? 0 : n->candidates,
                           .keypoints = n->keypoints,
                           .features = n->features,
                           .escaped = n->escaped,
                           .keypoint_list = lists.keypoints,
                           .feature_list = lists.features,
                           .shapes = lists.shapes,
                           .descriptors = block + (size_t)tile->slot * cuda_tile_result_bytes(&s->plan),
                           .escaped_list = lists.escaped,
                           .complete = n->keypoints <= lists.keypoints.capacity &&
                                       n->features <= lists.features.capacity && n->escaped <= TILE_DEVICE_ESCAPED};
  return end_call(c, st, previous);
}
