/*
 * The caller's arrays as the primitives see them, after every check that needs no element; for host and device alike.
 */
#ifndef HARTSIFT_CONTEXT_ARRAY_VIEW_H
#define HARTSIFT_CONTEXT_ARRAY_VIEW_H

#include "pipeline/context/context.h"
#include "stages/primitives.h"

/* Records a failure where there is a context, and gives the status. */
#define ARRAY_FAIL(context, status, ...) ((context) ? CONTEXT_FAIL((context), (status), __VA_ARGS__) : (status))

/* Size, stride, type and alignment of an array; name: what messages call it. context may be null here and below.
   Statuses: HS_ERR_ARGUMENT, HS_ERR_LIMIT. */
hs_status array_view_check(hs_context *context, const hs_array *array, const char *name, prim_view *view);

/* The same for one that must be of u8. */
hs_status array_view_check_u8(hs_context *context, const hs_array *array, const char *name, prim_view *view);

/* A mask of an array that passed: u8 of its size. */
hs_status array_view_check_mask(hs_context *context, const hs_array *mask, const prim_view *of, prim_view *view);

/* The tiles of an array; a tile that exceeds it is cut to its size. */
typedef struct array_tiling {
  size_t tile_width, tile_height;
  size_t columns, rows, count;
} array_tiling;

hs_status array_view_tiling(hs_context *context, const prim_view *view, const hs_tiling *tiling, array_tiling *out);

/* Where a result of the view's type and size goes: stride (0: a row), alignment, and that it lies apart from the view
   or, where in_place allows it, is the view. *stride: the true one. */
hs_status array_view_output(hs_context *context, const prim_view *view, const void *out, size_t out_stride_bytes,
                            bool in_place, size_t *stride);

/* The taps and ends of a convolution of the view. */
hs_status array_view_filter(hs_context *context, const prim_view *view, const double *taps, size_t tap_count,
                            hs_ends ends);

#endif
