/* What a caller hands to the primitives, checked. */
#include "pipeline/context/array_view.h"

#include "pipeline/base/memory.h"

_Static_assert((int)HS_ELEMENT_U8 == PRIM_U8 && (int)HS_ELEMENT_U16 == PRIM_U16 && (int)HS_ELEMENT_F32 == PRIM_F32 &&
                   (int)HS_ELEMENT_F64 == PRIM_F64,
               "element types");

static const uint64_t most_elements = (uint64_t)1 << 40;

hs_status array_view_check(hs_context *c, const hs_array *array, const char *name, prim_view *view) {
  if (!array || !array->data) return ARRAY_FAIL(c, HS_ERR_ARGUMENT, "%s or its data is null", name);
  if ((unsigned)array->type > HS_ELEMENT_F64)
    return ARRAY_FAIL(c, HS_ERR_ARGUMENT, "%s.type is %d, expected 0..3", name, (int)array->type);
  if (array->width < 1 || array->height < 1)
    return ARRAY_FAIL(c, HS_ERR_ARGUMENT, "%s is %zu x %zu, expected at least 1 x 1", name, array->width,
                      array->height);
  const size_t bytes = prim_element_bytes((prim_element)array->type);
  size_t elements, row, all;
  if (!hs_size_mul(array->width, array->height, &elements) || elements > most_elements)
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
  out->count = out->columns * out->rows; /* at most the array's elements */
  return HS_OK;
}

/* Bytes from a view's first to beyond its last. */
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
