/* The public call that describes keypoints of the caller on the context's device. Features are returned in the order of
   these keypoints. */
#include <math.h>
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/features.h"
#include "pipeline/base/memory.h"
#include "pipeline/context/context.h"
#include "pipeline/context/engine.h"
#include "pipeline/context/image_view.h"
#include "pipeline/frame/run_frame.h"

/* Features of a part of the user keypoints: from the lists of the CPU's workspace, or as records of a device. */
typedef struct user_part {
  uint32_t count;
  /* [count]: for each feature, index of its listed keypoint; null: equal to the feature's index */
  const uint32_t *keypoint;
  const uint32_t *source;     /* index of the user keypoint of each listed keypoint */
  const workspace *lists;     /* lists with the features; null: the features are records */
  const hs_keypoint *records; /* [count] */
  const unsigned char *descriptors;
  const hs_frame *frames; /* affine frames; only with records */
} user_part;

/* A device runs two parts: keypoints with an orientation need only the descriptor stage. */
enum { USER_PARTS = 2 };

typedef struct user_output {
  user_part part[USER_PARTS];
  workspace lists;
} user_output;

static uint32_t source_of(const user_part *p, uint32_t feature) {
  return p->source[p->keypoint ? p->keypoint[feature] : feature];
}

/* Counts each user keypoint's features, and turns the counts into the index of each keypoint's first feature. Returns
   the sum of the counts. */
static uint64_t count_slots(const frame_request *r, const user_output *found, uint32_t *slot) {
  memset(slot, 0, sizeof *slot * ((size_t)r->user_count + 1));
  for (const user_part *p = found->part; p < found->part + USER_PARTS; p++)
    for (uint32_t f = 0; f < p->count; f++) slot[source_of(p, f)]++;
  uint64_t at = 0;
  for (uint32_t i = 0; i < r->user_count; i++) {
    const uint32_t n = r->user_statuses[i] == HS_OK ? slot[i] : 1;
    slot[i] = (uint32_t)at;
    at += n;
  }
  return at;
}

/* Copies keypoints that cannot be described unchanged, with zero descriptors. */
static void copy_refused(const frame_request *r, const uint32_t *slot, hs_features *out) {
  const size_t bytes = r->descriptor_bytes;
  for (uint32_t i = 0; i < r->user_count; i++) {
    if (r->user_statuses[i] == HS_OK) continue;
    const float a = r->user_keypoints[i].orientation;
    hs_keypoint *k = &out->keypoints[slot[i]];
    *k = r->user_keypoints[i];
    k->orientation = a >= 0.0f && a < TWO_PI_FLOAT ? a : 0.0f;
    if (out->frames) out->frames[slot[i]] = (hs_frame){k->sigma, 0.0f, 0.0f, k->sigma};
    if (bytes > 0) memset((unsigned char *)out->descriptors + slot[i] * bytes, 0, bytes);
  }
}

/* Restores the caller's size of a keypoint that was described with another size. */
static void restore_size(hs_keypoint *k, hs_frame *frame, float sigma) {
  const float grown = sigma / k->sigma;
  if (k->sigma == sigma) return;
  k->sigma = sigma;
  if (frame) *frame = (hs_frame){frame->a11 * grown, frame->a12 * grown, frame->a21 * grown, frame->a22 * grown};
}

/* Copies a part's features to their positions in the order of the user keypoints. slot[i]: position of keypoint i's
   next feature. */
static void copy_part(const user_part *p, const frame_request *r, uint32_t *slot, hs_features *out) {
  const size_t bytes = r->descriptor_bytes;
  for (uint32_t f = 0; f < p->count; f++) {
    const uint32_t source = source_of(p, f), to = slot[source]++;
    out->keypoints[to] = p->lists ? workspace_keypoint(&p->lists->keypoints, p->lists->features.keypoint[f],
                                                       p->lists->features.orientation[f])
                                  : p->records[f];
    if (out->frames) out->frames[to] = p->lists ? workspace_frame(p->lists, f) : p->frames[f];
    restore_size(&out->keypoints[to], out->frames ? &out->frames[to] : NULL, r->user_keypoints[source].sigma);
    if (bytes > 0) memcpy((unsigned char *)out->descriptors + to * bytes, p->descriptors + f * bytes, bytes);
  }
}

static hs_status run_on_cpu(hs_context *c, frame_request *r, user_output *out) {
  memset(out, 0, sizeof *out);
  hs_status st = equalize_picture(c, &r->source);
  if (st == HS_OK) st = run_frame(c, r, &out->lists);
  if (st != HS_OK) return st;
  out->part[0] = (user_part){.count = *out->lists.features.count,
                             .keypoint = out->lists.features.keypoint,
                             .source = out->lists.sources,
                             .lists = &out->lists,
                             .descriptors = out->lists.descriptors};
  return HS_OK;
}

static uint32_t count_part(const frame_request *r, bool oriented) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < r->user_count; i++)
    count += r->user_statuses[i] == HS_OK && isnan(r->user_keypoints[i].orientation) != oriented;
  return count;
}

/* Describes the keypoints that have an orientation, or those that do not. The indices of keypoints stay in the
   context's scratch. */
static hs_status run_part(hs_context *c, const frame_request *r, const pyramid_geometry *g, bool oriented,
                          user_part *part) {
  const uint32_t count = count_part(r, oriented);
  frame_placement placement = {.user_keypoints = {.count = count, .oriented = oriented, .octaves = g->octave_count}};
  frame_result result = {0};
  workspace w = {0};
  void *memory;
  *part = (user_part){0};
  if (count == 0) return HS_OK;
  hs_status st = context_scratch(c, oriented ? SCRATCH_ORIENTED : SCRATCH_TO_ORIENT, count, sizeof *w.sources, &memory);
  if (st == HS_OK) st = c->engine->user_lists(c, &placement.user_keypoints, &w.keypoints, &w.features);
  if (st != HS_OK) return st;
  w.sources = memory;
  user_append(g, c, r, EVERY_OCTAVE, oriented, &w);
  c->engine->use_results(c, oriented ? 0 : 1); /* one set per part, because both are used together afterwards */
  st = c->engine->run(c, r, &placement, &result);
  *part = (user_part){.count = result.count,
                      .source = w.sources,
                      .records = result.keypoints,
                      .descriptors = result.descriptors,
                      .frames = result.frames};
  if (st == HS_OK && !oriented) st = c->engine->user_keypoints_of(c, result.count, &part->keypoint);
  c->engine->use_results(c, 0);
  return st;
}

static hs_status run_on_device(hs_context *c, const frame_request *r, user_output *out) {
  pyramid_geometry g;
  memset(out, 0, sizeof *out);
  if (pyramid_geometry_of(r->source.width, r->source.height, &c->rules, &g) != STAGE_OK)
    return CONTEXT_FAIL(c, HS_ERR_LIMIT, "a %d x %d picture is too large", r->source.width, r->source.height);
  g.octave_count = user_octaves_needed(&g, c, r);
  const uint64_t frames = c->statistics.frames;
  hs_status st = run_part(c, r, &g, true, &out->part[0]);
  if (st == HS_OK) st = run_part(c, r, &g, false, &out->part[1]);
  if (st != HS_OK) return st;
  c->statistics.frames = frames + 1;
  c->statistics.candidates = 0;
  c->statistics.keypoints = count_part(r, true) + count_part(r, false);
  c->statistics.features = out->part[0].count + out->part[1].count;
  return HS_OK;
}

static hs_status run(hs_context *c, const hs_image *image, frame_request *r, user_output *out) {
  hs_status st = image_view_source(c, image, &r->source);
  if (st != HS_OK) return st;
  image_view_everywhere(image, &r->filter); /* mask and region do not apply to user keypoints */
  r->equalize = c->options.equalize && c->engine->equalizes;
  if (!c->engine->user_lists) return run_on_cpu(c, r, out);
  st = context_progress(c, 0, 1);
  if (st == HS_OK) st = run_on_device(c, r, out);
  if (!backend_falls_back(c, st)) return st;
  backend_note_fallback(c, c->error);
  context_clear_error(c);
  return run_on_cpu(c, r, out);
}

static hs_status describe(hs_context *c, const hs_image *image, frame_request *r, uint32_t *slot,
                          hs_features *features) {
  user_output out;
  hs_status st = run(c, image, r, &out);
  if (st != HS_OK) return st;
  const uint64_t count = count_slots(r, &out, slot);
  if (count > UINT32_MAX) return CONTEXT_FAIL(c, HS_ERR_LIMIT, "%llu features", (unsigned long long)count);
  st = features_reserve_framed(features, (size_t)count, c->options.descriptor, c->options.affine != 0,
                               c->options.allocator);
  if (st != HS_OK) return CONTEXT_FAIL(c, st, "out of memory for %llu features", (unsigned long long)count);
  copy_refused(r, slot, features);
  for (int i = 0; i < USER_PARTS; i++) copy_part(&out.part[i], r, slot, features);
  features->count = (size_t)count;
  features->image_width = image->width;
  features->image_height = image->height;
  features->origin = context_origin(c, image);
  return HS_OK;
}

/* Returns whether the keypoints are in the list that the call fills, and could be freed by it. */
static bool within(const hs_keypoint *keypoints, const hs_features *features) {
  const uintptr_t at = (uintptr_t)keypoints, first = (uintptr_t)features->keypoints;
  return keypoints && features->keypoints && at >= first && at < first + features->capacity * sizeof *keypoints;
}

hs_status hs_describe(hs_context *c, const hs_image *image, const hs_keypoint *keypoints, size_t count,
                      hs_features *features, hs_status *statuses) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!c) return HS_ERR_ARGUMENT;
  context_clear_error(c);
  if (!image || !features || (!keypoints && count > 0))
    return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "image, keypoints or features is null");
  if (within(keypoints, features))
    return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "keypoints must not be features' own, which this call fills");
  if (count > (size_t)1 << 28) return CONTEXT_FAIL(c, HS_ERR_LIMIT, "%zu keypoints, at most 2^28", count);
  const hs_allocator *a = c->options.allocator;
  const hs_keypoint none = {0};
  hs_status *own = statuses ? NULL : hs_memory_alloc(a, sizeof *own * (count + 1));
  uint32_t *slot = hs_memory_alloc(a, sizeof *slot * (count + 1));
  hs_status st = HS_ERR_MEMORY;
  if (slot && (statuses || own)) {
    frame_request request = {.descriptor_bytes = features_descriptor_bytes(c->options.descriptor),
                             .user_keypoints = count > 0 ? keypoints : &none,
                             .user_count = (uint32_t)count,
                             .user_statuses = statuses ? statuses : own};
    st = describe(c, image, &request, slot, features);
  } else {
    st = CONTEXT_FAIL(c, st, "cannot allocate for %zu keypoints", count);
  }
  hs_memory_release(a, slot);
  hs_memory_release(a, own);
  return st;
}
