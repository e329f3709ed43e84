/* The public calls on one picture: checks of what the caller hands in, the frame, and the copy of its lists. */
#include <string.h>

#include "cpu/float_environment.h"
#include "pipeline/context.h"
#include "pipeline/cuda_frame.h"
#include "pipeline/features.h"
#include "pipeline/memory.h"
#include "pipeline/run.h"

_Static_assert((int)SOURCE_U8 == HS_U8 && (int)SOURCE_U16 == HS_U16 && (int)SOURCE_F32 == HS_F32, "sample types");
_Static_assert((int)SOURCE_GRAY == HS_GRAY && (int)SOURCE_GRAY_ALPHA == HS_GRAY_ALPHA && (int)SOURCE_RGB == HS_RGB &&
                   (int)SOURCE_BGR == HS_BGR && (int)SOURCE_RGBA == HS_RGBA && (int)SOURCE_BGRA == HS_BGRA,
               "pixel layouts");
_Static_assert((int)RULE_OPENCV == HS_RULE_OPENCV && (int)RULE_VLFEAT == HS_RULE_VLFEAT, "rules");
_Static_assert((int)DESCRIBE_LENGTH == HS_DESCRIPTOR_LENGTH, "descriptor length");
_Static_assert(sizeof(hs_keypoint) == 24, "documented size of a keypoint");

static const size_t channels_of[] = {1, 2, 3, 3, 4, 4};
static const size_t bytes_of[] = {1, 2, 4};

/* The caller's image as a stage sees it. */
static hs_status view_source(hs_context *c, const hs_image *image, source_view *view) {
  if (!image->data) return CONTEXT_FAIL(c, HS_ERR_IMAGE, "image.data is null");
  if (image->width < 1 || image->height < 1)
    return CONTEXT_FAIL(c, HS_ERR_IMAGE, "image is %d x %d, expected at least 1 x 1", image->width, image->height);
  if ((unsigned)image->type > HS_F32) return CONTEXT_FAIL(c, HS_ERR_IMAGE, "image.type is %d, expected 0..2", (int)image->type);
  if ((unsigned)image->layout > HS_BGRA)
    return CONTEXT_FAIL(c, HS_ERR_IMAGE, "image.layout is %d, expected 0..5", (int)image->layout);
  const uint64_t pixels = (uint64_t)image->width * (uint64_t)image->height, limit = c->options.max_pixels;
  if (limit > 0 && pixels > limit)
    return CONTEXT_FAIL(c, HS_ERR_LIMIT, "image is %d x %d = %llu pixels, max_pixels is %llu", image->width, image->height,
                        (unsigned long long)pixels, (unsigned long long)limit);
  const size_t sample = bytes_of[image->type];
  size_t row, all;
  if (!hs_size_mul((size_t)image->width, channels_of[image->layout] * sample, &row))
    return CONTEXT_FAIL(c, HS_ERR_LIMIT, "a row of %d pixels does not fit the address space", image->width);
  const size_t stride = image->stride_bytes ? image->stride_bytes : row;
  if (stride < row || stride % sample != 0)
    return CONTEXT_FAIL(c, HS_ERR_IMAGE, "image.stride_bytes is %zu, expected at least %zu and a multiple of %zu", stride, row, sample);
  if (!hs_size_mul(stride, (size_t)image->height, &all))
    return CONTEXT_FAIL(c, HS_ERR_LIMIT, "image of %d rows of %zu bytes does not fit the address space", image->height, stride);
  if ((uintptr_t)image->data % sample != 0) return CONTEXT_FAIL(c, HS_ERR_IMAGE, "image.data is not aligned for its samples");
  *view = (source_view){image->data, image->width, image->height, stride, (source_type)image->type,
                        (source_layout)image->layout, 0.0f, 1.0f};
  if (image->type != HS_F32 || (image->range_low == 0.0f && image->range_high == 0.0f)) return HS_OK;
  if (!(image->range_low < image->range_high) || image->range_high - image->range_low > 3.0e38f)
    return CONTEXT_FAIL(c, HS_ERR_IMAGE, "image.range is %g..%g, expected finite and low < high", (double)image->range_low,
                        (double)image->range_high);
  view->range_low = image->range_low;
  view->range_high = image->range_high;
  return HS_OK;
}

static hs_status view_filter(hs_context *c, const hs_image *image, const hs_image *mask, place_filter *filter) {
  const hs_options *o = &c->options;
  *filter = (place_filter){.width = image->width, .height = image->height, .x0 = INT32_MIN, .y0 = INT32_MIN, .x1 = INT32_MAX, .y1 = INT32_MAX};
  if (o->region_width > 0) {
    const int64_t x1 = (int64_t)o->region_x + o->region_width, y1 = (int64_t)o->region_y + o->region_height;
    filter->x0 = o->region_x;
    filter->y0 = o->region_y;
    filter->x1 = (int32_t)(x1 < INT32_MAX ? x1 : INT32_MAX);
    filter->y1 = (int32_t)(y1 < INT32_MAX ? y1 : INT32_MAX);
  }
  if (!mask) return HS_OK;
  const size_t stride = mask->stride_bytes ? mask->stride_bytes : (size_t)mask->width;
  if (!mask->data || mask->type != HS_U8 || mask->layout != HS_GRAY || mask->width != image->width ||
      mask->height != image->height || stride < (size_t)mask->width)
    return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "mask is %d x %d, expected 8-bit gray of the image's size %d x %d", mask->width,
                        mask->height, image->width, image->height);
  filter->mask = mask->data;
  filter->mask_stride = stride;
  return HS_OK;
}

/* Keypoint n of the lists, with an orientation, as the caller sees it. */
static hs_keypoint keypoint_of(const keypoint_list *k, uint32_t n, float orientation) {
  return (hs_keypoint){k->x[n], k->y[n], k->sigma[n], orientation, k->response[n], k->octave[n], k->level[n]};
}

/* The features of a frame, wherever it ran: as records (from a device), else in the lists of the workspace. */
typedef struct frame_output {
  uint32_t count;
  const hs_keypoint *records;
  const void *descriptors;
  workspace lists;
} frame_output;

static void copy_keypoints(const frame_output *f, hs_keypoint *keypoints, uint32_t count) {
  if (f->records && count > 0) memcpy(keypoints, f->records, count * sizeof *keypoints);
  if (f->records) return;
  for (uint32_t i = 0; i < count; i++)
    keypoints[i] = keypoint_of(&f->lists.keypoints, f->lists.features.keypoint[i], f->lists.features.orientation[i]);
}

/* Checks, and runs on the context's device; given keypoints are described by the CPU. */
static hs_status run_checked(hs_context *c, const hs_image *image, const hs_image *mask, frame_request *request, frame_output *out) {
  hs_status st = view_source(c, image, &request->source);
  if (st == HS_OK) st = view_filter(c, image, mask, &request->filter);
  if (st != HS_OK) return st;
  *out = (frame_output){0};
  float_environment saved;
  float_environment_enter(&saved);
  if (c->cuda && !request->given) {
    cuda_frame_result result = {0};
    st = cuda_frame_run(c, request, &result);
    out->count = result.count;
    out->records = result.keypoints;
    out->descriptors = result.descriptors;
  } else {
    st = run_frame(c, request, &out->lists);
    if (st == HS_OK) out->count = *out->lists.features.count;
    out->descriptors = out->lists.descriptors;
  }
  float_environment_leave(&saved);
  return st;
}

static hs_status extract(hs_context *c, const hs_image *image, const hs_image *mask, hs_descriptor_type type, hs_features *features) {
  if (!c) return HS_ERR_ARGUMENT;
  c->error[0] = '\0';
  if (!image || !features) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "image or features is null");
  frame_request request = {.descriptor_bytes = features_descriptor_bytes(type)};
  frame_output out;
  hs_status st = run_checked(c, image, mask, &request, &out);
  if (st != HS_OK) return st;
  st = features_reserve(features, out.count, type, c->options.allocator);
  if (st != HS_OK) return CONTEXT_FAIL(c, st, "cannot make room for %u features", out.count);
  copy_keypoints(&out, features->keypoints, out.count);
  if (out.count > 0 && request.descriptor_bytes > 0) memcpy(features->descriptors, out.descriptors, out.count * request.descriptor_bytes);
  features->count = out.count;
  features->image_width = image->width;
  features->image_height = image->height;
  return HS_OK;
}

hs_status hs_extract_view(hs_context *c, const hs_image *image, const hs_image *mask, const hs_features **features) {
  if (!c) return HS_ERR_ARGUMENT;
  if (features) *features = NULL;
  hs_status st = HS_OK;
  if (!c->cuda || !image || !features) {
    st = extract(c, image, mask, c->options.descriptor, features ? &c->view : NULL);
  } else {
    c->error[0] = '\0';
    frame_request request = {.descriptor_bytes = features_descriptor_bytes(c->options.descriptor)};
    frame_output out;
    st = run_checked(c, image, mask, &request, &out);
    c->pinned_view = (hs_features){.count = out.count,
                                   .keypoints = (hs_keypoint *)(uintptr_t)out.records,
                                   .descriptors = (void *)(uintptr_t)out.descriptors,
                                   .descriptor_type = c->options.descriptor,
                                   .image_width = image->width,
                                   .image_height = image->height};
  }
  if (st == HS_OK) *features = c->cuda ? &c->pinned_view : &c->view;
  return st;
}

hs_status hs_extract_masked(hs_context *context, const hs_image *image, const hs_image *mask, hs_features *features) {
  return extract(context, image, mask, context ? context->options.descriptor : HS_DESCRIPTOR_NONE, features);
}

hs_status hs_extract(hs_context *context, const hs_image *image, hs_features *features) {
  return hs_extract_masked(context, image, NULL, features);
}

hs_status hs_detect(hs_context *context, const hs_image *image, const hs_image *mask, hs_features *features) {
  return extract(context, image, mask, HS_DESCRIPTOR_NONE, features);
}

hs_status hs_extract_into(hs_context *c, const hs_image *image, const hs_image *mask, hs_keypoint *keypoints, void *descriptors,
                          size_t capacity, size_t *count) {
  if (!c) return HS_ERR_ARGUMENT;
  c->error[0] = '\0';
  if (!image || !count || (!keypoints && capacity > 0)) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "image, keypoints or count is null");
  frame_request request = {.descriptor_bytes = descriptors ? features_descriptor_bytes(c->options.descriptor) : 0};
  frame_output out;
  const hs_status st = run_checked(c, image, mask, &request, &out);
  if (st != HS_OK) return st;
  const uint32_t full = out.count, fits = full < capacity ? full : (uint32_t)capacity;
  copy_keypoints(&out, keypoints, fits);
  if (fits > 0 && request.descriptor_bytes > 0) memcpy(descriptors, out.descriptors, fits * request.descriptor_bytes);
  *count = full;
  if (fits < full) return CONTEXT_FAIL(c, HS_ERR_CAPACITY, "%u features, room for %zu", full, capacity);
  return HS_OK;
}

/* The frame's features in the order of the given keypoints; a failed one stands there with a zero descriptor.
   slot[i]: where keypoint i's first feature goes (count + 1 entries). */
static void copy_given(const frame_request *r, const workspace *w, uint32_t *slot, hs_features *out) {
  const uint32_t count = *w->features.count;
  const size_t bytes = r->descriptor_bytes;
  for (uint32_t i = 0; i < r->given_count; i++) {
    if (r->given_statuses[i] == HS_OK) continue;
    const float a = r->given[i].orientation;
    hs_keypoint *k = &out->keypoints[slot[i]];
    *k = r->given[i];
    k->orientation = a >= 0.0f && a < TWO_PI_FLOAT ? a : 0.0f;
    if (bytes > 0) memset((unsigned char *)out->descriptors + slot[i] * bytes, 0, bytes);
  }
  for (uint32_t f = 0; f < count; f++) {
    const uint32_t k = w->features.keypoint[f], to = slot[w->sources[k]]++;
    out->keypoints[to] = keypoint_of(&w->keypoints, k, w->features.orientation[f]);
    if (bytes > 0) memcpy((unsigned char *)out->descriptors + to * bytes, w->descriptors + f * bytes, bytes);
  }
}

/* First slot of each given keypoint, from how many features it has; returns their sum. */
static uint64_t count_slots(const frame_request *r, const workspace *w, uint32_t *slot) {
  memset(slot, 0, sizeof *slot * ((size_t)r->given_count + 1));
  for (uint32_t f = 0; f < *w->features.count; f++) slot[w->sources[w->features.keypoint[f]]]++;
  uint64_t at = 0;
  for (uint32_t i = 0; i < r->given_count; i++) {
    const uint32_t n = r->given_statuses[i] == HS_OK ? slot[i] : 1;
    slot[i] = (uint32_t)at;
    at += n;
  }
  return at;
}

static hs_status describe_given(hs_context *c, const hs_image *image, frame_request *request, uint32_t *slot, hs_features *features) {
  frame_output out;
  hs_status st = run_checked(c, image, NULL, request, &out);
  if (st != HS_OK) return st;
  const uint64_t count = count_slots(request, &out.lists, slot);
  if (count > UINT32_MAX) return CONTEXT_FAIL(c, HS_ERR_LIMIT, "%llu features", (unsigned long long)count);
  st = features_reserve(features, (size_t)count, c->options.descriptor, c->options.allocator);
  if (st != HS_OK) return CONTEXT_FAIL(c, st, "cannot make room for %llu features", (unsigned long long)count);
  copy_given(request, &out.lists, slot, features);
  features->count = (size_t)count;
  features->image_width = image->width;
  features->image_height = image->height;
  return HS_OK;
}

hs_status hs_describe(hs_context *c, const hs_image *image, const hs_keypoint *keypoints, size_t count, hs_features *features,
                      hs_status *statuses) {
  if (!c) return HS_ERR_ARGUMENT;
  c->error[0] = '\0';
  if (!image || !features || (!keypoints && count > 0)) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "image, keypoints or features is null");
  if (count > 0 && keypoints == features->keypoints)
    return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "keypoints must not be features' own, which this call fills");
  if (count > (size_t)1 << 28) return CONTEXT_FAIL(c, HS_ERR_LIMIT, "%zu keypoints, at most 2^28", count);
  const hs_allocator *a = c->options.allocator;
  const hs_keypoint none = {0};
  hs_status *own = statuses ? NULL : hs_memory_alloc(a, sizeof *own * (count + 1));
  uint32_t *slot = hs_memory_alloc(a, sizeof *slot * (count + 1));
  hs_status st = HS_ERR_MEMORY;
  if (slot && (statuses || own)) {
    frame_request request = {.descriptor_bytes = features_descriptor_bytes(c->options.descriptor),
                             .given = count > 0 ? keypoints : &none,
                             .given_count = (uint32_t)count,
                             .given_statuses = statuses ? statuses : own};
    st = describe_given(c, image, &request, slot, features);
  } else {
    st = CONTEXT_FAIL(c, st, "cannot allocate for %zu keypoints", count);
  }
  hs_memory_release(a, slot);
  hs_memory_release(a, own);
  return st;
}
