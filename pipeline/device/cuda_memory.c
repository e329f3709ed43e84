/* Memory for a frame on a device: its plan, the slab, and pinned memory for results. */
#include "pipeline/base/features.h"
#include "pipeline/base/memory.h"
#include "pipeline/context/options.h"
#include "pipeline/device/cuda_engine.h"
#include "pipeline/device/cuda_state.h"

_Static_assert((int)OPTIONS_DEVICE_CELLS_MAX == GRID_DEVICE_CELLS, "cells of a grid on a device");

enum { PICTURE_ALIGNMENT = 128 };

static size_t align(size_t bytes) { return (bytes + PICTURE_ALIGNMENT - 1) & ~(size_t)(PICTURE_ALIGNMENT - 1); }

static size_t scratch_bytes(uint32_t mask_words, uint32_t keypoints, uint32_t features, uint32_t grid_cells) {
  cuda_keypoint_scratch scratch;
  const cuda_keypoint_capacity capacity = cuda_list_capacity(mask_words, keypoints, features, grid_cells);
  return cuda_keypoint_scratch_layout(&capacity, NULL, &scratch);
}

bool cuda_wants_blur_work(const hs_context *c) {
  bool wanted = blur_needs_work(c->base_filter.radius);
  for (int32_t l = 1; l <= c->options.scales + 2; l++) wanted = wanted || blur_needs_work(c->step_filter[l].radius);
  return wanted;
}

static uint64_t first_samples(const frame_plan *plan) {
  const pyramid_geometry *g = &plan->geometry;
  return g->octave_count > 0 ? (uint64_t)g->width[0] * (uint64_t)g->height[0] : 0;
}

/* Decides the capacity of the results in features. With max_features it is that limit, except that selection by levels
   may keep all listed features. For pictures in flight without max_features it is estimated from earlier pictures.
   Otherwise it is the capacity of the list. */
static void decide_kept(const hs_context *c, const frame_placement *placement) {
  cuda_state *s = cuda_of(c);
  const uint32_t listed = s->plan.request.feature_capacity, most = options_device_max(&c->options);
  const bool is_bound = most > 0 && placement->user_keypoints.count == 0 && c->options.selection != HS_SELECT_LEVELS;
  uint32_t kept = listed;
  s->expected_samples = 0;
  if (is_bound) {
    kept = (most + 31u) & ~31u; /* rounded as list capacities are */
  } else if (c->is_worker && most == 0 && placement->user_keypoints.count == 0 && !placement->resident &&
             placement->octaves == 0) {
    s->expected_samples = first_samples(&s->plan);
    kept = cuda_result_pool_capacity(s->pool, s->expected_samples);
  }
  s->kept_capacity = kept < listed ? kept : listed;
}

bool cuda_outgrows_results(hs_context *c, uint32_t features) {
  const cuda_state *s = cuda_of(c);
  if (s->expected_samples == 0 || features <= s->kept_capacity) return false;
  cuda_result_pool_note(s->pool, s->expected_samples, features);
  c->statistics.regrown_frames++;
  return true;
}

/* Returns the octaves of a frame whose first `searched` octaves are searched. With pooling, windows also read later
   octaves. */
static int32_t octaves_described(const hs_context *c, const source_view *v, int32_t searched) {
  const int32_t octaves = searched + domain_octaves(&c->params.domain, c->params.scales);
  pyramid_geometry whole;
  (void)pyramid_geometry_of(v->width, v->height, &c->rules, &whole); /* the plan refuses a picture that is too large */
  return whole.octave_count > searched && whole.octave_count < octaves ? whole.octave_count : octaves;
}

/* Makes the plan of a frame: state->plan and the fields that depend on it. */
static hs_status make_plan(hs_context *c, const frame_request *r, const frame_placement *placement) {
  cuda_state *s = cuda_of(c);
  const source_view *v = &r->source;
  plan_request request = {.width = v->width,
                          .height = v->height,
                          .rules = c->rules,
                          .keypoint_capacity = c->keypoint_capacity,
                          .feature_capacity = c->feature_capacity,
                          .descriptor_bytes = r->descriptor_bytes};
  const user_keypoints *user = &placement->user_keypoints;
  if (placement->octaves > 0) request.rules.octaves = octaves_described(c, v, placement->octaves);
  if (user->count > 0) {
    const uint32_t larger = user->capacity + user->capacity / 2;
    request.rules.octaves = user->octaves;
    request.keypoint_capacity = user->capacity;
    request.feature_capacity = user->oriented ? user->capacity : s->user_overflow > larger ? s->user_overflow : larger;
  }
  s->picture_pitch = align((size_t)v->width * source_pixel_bytes(v->type, v->layout));
  s->mask_pitch = align((size_t)v->width);
  const device_request device = {.picture_bytes = s->picture_pitch * (size_t)v->height,
                                 .mask_bytes = r->filter.mask ? s->mask_pitch * (size_t)v->height : 0,
                                 .equalize = r->equalize,
                                 .gray_bytes = r->equalize ? cuda_equalized_pitch(v) * (size_t)v->height : 0,
                                 .blur_work = cuda_wants_blur_work(c),
                                 .dog = s->variants.pyramid >= PYRAMID_DOG && !cuda_wants_blur_work(c),
                                 .selection = options_device_max(&c->options) > 0,
                                 .resident = placement->resident,
                                 .affine = c->options.affine != 0,
                                 .grid_cells = options_device_cells(&c->options),
                                 .scratch_bytes = scratch_bytes};
  const hs_status st = plan_make_device(&request, &device, &s->plan, s->mask_offset, &s->mask_words);
  if (st != HS_OK)
    return CONTEXT_FAIL(c, st, "a %d x %d picture is too large for the device plan", v->width, v->height);
  decide_kept(c, placement);
  s->octaves_searched = placement->octaves > 0 ? placement->octaves : s->plan.geometry.octave_count;
  return HS_OK;
}

/* Returns the device bytes of the decoded picture that this frame uses. If the frame uses none and max_memory_bytes
   does not allow both, frees the decoded picture. */
static size_t bytes_beside(hs_context *c, const frame_placement *placement, size_t frame_bytes) {
  cuda_state *s = cuda_of(c);
  const uint64_t limit = c->options.max_memory_bytes;
  if (placement->decoded) return s->decoded_bytes;
  if (limit > 0 && frame_bytes > limit - s->decoded_bytes) cuda_jpeg_drop(s);
  return 0;
}

hs_status cuda_plan_memory(hs_context *c, const frame_request *r, const frame_placement *placement) {
  cuda_state *s = cuda_of(c);
  size_t bytes;
  s->untiled_bytes = SIZE_MAX;
  const hs_status st = make_plan(c, r, placement);
  if (st == HS_OK && hs_size_mul(s->plan.device_bytes, cuda_group_of(placement), &bytes)) s->untiled_bytes = bytes;
  return st;
}

hs_status cuda_make_memory(hs_context *c, const frame_request *r, const frame_placement *placement) {
  cuda_state *s = cuda_of(c);
  const source_view *v = &r->source;
  const hs_status st = cuda_plan_memory(c, r, placement);
  if (st != HS_OK) return st;
  const uint64_t limit = c->options.max_memory_bytes;
  const size_t bytes = s->untiled_bytes;
  if (bytes == SIZE_MAX || (limit > 0 && bytes > limit - bytes_beside(c, placement, bytes)))
    return CONTEXT_FAIL(c, HS_ERR_LIMIT,
                        "%zu images of %d x %d need %zu bytes each on the device, max_memory_bytes is %llu",
                        cuda_group_of(placement), v->width, v->height, s->plan.device_bytes, (unsigned long long)limit);
  return cuda_make_slab(c, bytes);
}

hs_status cuda_make_slab(hs_context *c, size_t bytes) {
  cuda_state *s = cuda_of(c);
  if (bytes <= s->slab_bytes) return HS_OK;
  cuda_graphs_drop(s);
  device_free(s->slab);
  s->slab_bytes = 0;
  s->memory_generation++;
  void *slab;
  const stage_status got = device_alloc(&slab, bytes);
  s->slab = slab;
  if (got != STAGE_OK) return cuda_memory_failure(c, got, "the frame", bytes);
  /* Clears the floats between each row's end and its stride: kernels may read them, but never use the values. */
  stage_status cleared = device_clear(slab, bytes, s->stream);
  if (cleared == STAGE_OK) cleared = device_stream_wait(s->stream);
  if (cleared != STAGE_OK) return cuda_failure(c, cleared, "clearing device memory");
  s->slab_bytes = bytes;
  return HS_OK;
}

/* Returns the bytes of the results' frames: 0 without shapes. */
static size_t frames_bytes(const hs_context *c, size_t features) {
  return c->options.affine ? align(features * sizeof(hs_frame)) : 0;
}

hs_status cuda_make_result_memory(hs_context *c, size_t group, size_t descriptor_bytes) {
  cuda_state *s = cuda_of(c);
  result_set *r = &s->results[s->set];
  const size_t features = s->kept_capacity * group + s->extra_capacity;
  if (features > UINT32_MAX) return CONTEXT_FAIL(c, HS_ERR_LIMIT, "%zu features are too many for a frame", features);
  const size_t records = align(features * sizeof *r->records), frames = frames_bytes(c, features);
  const stage_status st = cuda_result_pool_hold(s->pool, records + frames + features * descriptor_bytes, &r->block);
  if (st != STAGE_OK) {
    *r = (result_set){0};
    return cuda_failure(c, st, "pinned memory for the results");
  }
  r->records = (hs_keypoint *)(void *)r->block->host;
  r->frames = frames > 0 ? (hs_frame *)(void *)(r->block->host + records) : NULL;
  r->descriptors = descriptor_bytes > 0 ? r->block->host + records + frames : NULL;
  r->features = (uint32_t)features;
  return HS_OK;
}

plane_view cuda_handover_plane(const cuda_state *s, float *data) {
  const pyramid_geometry *g = &s->plan.geometry;
  const int32_t last = s->octaves_searched - 1, width = g->width[last] / 2, height = g->height[last] / 2;
  return (plane_view){data, width, height, PLANE_ROUND_UP((size_t)width, PLANE_STRIDE_FLOATS)};
}

hs_status cuda_make_handover_memory(hs_context *c) {
  cuda_state *s = cuda_of(c);
  const plane_view level = cuda_handover_plane(s, NULL);
  const size_t floats = level.stride * (size_t)level.height;
  if (floats <= s->handover_floats) return HS_OK;
  cuda_graphs_drop(s);
  s->memory_generation++;
  device_free_pinned(s->handover);
  s->handover = NULL;
  s->handover_floats = 0;
  void *host = NULL, *device = NULL;
  const stage_status st = device_alloc_pinned(&host, &device, floats * sizeof(float));
  if (st != STAGE_OK) return cuda_failure(c, st, "pinned memory for a level");
  s->handover = host;
  s->d_handover = device;
  s->handover_floats = floats;
  return HS_OK;
}

void cuda_frame_want_capacity(hs_context *c, uint32_t features) {
  if (features > cuda_of(c)->extra_capacity) cuda_of(c)->extra_capacity = features;
}

uint32_t cuda_frame_records(const hs_context *c, feature_records *records) {
  const result_set *r = &cuda_of(c)->results[cuda_of(c)->set];
  *records = (feature_records){r->records, r->frames, r->descriptors, cuda_of(c)->plan.request.descriptor_bytes};
  return r->features;
}

void cuda_frame_memory(const hs_context *c, uint64_t *device_bytes, uint64_t *pinned_bytes) {
  const cuda_state *s = cuda_of(c);
  *device_bytes = s ? s->slab_bytes + sizeof(vote_scales) + cuda_primitives_bytes(&s->primitives) : 0;
  if (s && s->zeros) *device_bytes += CUDA_EQUALIZE_BYTES;
  if (s) *device_bytes += s->decoded_bytes;
  *pinned_bytes = s ? sizeof *s->readback + s->handover_floats * sizeof(float) + cuda_user_keypoints_bytes(s) +
                          s->slot_bytes * STAGING_SLOTS + s->packed_bytes
                    : 0;
  if (s && !c->is_worker) *pinned_bytes += cuda_result_pool_bytes(s->pool); /* includes its workers' results */
  if (s && s->matching) {
    *device_bytes += s->matching->slab_bytes;
    *pinned_bytes += s->matching->pinned_bytes;
  }
}

hs_status cuda_frame_query(hs_context *c, int32_t width, int32_t height, uint64_t *device_bytes,
                           uint64_t *pinned_bytes) {
  const size_t descriptor_bytes = features_descriptor_bytes(c->options.descriptor);
  const frame_request request = {.source = {.width = width, .height = height, .type = SOURCE_U8, .layout = SOURCE_GRAY},
                                 .descriptor_bytes = descriptor_bytes,
                                 .equalize = c->options.equalize != 0};
  const frame_placement placement = {0};
  const hs_status st = make_plan(c, &request, &placement);
  if (st != HS_OK) return st;
  const cuda_state *s = cuda_of(c);
  *device_bytes = s->plan.device_bytes + sizeof(vote_scales) + (request.equalize ? CUDA_EQUALIZE_BYTES : 0);
  *pinned_bytes = align(s->kept_capacity * sizeof(hs_keypoint)) + frames_bytes(c, s->kept_capacity) +
                  s->kept_capacity * descriptor_bytes + cuda_staging_bytes(&request.source) + sizeof *s->readback;
  return HS_OK;
}

int32_t cuda_frames_in_memory(hs_context *c, int32_t width, int32_t height) {
  uint64_t device_bytes = 0, pinned = 0;
  if (cuda_frame_query(c, width, height, &device_bytes, &pinned) != HS_OK) return 1;
  const uint64_t workers = cuda_of(c)->info.memory_bytes / 2 / device_bytes;
  return workers < 1 ? 1 : workers > INT32_MAX ? INT32_MAX : (int32_t)workers;
}
