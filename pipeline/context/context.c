/* Services of a context for all stages: records of failures, memory, threads, capacities of a frame's lists. */
#include "pipeline/context/context.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cpu/schedule/frame_graph.h"
#include "cpu/schedule/fused_pass.h"
#include "cpu/schedule/stage_jobs.h"
#include "cpu/schedule/threads.h"
#include "pipeline/base/features.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/context/options.h"
#include "pipeline/context/tile_plan.h"
#include "stages/select.h"

hs_status context_fail(hs_context *context, hs_status status, const char *file, int line, const char *format, ...) {
  char text[ERROR_TEXT_BYTES];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  const char *slash = strrchr(file, '/');
  hs_message_set(context->error, sizeof context->error, "%s", text);
  return hs_message_fail(status, context->error_location, sizeof context->error_location, "%s at %s:%d",
                         hs_status_name(status), slash ? slash + 1 : file, line);
}

void context_clear_error(hs_context *context) {
  context->error[0] = '\0';
  context->error_location[0] = '\0';
  context->progress_done = 0;
}

hs_status hs_set_progress(hs_context *c, hs_progress_function function, void *user) {
  if (!c) return HS_ERR_ARGUMENT;
  c->progress = function;
  c->progress_user = user;
  return HS_OK;
}

/* Reported progress never decreases, even if the frame is repeated with larger lists. */
hs_status context_progress(hs_context *c, uint64_t done, uint64_t total) {
  if (!c->progress) return HS_OK;
  if (done > c->progress_done) c->progress_done = done;
  if (c->progress(c->progress_user, c->progress_done, total) == 0) return HS_OK;
  return CONTEXT_FAIL(c, HS_ERR_CANCELLED, CONTEXT_CANCELLED);
}

const char *hs_last_error(const hs_context *c) { return c ? c->error : ""; }

const char *hs_last_error_location(const hs_context *c) { return c ? c->error_location : ""; }

hs_origin context_origin(const hs_context *c, const hs_image *image) {
  const hs_options *o = &c->options;
  return (hs_origin){.method_version = origin_method_version(o),
                     .profile = o->profile,
                     .norm = o->norm,
                     .layout = o->layout,
                     .exif_orientation = image->exif_orientation,
                     .dsp = o->dsp};
}

const char *hs_backend_report(const hs_context *c) { return c ? c->report : ""; }

int32_t context_threads(const hs_context *c) { return options_threads(&c->options); }

hs_status context_start_queue_explained(hs_context *c, char *message, size_t bytes) {
  const int32_t threads = options_threads(&c->options);
  stage_queue *queue = hs_memory_alloc(c->options.allocator, queue_bytes(threads));
  if (!queue)
    return hs_message_fail(HS_ERR_MEMORY, message, bytes, "out of memory: %zu bytes for %d threads",
                           queue_bytes(threads), threads);
  if (!queue_start(queue, threads)) {
    hs_memory_release(c->options.allocator, queue);
    return hs_message_fail(HS_ERR_THREAD, message, bytes, "cannot start %d threads", threads);
  }
  c->queue = queue;
  return HS_OK;
}

hs_status context_start_queue(hs_context *c) {
  char why[ERROR_TEXT_BYTES / 2] = "";
  if (c->queue) return HS_OK;
  const hs_status st = context_start_queue_explained(c, why, sizeof why);
  return st == HS_OK ? st : CONTEXT_FAIL(c, st, "%s", why);
}

hs_status context_scratch(hs_context *c, scratch_use use, size_t count, size_t item, void **memory) {
  host_scratch *s = &c->scratch;
  size_t bytes;
  if (!hs_size_mul(count, item, &bytes))
    return CONTEXT_FAIL(c, HS_ERR_LIMIT, "%zu x %zu bytes of scratch", count, item);
  if (bytes > s->bytes[use]) {
    hs_memory_release(c->options.allocator, s->memory[use]);
    s->bytes[use] = 0;
    s->memory[use] = hs_memory_alloc(c->options.allocator, bytes);
    if (!s->memory[use]) return CONTEXT_FAIL(c, HS_ERR_MEMORY, "cannot allocate %zu bytes of scratch", bytes);
    s->bytes[use] = bytes;
  }
  *memory = s->memory[use];
  return HS_OK;
}

size_t scratch_grid_bytes(uint32_t features) { return 2 * sizeof(grid_item) * (size_t)features; }

uint64_t context_scratch_bytes(const hs_options *o, const frame_plan *plan) {
  const uint64_t pixels = (uint64_t)plan->request.width * (uint64_t)plan->request.height;
  return (o->equalize ? pixels : 0) + (options_use_grid(o) ? scratch_grid_bytes(plan->request.feature_capacity) : 0);
}

hs_status context_plan(const hs_options *o, const plan_request *request, frame_plan *plan, uint64_t *wanted) {
  const uint64_t limit = o->max_memory_bytes;
  frame_plan tiled;
  hs_status st = plan_make(request, plan);
  if (st != HS_OK) return st;
  const uint64_t scratch = context_scratch_bytes(o, plan);
  *wanted = plan->host_bytes + scratch;
  if (limit == 0 || *wanted <= limit || !request->params || plan->geometry.octave_count == 0) return HS_OK;
  st = plan_make_tiled(request, limit > scratch ? limit - scratch : 0, &tiled);
  if (st != HS_OK || (tiled.host_bytes >= plan->host_bytes && request->row_bytes == 0)) return HS_OK;
  *plan = tiled;
  *wanted = plan->host_bytes + scratch;
  return HS_OK;
}

hs_status context_reset_capacities(hs_context *c, hs_status status) {
  c->keypoint_capacity = c->feature_capacity = 0;
  return status;
}

/* Returns a capacity for the counted items plus a quarter, so that the next frames of a sequence fit too. */
static uint32_t grown(uint32_t count, uint32_t capacity) {
  if (count <= capacity) return capacity;
  const uint64_t larger = (uint64_t)count + count / 4 + 32;
  return larger > UINT32_MAX - 64 ? UINT32_MAX - 64 : (uint32_t)larger;
}

bool context_grow_lists(hs_context *c, uint32_t keypoints, uint32_t features, uint32_t keypoint_capacity,
                        uint32_t feature_capacity) {
  if (keypoints <= keypoint_capacity && features <= feature_capacity) return false;
  c->keypoint_capacity = grown(keypoints, keypoint_capacity);
  c->feature_capacity = grown(features, feature_capacity);
  c->statistics.regrown_frames++;
  return true;
}

hs_status context_make_slab(hs_context *c, const char *advice) {
  if (c->plan.host_bytes <= c->slab_bytes) return HS_OK;
  hs_memory_release(c->options.allocator, c->slab);
  c->slab_bytes = 0;
  c->slab = hs_memory_alloc(c->options.allocator, c->plan.host_bytes);
  if (!c->slab)
    return context_reset_capacities(
        c, CONTEXT_FAIL(c, HS_ERR_MEMORY, "cannot allocate %zu bytes of workspace%s", c->plan.host_bytes, advice));
  c->slab_bytes = c->plan.host_bytes;
  return HS_OK;
}

static plan_request request_of(const hs_context *c, const frame_request *r) {
  const int32_t threads = context_threads(c);
  return (plan_request){.width = r->source.width,
                        .height = r->source.height,
                        .rules = c->rules,
                        .skipped_octaves = r->skipped_octaves,
                        .keypoint_capacity = c->keypoint_capacity,
                        .feature_capacity = c->feature_capacity,
                        .source_capacity = r->user_count,
                        .descriptor_bytes = r->descriptor_bytes,
                        .threads = threads,
                        .radius_max = c->radius_max,
                        .row_bytes = r->feed ? r->feed->row_bytes : 0,
                        .affine = c->options.affine != 0,
                        .warped_floats = c->options.affine ? affine_work_floats(threads) : 0,
                        .pyramid_work_floats = c->ops.pyramid_work_floats,
                        .pyramid_work_plane = c->ops.pyramid_work_plane,
                        .detect_work_bytes = c->ops.detect_work_bytes,
                        .detect_reads_top = c->ops.detect_reads_top,
                        .octave_floats =
                            fused_pass_floats(&c->ops, threads, &c->base_filter, c->step_filter, c->options.scales),
                        .octave_bytes_min = PASS_BYTES_MIN,
                        .graph_bytes = frame_graph_sizes(&c->ops, threads),
                        .params = r->may_tile ? &c->params : NULL,
                        .base_filter = &c->base_filter,
                        .step_filter = c->step_filter};
}

bool context_may_take_rows(const hs_options *o, const sift_params *params) {
  return o->max_memory_bytes > 0 && o->equalize == 0 && params->refine_rule != RULE_OPENCV;
}

bool context_fits_in_rows(const hs_context *c, const frame_request *r) {
  const plan_request request = request_of(c, r);
  frame_plan plan;
  uint64_t wanted = 0;
  return context_plan(&c->options, &request, &plan, &wanted) == HS_OK && plan.tile_side > 0 &&
         wanted <= c->options.max_memory_bytes;
}

hs_status context_prepare(hs_context *c, const frame_request *r) {
  hs_status st = context_start_queue(c);
  if (st != HS_OK) return st;
  const plan_request request = request_of(c, r);
  const int32_t width = request.width, height = request.height;
  uint64_t wanted = 0;
  st = context_plan(&c->options, &request, &c->plan, &wanted);
  if (st != HS_OK)
    return context_reset_capacities(
        c, CONTEXT_FAIL(c, st, "a %d x %d image does not fit the address space", width, height));
  const uint64_t limit = c->options.max_memory_bytes;
  if (limit > 0 && wanted > limit)
    return context_reset_capacities(
        c, CONTEXT_FAIL(c, HS_ERR_LIMIT,
                        "a %d x %d image needs at least %llu bytes of workspace%s, max_memory_bytes is %llu", width,
                        height, (unsigned long long)wanted, c->plan.tile_side > 0 ? " even in the smallest tiles" : "",
                        (unsigned long long)limit));
  return context_make_slab(c, r->may_tile ? "; with a smaller max_memory_bytes the image is worked off in tiles" : "");
}

uint64_t context_fixed_bytes(int32_t threads) { return sizeof(hs_context) + (threads > 0 ? queue_bytes(threads) : 0); }
