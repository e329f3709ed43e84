/* Checks the caller's images and arrays, and makes views of them for the stages. */
#include "pipeline/context/image_view.h"

#include <stdlib.h>

#include "cpu/dispatch.h"
#include "cpu/primitives/primitives_threads.h"
#include "pipeline/base/adopt.h"
#include "pipeline/base/memory.h"
#include "stages/pyramid.h"

_Static_assert((int)SOURCE_U8 == HS_U8 && (int)SOURCE_U16 == HS_U16 && (int)SOURCE_F32 == HS_F32, "sample types");
_Static_assert((int)SOURCE_GRAY == HS_GRAY && (int)SOURCE_GRAY_ALPHA == HS_GRAY_ALPHA && (int)SOURCE_RGB == HS_RGB &&
                   (int)SOURCE_BGR == HS_BGR && (int)SOURCE_RGBA == HS_RGBA && (int)SOURCE_BGRA == HS_BGRA,
               "pixel layouts");

/* Refuses sides that are too long for the pyramid's coordinates, before any memory is allocated. */
static hs_status check_sides(hs_context *c, const hs_image *image) {
  const int32_t first = c->options.first_octave;
  const bool wide = pyramid_first_side(image->width, first) > PYRAMID_SIDE_MAX;
  if (!wide && pyramid_first_side(image->height, first) <= PYRAMID_SIDE_MAX) return HS_OK;
  const int32_t side = wide ? image->width : image->height;
  return CONTEXT_FAIL(c, HS_ERR_LIMIT,
                      "the image's %s of %d pixels makes a first octave of %lld samples, the most is %d: cut the image "
                      "into tiles, or choose a larger options.first_octave than %d",
                      wide ? "width" : "height", side, (long long)pyramid_first_side(side, first),
                      (int)PYRAMID_SIDE_MAX, first);
}

hs_status image_view_source(hs_context *c, const hs_image *image, source_view *view) {
  if (!image->data) return CONTEXT_FAIL(c, HS_ERR_IMAGE, "image.data is null");
  if (!RESERVED_IS_CLEAR(image->reserved))
    return CONTEXT_FAIL(c, HS_ERR_IMAGE, "image.reserved is set: start with {0}, or use a later library");
  if (image->width < 1 || image->height < 1)
    return CONTEXT_FAIL(c, HS_ERR_IMAGE, "image is %d x %d, expected at least 1 x 1", image->width, image->height);
  if ((unsigned)image->type > HS_F32)
    return CONTEXT_FAIL(c, HS_ERR_IMAGE, "image.type is %d, expected 0..2", (int)image->type);
  if (c->options.equalize && image->type != HS_U8)
    return CONTEXT_FAIL(c, HS_ERR_UNSUPPORTED, "options.equalize is for 8-bit images, this one has %s samples",
                        image->type == HS_U16 ? "16-bit" : "float");
  if ((unsigned)image->layout > HS_BGRA)
    return CONTEXT_FAIL(c, HS_ERR_IMAGE, "image.layout is %d, expected 0..5", (int)image->layout);
  const uint64_t pixels = (uint64_t)image->width * (uint64_t)image->height, limit = c->options.max_pixels;
  if (pixels > limit)
    return CONTEXT_FAIL(c, HS_ERR_LIMIT, "image is %d x %d = %llu pixels, max_pixels is %llu", image->width,
                        image->height, (unsigned long long)pixels, (unsigned long long)limit);
  const hs_status sides = check_sides(c, image);
  if (sides != HS_OK) return sides;
  const size_t sample = source_sample_bytes((source_type)image->type);
  size_t row, all;
  if (!hs_size_mul((size_t)image->width, source_pixel_bytes((source_type)image->type, (source_layout)image->layout),
                   &row))
    return CONTEXT_FAIL(c, HS_ERR_LIMIT, "a row of %d pixels does not fit the address space", image->width);
  const size_t stride = image->stride_bytes ? image->stride_bytes : row;
  if (stride < row || stride % sample != 0)
    return CONTEXT_FAIL(c, HS_ERR_IMAGE, "image.stride_bytes is %zu, expected at least %zu and a multiple of %zu",
                        stride, row, sample);
  if (!hs_size_mul(stride, (size_t)image->height, &all))
    return CONTEXT_FAIL(c, HS_ERR_LIMIT, "image of %d rows of %zu bytes does not fit the address space", image->height,
                        stride);
  if ((uintptr_t)image->data % sample != 0)
    return CONTEXT_FAIL(c, HS_ERR_IMAGE, "image.data is not aligned for its samples");
  *view = (source_view){
      image->data, image->width, image->height, stride, (source_type)image->type, (source_layout)image->layout,
      0.0f,        1.0f};
  if (image->type != HS_F32 || (image->range_low == 0.0f && image->range_high == 0.0f)) return HS_OK;
  if (!(image->range_low < image->range_high) || image->range_high - image->range_low > 3.0e38f)
    return CONTEXT_FAIL(c, HS_ERR_IMAGE, "image.range is %g..%g, expected finite and low < high",
                        (double)image->range_low, (double)image->range_high);
  view->range_low = image->range_low;
  view->range_high = image->range_high;
  return HS_OK;
}

void image_view_everywhere(const hs_image *image, position_filter *filter) {
  *filter = (position_filter){.width = image->width,
                              .height = image->height,
                              .x0 = INT32_MIN,
                              .y0 = INT32_MIN,
                              .x1 = INT32_MAX,
                              .y1 = INT32_MAX};
}

hs_status image_view_filter(hs_context *c, const hs_image *image, const hs_image *mask, position_filter *filter) {
  const hs_options *o = &c->options;
  image_view_everywhere(image, filter);
  if (o->region_width > 0) {
    const int64_t x1 = (int64_t)o->region_x + o->region_width, y1 = (int64_t)o->region_y + o->region_height;
    filter->x0 = o->region_x;
    filter->y0 = o->region_y;
    filter->x1 = (int32_t)(x1 < INT32_MAX ? x1 : INT32_MAX);
    filter->y1 = (int32_t)(y1 < INT32_MAX ? y1 : INT32_MAX);
    if (filter->x0 >= image->width || filter->y0 >= image->height || x1 <= 0 || y1 <= 0)
      return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "the region %d,%d,%d,%d has no pixel of the image of %d x %d",
                          o->region_x, o->region_y, o->region_width, o->region_height, image->width, image->height);
  }
  if (!mask) return HS_OK;
  if (!mask->data) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "mask.data is null");
  if (!RESERVED_IS_CLEAR(mask->reserved))
    return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "mask.reserved is set: start with {0}, or use a later library");
  if (mask->type != HS_U8 || mask->layout != HS_GRAY || mask->width != image->width || mask->height != image->height)
    return CONTEXT_FAIL(c, HS_ERR_ARGUMENT,
                        "mask is %d x %d of type %d and layout %d, expected 8-bit gray (type %d, layout %d) of the "
                        "image's size %d x %d",
                        mask->width, mask->height, (int)mask->type, (int)mask->layout, (int)HS_U8, (int)HS_GRAY,
                        image->width, image->height);
  const size_t stride = mask->stride_bytes ? mask->stride_bytes : (size_t)mask->width;
  if (stride < (size_t)mask->width)
    return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "mask.stride_bytes is %zu, expected at least %d", stride, mask->width);
  size_t all;
  if (!hs_size_mul(stride, (size_t)mask->height, &all))
    return CONTEXT_FAIL(c, HS_ERR_LIMIT, "mask of %d rows of %zu bytes does not fit the address space", mask->height,
                        stride);
  filter->mask = mask->data;
  filter->mask_stride = stride;
  return HS_OK;
}

/* ------------------------------------------------- equalization, on the host */

/* Writes the gray of each pixel, from the positions of red, green and blue in its layout. */
static void gray_of_colour(const source_view *s, uint8_t *out) {
  const size_t step = source_channels(s->layout);
  const bool blue_first = s->layout == SOURCE_BGR || s->layout == SOURCE_BGRA, colour = step >= 3;
  const size_t red = blue_first ? 2 : 0, blue = blue_first ? 0 : 2;
  for (int32_t y = 0; y < s->height; y++) {
    const uint8_t *in = (const uint8_t *)s->data + (size_t)y * s->stride_bytes;
    for (int32_t x = 0; x < s->width; x++, in += step)
      *out++ = colour ? (uint8_t)gray_of_rgb_int(in[red], in[1], in[blue]) : in[0];
  }
}

hs_status equalize_picture(hs_context *c, source_view *s) {
  if (c->options.equalize == 0) return HS_OK;
  assert(s->type == SOURCE_U8);
  const size_t width = (size_t)s->width, height = (size_t)s->height;
  void *memory;
  hs_status st = context_scratch(c, SCRATCH_PICTURE, width, height, &memory);
  if (st == HS_OK && prim_backend_shares(width * height, PRIM_WORK)) st = context_start_queue(c);
  if (st != HS_OK) return st;
  uint8_t *out = memory;
  prim_view picture = {s->data, width, height, s->stride_bytes, PRIM_U8};
  if (s->layout != SOURCE_GRAY) {
    gray_of_colour(s, out);
    picture.data = out;
    picture.stride_bytes = width;
  }
  const prim_backend backend = {c->queue, cpu_choose_prims()};
  if (!backend.ops)
    return CONTEXT_FAIL(c, HS_ERR_OPTION, "HARTSIFT_CPU is \"%s\", which is no instruction set of this machine",
                        getenv("HARTSIFT_CPU"));
  prim_equalize(backend, &picture, out, width);
  s->data = out;
  s->stride_bytes = width;
  s->layout = SOURCE_GRAY;
  return HS_OK;
}

/* ------------------------------------------------------------------ arrays of the primitives */

_Static_assert((int)HS_ELEMENT_U8 == PRIM_U8 && (int)HS_ELEMENT_U16 == PRIM_U16 && (int)HS_ELEMENT_F32 == PRIM_F32 &&
                   (int)HS_ELEMENT_F64 == PRIM_F64,
               "element types");

static const uint64_t elements_max = (uint64_t)1 << 40;

hs_status array_view_check(hs_context *c, const hs_array *array, const char *name, prim_view *view) {
  if (!array || !array->data) return ARRAY_FAIL(c, HS_ERR_ARGUMENT, "%s or its data is null", name);
  if ((unsigned)array->type > HS_ELEMENT_F64)
    return ARRAY_FAIL(c, HS_ERR_ARGUMENT, "%s.type is %d, expected 0..3", name, (int)array->type);
  if (array->width < 1 || array->height < 1)
    return ARRAY_FAIL(c, HS_ERR_ARGUMENT, "%s is %zu x %zu, expected at least 1 x 1", name, array->width,
                      array->height);
  const size_t bytes = prim_element_bytes((prim_element)array->type);
  size_t elements, row, all;
  if (!hs_size_mul(array->width, array->height, &elements) || elements > elements_max)
    return ARRAY_FAIL(c, HS_ERR_LIMIT, "%s is %zu x %zu, expected 2^40 elements at most", name, array->width,
                      array->height);
  if (!hs_size_mul(array->width, bytes, &row))
    return ARRAY_FAIL(c, HS_ERR_LIMIT, "a row of %zu elements does not fit the address space", array->width);
  const size_t stride = array->stride_bytes ? array->stride_bytes : row;
  if (stride < row || stride % bytes != 0)
    return ARRAY_FAIL(c, HS_ERR_ARGUMENT, "%s.stride_bytes is %zu, expected at least %zu and a multiple of %zu", name,
                      stride, row, bytes);
  if (!hs_size_mul(stride, array->height, &all) || all > SIZE_MAX - (uintptr_t)array->data)
    return ARRAY_FAIL(c, HS_ERR_LIMIT, "%zu rows of %zu bytes do not fit the address space", array->height, stride);
  if ((uintptr_t)array->data % bytes != 0)
    return ARRAY_FAIL(c, HS_ERR_ARGUMENT, "%s.data is not aligned for its elements", name);
  *view = (prim_view){array->data, array->width, array->height, stride, (prim_element)array->type};
  return HS_OK;
}

hs_status array_view_check_u8(hs_context *c, const hs_array *array, const char *name, prim_view *view) {
  const hs_status st = array_view_check(c, array, name, view);
  if (st == HS_OK && view->type != PRIM_U8)
    return ARRAY_FAIL(c, HS_ERR_ARGUMENT, "%s.type is %d, expected HS_ELEMENT_U8", name, (int)array->type);
  return st;
}

hs_status array_view_check_mask(hs_context *c, const hs_array *mask, const prim_view *of, prim_view *view) {
  const hs_status st = array_view_check_u8(c, mask, "mask", view);
  if (st == HS_OK && (view->width != of->width || view->height != of->height))
    return ARRAY_FAIL(c, HS_ERR_ARGUMENT, "mask is %zu x %zu, expected the array's %zu x %zu", view->width,
                      view->height, of->width, of->height);
  return st;
}

hs_status array_view_tiling(hs_context *c, const prim_view *view, const hs_tiling *tiling, array_tiling *out) {
  if (!tiling || tiling->width < 1 || tiling->height < 1)
    return ARRAY_FAIL(c, HS_ERR_ARGUMENT, "tiling is null, or a tile is not at least 1 x 1");
  out->tile_width = tiling->width < view->width ? tiling->width : view->width;
  out->tile_height = tiling->height < view->height ? tiling->height : view->height;
  out->columns = (view->width - 1) / out->tile_width + 1;
  out->rows = (view->height - 1) / out->tile_height + 1;
  out->count = out->columns * out->rows; /* cannot overflow: at most the number of elements of the array */
  return HS_OK;
}

/* Returns the bytes from a view's first element to the end of its last. */
static size_t span_of(const prim_view *view, size_t stride) {
  return (view->height - 1) * stride + view->width * prim_element_bytes(view->type);
}

hs_status array_view_output(hs_context *c, const prim_view *view, const void *out, size_t out_stride_bytes,
                            bool in_place, size_t *stride) {
  const size_t bytes = prim_element_bytes(view->type), row = view->width * bytes;
  if (!out) return ARRAY_FAIL(c, HS_ERR_ARGUMENT, "out is null");
  *stride = out_stride_bytes ? out_stride_bytes : row;
  if (*stride < row || *stride % bytes != 0 || (uintptr_t)out % bytes != 0)
    return ARRAY_FAIL(c, HS_ERR_ARGUMENT,
                      "out_stride_bytes is %zu, expected at least %zu and a multiple of %zu; out aligned for it",
                      *stride, row, bytes);
  size_t all;
  if (!hs_size_mul(*stride, view->height, &all) || all > SIZE_MAX - (uintptr_t)out)
    return ARRAY_FAIL(c, HS_ERR_LIMIT, "%zu rows of %zu bytes do not fit the address space", view->height, *stride);
  if (in_place && out == view->data && (*stride == view->stride_bytes || view->height == 1)) return HS_OK;
  const uintptr_t from = (uintptr_t)view->data, to = (uintptr_t)out;
  if (from < to + span_of(view, *stride) && to < from + span_of(view, view->stride_bytes))
    return ARRAY_FAIL(c, HS_ERR_ARGUMENT, "out overlaps the input");
  return HS_OK;
}

hs_status array_view_filter(hs_context *c, const prim_view *view, const double *taps, size_t tap_count, hs_ends ends) {
  if (view->type < PRIM_F32)
    return ARRAY_FAIL(c, HS_ERR_ARGUMENT, "signal.type is %d, expected HS_ELEMENT_F32 or HS_ELEMENT_F64",
                      (int)view->type);
  if (!taps) return ARRAY_FAIL(c, HS_ERR_ARGUMENT, "taps is null");
  if (tap_count % 2 == 0 || tap_count > PRIM_TAPS_MAX)
    return ARRAY_FAIL(c, HS_ERR_ARGUMENT, "%zu taps, expected an odd number of them up to %d", tap_count,
                      (int)PRIM_TAPS_MAX);
  if ((unsigned)ends > HS_ENDS_REFLECT_101)
    return ARRAY_FAIL(c, HS_ERR_ARGUMENT, "ends is %d, expected 0..2", (int)ends);
  return HS_OK;
}
