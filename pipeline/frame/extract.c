/* The public calls for pixels: checks of arguments, the frame, and the copy of its features. */
#include <string.h>

#include "cpu/schedule/float_environment.h"
#include "pipeline/base/features.h"
#include "pipeline/base/memory.h"
#include "pipeline/context/context.h"
#include "pipeline/context/engine.h"
#include "pipeline/context/image_view.h"
#include "pipeline/frame/extract.h"
#include "pipeline/frame/run_frame.h"

_Static_assert((int)RULE_OPENCV == HS_RULE_OPENCV && (int)RULE_VLFEAT == HS_RULE_VLFEAT, "rules");
_Static_assert((int)DESCRIBE_LENGTH == HS_DESCRIPTOR_LENGTH, "descriptor length");
_Static_assert(sizeof(hs_keypoint) == 24, "documented size of a keypoint");

/* Copies the first `count` features, with descriptors of descriptor_bytes each (0: none). */
static void copy_features(const hs_context *c, const frame_result *f, uint32_t count, size_t descriptor_bytes,
                          hs_keypoint *keypoints, void *descriptors) {
  if (count == 0) return;
  if (f->lists) {
    listed_features_copy(c->queue, f->lists, count, descriptor_bytes, keypoints, descriptors);
    return;
  }
  memcpy(keypoints, f->keypoints, count * sizeof *keypoints);
  if (descriptor_bytes > 0) memcpy(descriptors, f->descriptors, count * descriptor_bytes);
}

static hs_status run_whole(hs_context *c, const frame_request *request, frame_output *out) {
  const frame_placement placement = {.source_on_device = request->source_on_device,
                                     .decoded = request->source_on_device};
  out->result = (frame_result){.lists = &out->lists};
  const hs_status st = c->engine->run(c, request, &placement, &out->result);
  return st == HS_OK && !out->result.lists ? grid_choice_result(c, request, &out->result) : st;
}

/* Runs a frame on the host, whose features are in lists. */
static hs_status run_listed(hs_context *c, const frame_request *request, frame_output *out) {
  out->result = (frame_result){.lists = &out->lists};
  return cpu_engine_run(c, request, NULL, &out->result);
}

/* Runs a frame in tiles, after it did not fit the device untiled. The host equalises the picture first, because a tile
   does not have the counts of the complete picture. */
static hs_status run_tiles(hs_context *c, hs_status untiled, frame_request *request, frame_output *out) {
  hs_status st = HS_OK;
  request->untiled_status = untiled;
  if (request->equalize) st = equalize_picture(c, &request->source);
  if (st != HS_OK) return st;
  request->equalize = false;
  return run_listed(c, request, out);
}

/* Runs the frame untiled or, if it does not fit, in tiles. */
static hs_status run_whole_or_tiles(hs_context *c, frame_request *request, frame_output *out) {
  const hs_status st = run_whole(c, request, out);
  const bool is_full = st == HS_ERR_LIMIT || st == HS_ERR_MEMORY;
  return is_full && c->engine->tiles && !request->source_on_device ? run_tiles(c, st, request, out) : st;
}

/* Runs a frame, and falls back to the CPU if necessary. Workers of images in flight fall back in in_flight_workers.c
   instead, because they hold results of several images. */
hs_status extract_request(hs_context *c, frame_request *request, frame_output *out) {
  hs_status st = HS_OK;
  request->may_tile = true;
  request->equalize = c->options.equalize && c->engine->equalizes && !request->on_cpu;
  if (!request->equalize) st = equalize_picture(c, &request->source);
  if (st != HS_OK) return st;
  if (!request->on_cpu) {
    if (!c->engine->reports_progress && !request->is_repeated) st = context_progress(c, 0, 1);
    if (st == HS_OK) st = run_whole_or_tiles(c, request, out);
    if (request->source_on_device || c->is_worker || !backend_falls_back(c, st)) return st;
    backend_note_fallback(c, c->error);
    context_clear_error(c);
    st = request->equalize ? equalize_picture(c, &request->source) : HS_OK;
    request->untiled_status = HS_OK;
  }
  return st == HS_OK ? run_listed(c, request, out) : st;
}

static hs_status run_pixels(hs_context *c, const hs_image *image, const hs_image *mask, frame_request *request,
                            frame_output *out) {
  hs_status st = image_view_source(c, image, &request->source);
  if (st == HS_OK) st = image_view_filter(c, image, mask, &request->filter);
  return st == HS_OK ? extract_request(c, request, out) : st;
}

/* Returns a list that views a device's records. */
static hs_features view_of(const hs_context *c, const hs_image *image, const frame_result *out,
                           hs_descriptor_type type) {
  return (hs_features){.count = out->count,
                       .keypoints = (hs_keypoint *)(uintptr_t)out->keypoints,
                       .descriptors = type != HS_DESCRIPTOR_NONE ? (void *)(uintptr_t)out->descriptors : NULL,
                       .frames = (hs_frame *)(uintptr_t)out->frames,
                       .descriptor_type = type,
                       .image_width = image->width,
                       .image_height = image->height,
                       .origin = context_origin(c, image)};
}

hs_status extract_copy(hs_context *c, const hs_image *image, const frame_result *out, hs_descriptor_type type,
                       hs_features *features) {
  const size_t descriptor_bytes = features_descriptor_bytes(type);
  if (!out->lists) {
    const hs_features found = view_of(c, image, out, type);
    const hs_status copied = c->engine->give(c, 0, &found, features);
    return copied == HS_OK ? copied : CONTEXT_FAIL(c, copied, "out of memory for %u features", out->count);
  }
  const hs_status st =
      features_reserve_framed(features, out->count, type, c->options.affine != 0, c->options.allocator);
  if (st != HS_OK) return CONTEXT_FAIL(c, st, "out of memory for %u features", out->count);
  copy_features(c, out, out->count, descriptor_bytes, features->keypoints, features->descriptors);
  for (uint32_t i = 0; features->frames && i < out->count; i++) features->frames[i] = workspace_frame(out->lists, i);
  features->count = out->count;
  features->image_width = image->width;
  features->image_height = image->height;
  features->origin = context_origin(c, image);
  return HS_OK;
}

hs_status extract_view(hs_context *c, const hs_image *image, const frame_result *out, const hs_features **features) {
  if (!out->lists) {
    c->pinned_view = view_of(c, image, out, c->options.descriptor);
    *features = &c->pinned_view;
    return HS_OK;
  }
  const hs_status st = extract_copy(c, image, out, c->options.descriptor, &c->view);
  if (st == HS_OK) *features = &c->view;
  return st;
}

static hs_status extract(hs_context *c, const hs_image *image, const hs_image *mask, hs_descriptor_type type,
                         hs_features *features) {
  if (!c) return HS_ERR_ARGUMENT;
  context_clear_error(c);
  if (!image || !features) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "image or features is null");
  frame_request request = {.descriptor_bytes = features_descriptor_bytes(type)};
  frame_output out;
  const hs_status st = run_pixels(c, image, mask, &request, &out);
  return st == HS_OK ? extract_copy(c, image, &out.result, type, features) : st;
}

bool extract_rows_may(const hs_context *c) { return context_may_take_rows(&c->options, &c->params); }

/* Returns whether the frame needs tiles and fits with rows: on the engine if it uses tiles itself, else on the host. */
static bool fits_in_rows(hs_context *c, frame_request *request) {
  uint64_t device_bytes, host_bytes;
  if (!c->engine->tiles) return context_fits_in_rows(c, request);
  request->untiled_status = HS_ERR_LIMIT;
  return c->engine->tiles->query_rows(c, request, &device_bytes, &host_bytes);
}

bool extract_rows(hs_context *c, const hs_image *image, row_feed *feed, const hs_image *mask, hs_features *features,
                  hs_status *st) {
  const hs_descriptor_type type = c->options.descriptor;
  frame_request request = {.feed = feed, .descriptor_bytes = features_descriptor_bytes(type), .may_tile = true};
  frame_output out;
  *st = image_view_source(c, image, &request.source);
  if (*st == HS_OK && !fits_in_rows(c, &request)) {
    context_clear_error(c);
    return false;
  }
  if (*st == HS_OK) *st = image_view_filter(c, image, mask, &request.filter);
  if (*st == HS_OK) *st = run_listed(c, &request, &out);
  if (*st == HS_OK) *st = extract_copy(c, image, &out.result, type, features);
  /* the lists may have grown so far that rows do not fit, or the device may lack memory for tiles */
  const bool is_full = *st == HS_ERR_LIMIT || backend_falls_back(c, *st);
  if (!is_full || feed->failure != HS_OK) return true;
  context_clear_error(c);
  return false;
}

hs_status hs_extract_view(hs_context *c, const hs_image *image, const hs_image *mask, const hs_features **features) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!c) return HS_ERR_ARGUMENT;
  if (features) *features = NULL;
  context_clear_error(c);
  if (!image || !features) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "image or features is null");
  frame_request request = {.descriptor_bytes = features_descriptor_bytes(c->options.descriptor)};
  frame_output out;
  const hs_status st = run_pixels(c, image, mask, &request, &out);
  return st == HS_OK ? extract_view(c, image, &out.result, features) : st;
}

hs_status hs_extract(hs_context *context, const hs_image *image, const hs_image *mask, hs_features *features) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  return extract(context, image, mask, context ? context->options.descriptor : HS_DESCRIPTOR_NONE, features);
}

hs_status hs_detect(hs_context *context, const hs_image *image, const hs_image *mask, hs_features *features) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  return extract(context, image, mask, HS_DESCRIPTOR_NONE, features);
}

hs_status hs_extract_into(hs_context *c, const hs_image *image, const hs_image *mask, hs_keypoint *keypoints,
                          void *descriptors, size_t capacity, size_t *count) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!c) return HS_ERR_ARGUMENT;
  context_clear_error(c);
  if (!image || !count || (!keypoints && capacity > 0))
    return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "image, keypoints or count is null");
  frame_request request = {.descriptor_bytes = descriptors ? features_descriptor_bytes(c->options.descriptor) : 0};
  frame_output out;
  const hs_status st = run_pixels(c, image, mask, &request, &out);
  if (st != HS_OK) return st;
  const uint32_t full = out.result.count, fits = full < capacity ? full : (uint32_t)capacity;
  copy_features(c, &out.result, fits, request.descriptor_bytes, keypoints, descriptors);
  *count = full;
  if (fits < full) return CONTEXT_FAIL(c, HS_ERR_CAPACITY, "%u features, but capacity for %zu", full, capacity);
  return HS_OK;
}
