/* Records the stages of a frame into a graph, in the order in which the device runs them. */
#include "pipeline/device/cuda_state.h"

#include "cuda/keypoints/keypoints_cuda.h"
#include "cuda/pyramid/pyramid_cuda.h"
#include "cuda/runtime/device.h"
#include "pipeline/base/memory.h"
#include "pipeline/context/engine.h"
#include "pipeline/context/options.h"

/* A frame being recorded. */
typedef struct recording {
  const hs_context *context;
  const cuda_state *state;
  const frame_request *request;
  cuda_frame_view view;
  extrema_octave octaves[OCTAVES_MAX];
  plane_view blur_work[OCTAVES_MAX];
  float *dog[OCTAVES_MAX];
  plane_view handover;
  unsigned char *slab; /* slab part of the viewed picture */
  picture_group group;
  bool user_keypoints; /* the lists hold user keypoints */
} recording;

static unsigned char *buffer(const cuda_state *s, unsigned char *slab, plan_buffer which, int32_t octave) {
  const plan_entry *e = plan_find(&s->plan, which, octave);
  return e ? slab + e->offset : NULL;
}

static octave_view view_octave(const cuda_state *s, unsigned char *slab, int32_t o) {
  const pyramid_geometry *g = &s->plan.geometry;
  const octave_view v = {.levels = (float *)(void *)buffer(s, slab, BUFFER_LEVELS, o),
                         .level_floats = s->plan.level_floats[o],
                         .stride = s->plan.stride[o],
                         .width = g->width[o],
                         .height = g->height[o],
                         .octave = g->first_octave + o};
  return v;
}

/* Whether levels of small octaves are made by chains, several in a launch. */
static bool has_chains(const recording *r) {
  const pyramid_variant variant = r->state->variants.pyramid;
  return variant == PYRAMID_SPLIT || variant == PYRAMID_UBER_CHAINS;
}

/* Levels first..last of octave o. */
static chain_launch_args chain_of(const recording *r, int32_t o, int32_t first, int32_t last) {
  const hs_context *c = r->context;
  return (chain_launch_args){.octave = r->view.octaves[o],
                             .first_level = first,
                             .count = last - first + 1,
                             .border = (border_mode)options_rules(&c->options)->border_rule,
                             .filters = c->step_filter,
                             .group = r->group};
}

/* Returns where octave o stores its DoG levels; null: nowhere. */
static float *dog_of(const recording *r, int32_t o) {
  const chain_launch_args chain = chain_of(r, o, 1, r->context->options.scales);
  if (has_chains(r) && chain_fits(&chain)) return NULL;
  return (float *)(void *)buffer(r->state, r->slab, BUFFER_DOG, o);
}

static void view_octaves(recording *r) {
  const cuda_state *s = r->state;
  const pyramid_geometry *g = &s->plan.geometry;
  cuda_frame_view *v = &r->view;
  v->octave_count = g->octave_count;
  v->first_octave = g->first_octave;
  v->mask_words = s->mask_words;
  v->candidate_words = (uint32_t *)(void *)buffer(s, r->slab, BUFFER_CANDIDATES, 0);
  v->settled_words = (uint32_t *)(void *)buffer(s, r->slab, BUFFER_SETTLED, 0);
  for (int32_t o = 0; o < g->octave_count; o++) {
    float *work = (float *)(void *)buffer(s, r->slab, BUFFER_BLUR_WORK, o);
    v->octaves[o] = view_octave(s, r->slab, o);
    v->mask_offset[o] = s->mask_offset[o];
    r->dog[o] = dog_of(r, o);
    r->blur_work[o] = (plane_view){work, g->width[o], g->height[o], s->plan.stride[o]};
    r->octaves[o] = (extrema_octave){
        v->octaves[o], r->dog[o], {v->candidate_words + s->mask_offset[o], mask_words_per_row(g->width[o])}};
  }
}

static void view_lists(recording *r) {
  const cuda_state *s = r->state;
  const plan_request *p = &s->plan.request;
  cuda_frame_view *v = &r->view;
  uint32_t *counts = (uint32_t *)(void *)buffer(s, r->slab, BUFFER_COUNTS, 0);
  const cuda_keypoint_capacity capacity = cuda_list_capacity(s->mask_words, p->keypoint_capacity, p->feature_capacity,
                                                             options_device_cells(&r->context->options));
  v->params = r->context->params;
  v->filter = r->request->filter;
  v->filtered = v->filter.mask || r->context->options.region_width > 0;
  if (v->filter.mask) {
    v->filter.mask = buffer(s, r->slab, BUFFER_MASK, 0);
    v->filter.mask_stride = s->mask_pitch;
  }
  v->max_features = r->user_keypoints ? 0 : options_device_max(&r->context->options);
  v->selection = (select_rule)r->context->options.selection;
  const uint32_t cells = options_device_cells(&r->context->options);
  if (cells > 0 && v->selection == SELECT_LEVELS) v->selection = SELECT_LARGEST;
  if (cells > 1) /* with one cell, ranks equal the order of plain selection */
    v->grid = (grid_shape){r->context->options.grid_columns, r->context->options.grid_rows, p->width, p->height};
  v->keypoints = workspace_keypoints(buffer(s, r->slab, BUFFER_KEYPOINTS, 0), p->keypoint_capacity, &counts[0]);
  v->shapes = (affine_shape *)(void *)buffer(s, r->slab, BUFFER_SHAPES, 0);
  v->oriented = workspace_features(buffer(s, r->slab, BUFFER_FEATURES, 0), p->feature_capacity, &counts[1]);
  v->features = v->oriented;
  if (s->expected_samples > 0) v->features.capacity = s->kept_capacity; /* the list itself has the plan's capacity */
  if (v->max_features > 0)
    v->features = workspace_features(buffer(s, r->slab, BUFFER_SELECTED, 0), s->kept_capacity, &counts[2]);
  v->scales = s->scales;
  (void)cuda_keypoint_scratch_layout(&capacity, buffer(s, r->slab, BUFFER_SCRATCH, 0), &v->scratch);
}

base_args cuda_base_args(const hs_context *c, const source_view *source) {
  const octave_view o = view_octave(cuda_of(c), cuda_of(c)->slab, 0);
  /* Levels 1 to 3 are still free. Unless one kernel does all steps at once, they hold the doubled picture, the gray
     picture and filtered rows. */
  base_args args = {.source = *source,
                    .first_octave = c->options.first_octave,
                    .grid = options_upsample_grid(&c->options),
                    .border = (border_mode)options_rules(&c->options)->border_rule,
                    .filter = &c->base_filter,
                    .gray = octave_level(&o, 2),
                    .work = octave_level(&o, 3),
                    .doubled = octave_level(&o, 1),
                    .out = octave_level(&o, 0)};
  if (c->options.first_octave < 0) {
    args.gray.width = source->width;
    args.gray.height = source->height;
  }
  return args;
}

/* Returns where level 0 of octave o + 1 is written: to that octave, or to the host if the host makes that octave. */
static plane_view next_base(const recording *r, int32_t o) {
  const plane_view none = {0};
  if (o + 1 < r->view.octave_count) return octave_level(&r->view.octaves[o + 1], 0);
  return o + 1 == r->state->octaves_searched ? r->handover : none;
}

/* Copies level 0 of the host's first octave to the host and sets handed_over. With pooling the device has that octave
   too. */
static stage_status record_handover(const recording *r) {
  const cuda_state *s = r->state;
  const int32_t first = s->octaves_searched;
  stage_status st = STAGE_OK;
  if (first < r->view.octave_count) {
    const plane_view level = octave_level(&r->view.octaves[first], 0);
    assert(level.stride == r->handover.stride && level.height == r->handover.height);
    st = device_copy_from(s->handover, level.data, level.stride * (size_t)level.height * sizeof(float), s->stream);
  }
  return st == STAGE_OK ? handover_launch(&s->d_readback->handed_over, s->stream) : st;
}

/* Makes level s of octave o from level s - 1. `halved`: also writes it as level 0 of the next octave. */
static stage_status record_level(const recording *r, int32_t o, int32_t s, bool halved, cuda_stream stream) {
  const hs_context *c = r->context;
  const octave_view *v = &r->view.octaves[o];
  blur_launch_args args = {.in = octave_level(v, s - 1),
                           .out = octave_level(v, s),
                           .work = r->blur_work[o],
                           .border = (border_mode)options_rules(&c->options)->border_rule,
                           .filter = &c->step_filter[s],
                           .group = r->group};
  if (halved) args.halved = next_base(r, o);
  if (!r->dog[o]) return blur_launch(&args, stream);
  const plane_view dog = {r->dog[o] + (size_t)(s - 1) * v->level_floats, v->width, v->height, v->stride};
  if (r->state->variants.pyramid == PYRAMID_DOG) {
    const stage_status st = blur_launch(&args, stream);
    return st == STAGE_OK ? dog_launch(&args.in, &args.out, &dog, stream) : st;
  }
  args.dog = dog;
  return uber_level_launch(&args, stream);
}

/* Makes levels first..last of octave o, in one launch if a chain fits. `halved`: also writes the last as level 0 of the
   next octave. */
static stage_status record_levels(const recording *r, int32_t o, int32_t first, int32_t last, bool halved,
                                  cuda_stream stream) {
  chain_launch_args chain = chain_of(r, o, first, last);
  if (halved) chain.halved = next_base(r, o);
  if (has_chains(r) && !r->dog[o] && chain_fits(&chain)) return chain_launch(&chain, stream);
  stage_status st = STAGE_OK;
  for (int32_t s = first; s <= last && st == STAGE_OK; s++) st = record_level(r, o, s, halved && s == last, stream);
  return st;
}

/* Returns the side stream for an octave's levels S+1 and S+2 and its search. No other octave waits for these. */
static cuda_stream side_of(const recording *r, int32_t o) {
  return r->state->side[o < SIDE_STREAMS ? o : SIDE_STREAMS - 1];
}

static stage_status record_upper_levels(const recording *r, int32_t o) {
  const cuda_state *s = r->state;
  const int32_t scales = r->context->options.scales;
  stage_status st = device_event_record(s->forked[o], s->stream);
  if (st == STAGE_OK) st = device_event_wait(s->forked[o], side_of(r, o));
  return st == STAGE_OK ? record_levels(r, o, scales + 1, scales + 2, false, side_of(r, o)) : st;
}

static stage_status record_extrema(const recording *r, int32_t o) {
  const extrema_launch_args args = {.octaves = &r->octaves[o],
                                    .octave_count = 1,
                                    .params = r->context->params,
                                    .group = r->group.count,
                                    .group_stride_bytes = r->group.stride_bytes};
  return extrema_launch(&args, side_of(r, o));
}

/* Makes `waiting` wait for a side stream. */
static stage_status join(const cuda_state *s, int side, cuda_stream waiting) {
  const stage_status st = device_event_record(s->joined[side], s->side[side]);
  return st == STAGE_OK ? device_event_wait(s->joined[side], waiting) : st;
}

/* Makes levels 1..S of the octaves from `first` on. Each octave also makes level 0 of the next. Orientation and
   descriptors read levels 0..S. */
static stage_status record_described_levels(const recording *r, int32_t first) {
  stage_status st = STAGE_OK;
  for (int32_t o = first; o < r->view.octave_count && st == STAGE_OK; o++)
    st = record_levels(r, o, 1, r->context->options.scales, true, r->state->stream);
  return st;
}

static stage_status record_base(const recording *r, const record_target *target) {
  const base_args base = cuda_base_args(r->context, &target->base);
  return target->base_apart ? STAGE_OK : base_group_launch(&base, r->group, r->state->stream);
}

/* Makes all levels and candidate masks. Levels 1..S are made octave after octave; work that no later level needs runs
   at the same time on side streams. */
static stage_status record_pyramid(const recording *r, const record_target *target) {
  const int32_t octaves = r->state->octaves_searched;
  stage_status st = record_base(r, target);
  for (int32_t o = 0; o < octaves && st == STAGE_OK; o++) {
    st = record_levels(r, o, 1, r->context->options.scales, true, r->state->stream);
    if (st == STAGE_OK && o + 1 == octaves && r->handover.data) st = record_handover(r);
    if (st == STAGE_OK) st = record_upper_levels(r, o);
    if (st == STAGE_OK) st = record_extrema(r, o);
  }
  if (st == STAGE_OK) st = record_described_levels(r, octaves);
  for (int side = 0; side < SIDE_STREAMS && side < octaves && st == STAGE_OK; side++)
    st = join(r->state, side, r->state->stream);
  return st;
}

/* Addresses of the results, in the slab. */
_Static_assert(DEVICE_OUTPUTS_AT % sizeof(void *) == 0 &&
                   DEVICE_OUTPUTS_AT + sizeof(cuda_outputs) <= DEVICE_COUNTS_BYTES,
               "room for where the results go");
static cuda_outputs *outputs_of(const recording *r) {
  return (cuda_outputs *)(void *)(buffer(r->state, r->slab, BUFFER_COUNTS, 0) + DEVICE_OUTPUTS_AT);
}

/* Writes the public records at the same time as the descriptors: neither waits for the other. */
static stage_status record_results(const recording *r) {
  const cuda_state *s = r->state;
  stage_status st = device_event_record(s->listed, s->keypoint);
  if (st == STAGE_OK) st = device_event_wait(s->listed, s->side[0]);
  if (st == STAGE_OK) st = cuda_results_launch(&r->view, outputs_of(r), s->d_readback->counts, s->side[0]);
  if (st == STAGE_OK && r->request->descriptor_bytes > 0)
    st = cuda_describe_launch(&r->view, s->variants.describe, outputs_of(r), s->keypoint);
  return st == STAGE_OK ? join(s, 0, s->keypoint) : st;
}

/* Selects the pictures of a group one after another, because selection has no kernels for groups. */
static stage_status record_selection(const recording *r) {
  stage_status st = STAGE_OK;
  for (int32_t i = 0; i < r->group.count && st == STAGE_OK; i++) {
    recording one = *r;
    one.slab = r->state->slab + (size_t)i * r->group.stride_bytes;
    view_octaves(&one);
    view_lists(&one);
    st = cuda_select_launch(&one.view, r->state->keypoint);
  }
  return st;
}

static stage_status record_shapes(const recording *r) {
  return r->view.shapes ? cuda_affine_shape_launch(&r->view, r->state->keypoint) : STAGE_OK;
}

/* Records the stages after the search on the keypoint stream. They begin when the main stream's levels are made, and
   the main stream waits for them. */
static stage_status record_keypoints(const recording *r) {
  const cuda_state *s = r->state;
  const cuda_frame_view *v = &r->view;
  stage_status st = device_event_record(s->searched, s->stream);
  if (st == STAGE_OK) st = device_event_wait(s->searched, s->keypoint);
  if (st == STAGE_OK) st = cuda_refine_launch(v, s->variants.refine, s->keypoint);
  if (st == STAGE_OK) st = cuda_locate_launch(v, s->keypoint);
  if (st == STAGE_OK) st = record_shapes(r);
  if (st == STAGE_OK) st = cuda_orient_launch(v, s->variants.orient, s->keypoint);
  if (st == STAGE_OK && v->max_features > 0) st = record_selection(r);
  if (st == STAGE_OK) st = record_results(r);
  if (st == STAGE_OK) st = device_event_record(s->described, s->keypoint);
  return st == STAGE_OK ? device_event_wait(s->described, s->stream) : st;
}

/* Records a frame with user keypoints: levels, missing orientations, descriptors. */
static stage_status record_user(const recording *r, const record_target *target) {
  const cuda_state *s = r->state;
  stage_status st = record_base(r, target);
  if (st == STAGE_OK) st = record_described_levels(r, 0);
  if (st == STAGE_OK) st = join(s, 0, s->stream); /* after this, the counters are cleared */
  if (st == STAGE_OK) st = device_event_record(s->searched, s->stream);
  if (st == STAGE_OK) st = device_event_wait(s->searched, s->keypoint);
  if (st == STAGE_OK) st = record_shapes(r);
  if (st == STAGE_OK)
    st = target->user_keypoints.oriented ? cuda_work_order_launch(&r->view, s->keypoint)
                                         : cuda_orient_launch(&r->view, s->variants.orient, s->keypoint);
  if (st == STAGE_OK) st = record_results(r);
  if (st == STAGE_OK) st = device_event_record(s->described, s->keypoint);
  return st == STAGE_OK ? device_event_wait(s->described, s->stream) : st;
}

/* Clears the counters and copies the host's words while the pyramid is computed. They run on the first side stream,
   which is joined before their use. */
static stage_status record_reset(const recording *r) {
  const cuda_state *s = r->state;
  stage_status st = device_event_record(s->begun, s->stream);
  if (st == STAGE_OK) st = device_event_wait(s->begun, s->side[0]);
  if (st == STAGE_OK) st = cuda_keypoint_reset_launch(&r->view, s->side[0]);
  const cuda_outputs *outputs = &s->readback->outputs;
  return st == STAGE_OK ? device_copy_to(outputs_of(r), outputs, sizeof *outputs, s->side[0]) : st;
}

static recording recording_of(const hs_context *c, const frame_request *request, const record_target *target) {
  const recording r = {.context = c,
                       .state = cuda_of(c),
                       .request = request,
                       .handover = target->handover,
                       .slab = cuda_of(c)->slab,
                       .group = {target->group, cuda_of(c)->plan.device_bytes},
                       .user_keypoints = target->user_keypoints.count > 0};
  return r;
}

void cuda_record_views(const hs_context *c, const frame_request *request, const record_target *target,
                       cuda_frame_view *views) {
  for (int32_t i = 0; i < target->group; i++) {
    recording r = recording_of(c, request, target);
    r.slab += (size_t)i * r.group.stride_bytes;
    view_octaves(&r);
    view_lists(&r);
    views[i] = r.view;
  }
}

stage_status cuda_record_frame(const hs_context *c, const frame_request *request, const record_target *target) {
  recording r = recording_of(c, request, target);
  view_octaves(&r);
  view_lists(&r);
  r.view.group = target->group;
  r.view.group_views = target->group_views;
  r.view.group_stride_bytes = r.group.stride_bytes;
  assert(r.view.octave_count > 0);
  stage_status st = record_reset(&r);
  if (st == STAGE_OK && request->equalize) st = cuda_record_equalize(c, target);
  if (r.user_keypoints) return st == STAGE_OK ? record_user(&r, target) : st;
  if (st == STAGE_OK) st = record_pyramid(&r, target);
  return st == STAGE_OK ? record_keypoints(&r) : st;
}

/* ------------------------------------------------- equalization: two kernels per picture, pictures in parallel */

size_t cuda_equalized_pitch(const source_view *v) {
  return v->layout == SOURCE_GRAY ? 0 : ((size_t)v->width + 127) & ~(size_t)127;
}

stage_status cuda_equalize_memory(cuda_state *s) {
  if (s->zeros) return STAGE_OK;
  void *zeros = NULL;
  stage_status st = device_alloc(&zeros, CUDA_EQUALIZE_BYTES);
  if (st == STAGE_OK) st = device_clear(zeros, CUDA_EQUALIZE_BYTES, s->stream);
  if (st == STAGE_OK) st = device_stream_wait(s->stream);
  if (st == STAGE_OK)
    s->zeros = zeros;
  else
    device_free(zeros);
  return st;
}

/* Equalises picture i on `stream`. scratch: index of the histogram; streams that run at the same time use different
   ones. */
static stage_status equalize_one(const hs_context *c, const record_target *target, int32_t i, int32_t scratch,
                                 cuda_stream stream) {
  const cuda_state *s = cuda_of(c);
  const source_view *v = &target->base;
  const size_t apart = (size_t)i * s->plan.device_bytes;
  uint8_t *picture = (uint8_t *)(uintptr_t)v->data + apart;
  uint64_t *counts = (uint64_t *)(void *)(cuda_slab_buffer(s, BUFFER_HISTOGRAM) + apart);
  const prim_view view = {picture, (size_t)v->width, (size_t)v->height, v->stride_bytes, PRIM_U8};
  const histogram_args histogram = {.view = view,
                                    .counts = counts,
                                    .scratch = (histogram_scratch *)(void *)s->zeros + scratch,
                                    .processors = s->info.multiprocessors};
  const equalize_args levels = {.view = view,
                                .counts = counts,
                                .out = picture,
                                .out_stride_bytes = v->stride_bytes,
                                .processors = s->info.multiprocessors};
  const stage_status st = histogram_launch(&histogram, stream);
  return st == STAGE_OK ? equalize_launch(&levels, stream) : st;
}

stage_status cuda_record_equalize(const hs_context *c, const record_target *target) {
  const cuda_state *s = cuda_of(c);
  const picture_group group = {target->group, s->plan.device_bytes};
  const int32_t streams = target->group < SIDE_STREAMS ? target->group : SIDE_STREAMS;
  stage_status st = STAGE_OK;
  if (target->source.layout != SOURCE_GRAY)
    st = gray_launch(&target->source, (uint8_t *)(uintptr_t)target->base.data, target->base.stride_bytes, group,
                     s->stream);
  if (st != STAGE_OK) return st;
  if (streams == 1) return equalize_one(c, target, 0, 0, s->stream);
  st = device_event_record(s->equalizing, s->stream);
  for (int32_t i = 0; i < streams && st == STAGE_OK; i++) st = device_event_wait(s->equalizing, s->side[i]);
  for (int32_t i = 0; i < target->group && st == STAGE_OK; i++)
    st = equalize_one(c, target, i, i % streams, s->side[i % streams]);
  for (int32_t i = 0; i < streams && st == STAGE_OK; i++) {
    st = device_event_record(s->joined[i], s->side[i]);
    if (st == STAGE_OK) st = device_event_wait(s->joined[i], s->stream);
  }
  return st;
}
