/* The public call that extracts patches: their positions, the layers from which they are sampled, and the sampling. It
   runs on the CPU even if the context has a device. */
#include <math.h>
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "cpu/schedule/stage_jobs.h"
#include "pipeline/base/adopt.h"
#include "pipeline/base/memory.h"
#include "pipeline/context/context.h"
#include "pipeline/context/image_view.h"
#include "pipeline/context/options.h"
#include "pipeline/frame/run_frame.h"
#include "stages/table_math.h"

_Static_assert(sizeof(hs_frame) == 16, "documented size of a frame");
OPTIONS_END_WITH(hs_patch_options, unused);
static const options_kind kind = OPTIONS_KIND(hs_patch_options, size);
static const hs_patch_options defaults = {
    .struct_size = sizeof defaults, .size = 32, .scale = 12.0f, .blur = 0.5f, .type = HS_PATCH_U8};

hs_status hs_patch_options_init_sized(hs_patch_options *options, size_t struct_size) {
  return options_give(options, struct_size, &defaults, kind);
}

/* Arguments and intermediate results of one call. */
typedef struct patch_call {
  const hs_keypoint *keypoints;
  const hs_frame *frames;
  uint32_t count;
  hs_patch_options options;
  patch_map *maps;
  bool *valid;
  patch_layers layers;
  int32_t octaves; /* number of octaves to build: up to the coarsest one from which a patch is sampled */
  bool picture;    /* whether at least one patch is sampled from the picture */
} patch_call;

static hs_status take_options(hs_context *c, const hs_patch_options *callers, const hs_frame *frames,
                              hs_patch_options *o) {
  char reason[ADOPT_REASON_BYTES];
  *o = defaults;
  if (callers && options_adopt(o, callers, kind, reason) != HS_OK) return CONTEXT_FAIL(c, HS_ERR_OPTION, "%s", reason);
  if (o->size < 1 || o->size > PATCH_SIZE_MAX)
    return CONTEXT_FAIL(c, HS_ERR_OPTION, "patch options.size is %d, expected 1..%d", o->size, (int)PATCH_SIZE_MAX);
  if (!(o->scale > 0.0f && o->scale <= 1000.0f))
    return CONTEXT_FAIL(c, HS_ERR_OPTION, "patch options.scale is %g, expected above 0, 1000 at most",
                        (double)o->scale);
  if (!(o->blur >= 0.0f && o->blur <= 16.0f))
    return CONTEXT_FAIL(c, HS_ERR_OPTION, "patch options.blur is %g, expected 0..16", (double)o->blur);
  if (o->upright != 0 && o->upright != 1)
    return CONTEXT_FAIL(c, HS_ERR_OPTION, "patch options.upright is %d, expected 0 or 1", o->upright);
  if (o->upright && frames)
    return CONTEXT_FAIL(c, HS_ERR_OPTION, "patch options.upright is 1, but frames have their own orientation");
  if ((unsigned)o->type > HS_PATCH_F32)
    return CONTEXT_FAIL(c, HS_ERR_OPTION, "patch options.type is %d, expected 0..1", (int)o->type);
  return o->unused == 0 ? HS_OK : CONTEXT_FAIL(c, HS_ERR_OPTION, "patch options.unused is not 0");
}

static bool is_in_range(float v) { return v >= -(float)PYRAMID_SIDE_MAX && v <= (float)PYRAMID_SIDE_MAX; }

/* Finds the map of patch i. False: the patch cannot be extracted. */
static bool map_of(const patch_call *p, uint32_t i, patch_map *m) {
  const hs_keypoint *k = &p->keypoints[i];
  const float distance = p->options.scale / (float)p->options.size;
  if (!is_in_range(k->x) || !is_in_range(k->y)) return false;
  if (p->frames) {
    const hs_frame *f = &p->frames[i];
    if (!is_in_range(f->a11) || !is_in_range(f->a12) || !is_in_range(f->a21) || !is_in_range(f->a22)) return false;
    *m = (patch_map){k->x, k->y, f->a11 * distance, f->a12 * distance, f->a21 * distance, f->a22 * distance};
  } else {
    if (!(k->sigma > 0.0f) || !is_in_range(k->sigma)) return false;
    if (!p->options.upright && !isfinite(k->orientation)) return false;
    *m = patch_map_circular(k->x, k->y, k->sigma, p->options.upright ? 0.0f : user_angle(k->orientation), distance);
  }
  return patch_area(m) > 0.0f;
}

static void name_layers(const hs_context *c, const pyramid_geometry *g, patch_layers *l) {
  const int32_t scales = c->options.scales, levels = g->octave_count > 0 ? g->octave_count * scales + 1 : 0;
  const bool shifted = c->options.upsample == HS_UPSAMPLE_OPENCV && c->options.first_octave < 0;
  *l = (patch_layers){.octave_count = g->octave_count,
                      .first_octave = g->first_octave,
                      .scales = scales,
                      .picture_shift = shifted ? -0.25f : 0.0f,
                      .grid_shift = c->params.grid_shift,
                      .count = 1 + levels};
  for (int32_t i = 0; i < levels; i++)
    l->blur[1 + i] = (float)(scalespace_level_sigma((double)c->options.sigma, scales, i % scales) *
                             table_power_of_two(g->first_octave + i / scales));
}

static void locate_patches(patch_call *p, hs_status *statuses) {
  const patch_layers *l = &p->layers;
  for (uint32_t i = 0; i < p->count; i++) {
    p->valid[i] = map_of(p, i, &p->maps[i]);
    if (statuses) statuses[i] = p->valid[i] ? HS_OK : HS_ERR_KEYPOINT;
    if (!p->valid[i]) continue;
    const int32_t layer = patch_layer_of(l, p->options.blur * patch_distance(&p->maps[i]));
    int32_t octaves = layer == 0 ? 0 : (layer - 1) / l->scales + 1;
    if (octaves > l->octave_count) octaves = l->octave_count;
    if (octaves > p->octaves) p->octaves = octaves;
    if (layer == 0) p->picture = true;
  }
}

/* Makes the gray picture. One allocation holds three planes: the result, the gray picture before an identity blur, and
   scratch. */
static hs_status make_gray(hs_context *c, const source_view *source, plane_view *gray) {
  enum { ROW = 16, SLACK = 64 }; /* Alignment of rows and free floats at the end, as for the pyramid's levels. */
  static const gaussian_filter identity = {.radius = 1, .taps = {1.0f, 0.0f}};
  const int32_t width = source->width, height = source->height;
  const size_t stride = ((size_t)width + ROW - 1) & ~(size_t)(ROW - 1);
  size_t floats, work, all;
  void *memory;
  if (!hs_size_mul(stride, (size_t)height, &floats) || !hs_size_add(floats, SLACK, &floats))
    return CONTEXT_FAIL(c, HS_ERR_LIMIT, "a %d x %d picture is too large", width, height);
  work = c->ops.pyramid_work_floats
             ? c->ops.pyramid_work_floats(width, height, identity.radius, queue_threads(c->queue))
             : floats;
  if (work < floats) work = floats;
  if (!hs_size_mul(floats, 2, &all) || !hs_size_add(all, work, &all))
    return CONTEXT_FAIL(c, HS_ERR_LIMIT, "a %d x %d picture is too large", width, height);
  const uint64_t limit = c->options.max_memory_bytes, wanted = (uint64_t)all * sizeof(float) + c->slab_bytes;
  if (limit > 0 && wanted > limit)
    return CONTEXT_FAIL(c, HS_ERR_LIMIT, "patches of a %d x %d image need %llu bytes, max_memory_bytes is %llu", width,
                        height, (unsigned long long)wanted, (unsigned long long)limit);
  const hs_status st = context_scratch(c, SCRATCH_GRAY, all, sizeof(float), &memory);
  if (st != HS_OK) return st;
  float *planes = memory;
  *gray = (plane_view){planes, width, height, stride};
  const plane_view plain = {planes + floats, width, height, stride},
                   scratch = {planes + 2 * floats, width, height, stride};
  const base_args args = {.source = *source,
                          .border = BORDER_REPLICATE,
                          .filter = &identity,
                          .gray = plain,
                          .work = scratch,
                          .doubled = plain,
                          .out = *gray};
  return c->ops.base(c->queue, &args) == STAGE_OK ? HS_OK : CONTEXT_FAIL(c, HS_ERR_MEMORY, "a stage ran out of memory");
}

static hs_status make_layers(hs_context *c, const frame_request *r, patch_call *p, workspace *w) {
  hs_status st = context_start_queue(c);
  if (st == HS_OK && p->octaves > 0) st = run_pyramid(c, r, p->octaves, w);
  if (st == HS_OK && p->picture) st = make_gray(c, &r->source, &p->layers.picture);
  p->layers.octaves = w->octaves;
  return st;
}

static hs_status run(hs_context *c, const hs_image *image, patch_call *p, void *patches, hs_status *statuses) {
  frame_request request = {0};
  pyramid_geometry g;
  workspace w = {.sources = NULL};
  void *memory;
  hs_status st = image_view_source(c, image, &request.source);
  if (st == HS_OK) st = equalize_picture(c, &request.source);
  if (st != HS_OK) return st;
  if (pyramid_geometry_of(request.source.width, request.source.height, &c->rules, &g) != STAGE_OK)
    return CONTEXT_FAIL(c, HS_ERR_LIMIT, "a %d x %d picture is too large", image->width, image->height);
  st = context_progress(c, 0, 1);
  if (st == HS_OK)
    st = context_scratch(c, SCRATCH_PATCHES, (size_t)p->count + 1, sizeof(patch_map) + sizeof(bool), &memory);
  if (st != HS_OK) return st;
  p->maps = memory;
  p->valid = (bool *)(void *)(p->maps + p->count);
  name_layers(c, &g, &p->layers);
  locate_patches(p, statuses);
  st = make_layers(c, &request, p, &w);
  if (st != HS_OK) return st;
  const patch_args args = {.layers = &p->layers,
                           .maps = p->maps,
                           .valid = p->valid,
                           .count = p->count,
                           .size = p->options.size,
                           .blur = p->options.blur,
                           .as_float = p->options.type == HS_PATCH_F32,
                           .out = patches};
  patch_run(c->queue, &args);
  return HS_OK;
}

hs_status hs_extract_patches(hs_context *c, const hs_image *image, const hs_keypoint *keypoints, const hs_frame *frames,
                             size_t count, const hs_patch_options *options, void *patches, hs_status *statuses) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!c) return HS_ERR_ARGUMENT;
  context_clear_error(c);
  if (!image || ((!keypoints || !patches) && count > 0))
    return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "image, keypoints or patches is null");
  if (count > (size_t)1 << 28) return CONTEXT_FAIL(c, HS_ERR_LIMIT, "%zu keypoints, at most 2^28", count);
  patch_call p = {.keypoints = keypoints, .frames = frames, .count = (uint32_t)count};
  const hs_status st = take_options(c, options, frames, &p.options);
  if (st != HS_OK) return st;
  if (patches && p.options.type == HS_PATCH_F32 && (uintptr_t)patches % sizeof(float) != 0)
    return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "patches is not aligned for floats");
  return run(c, image, &p, patches, statuses);
}
