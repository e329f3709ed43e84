/*
 * Views of the caller's images for the stages, and of the caller's arrays for the primitives, after all checks that do
 * not read pixels.
 */
#ifndef HARTSIFT_CONTEXT_IMAGE_VIEW_H
#define HARTSIFT_CONTEXT_IMAGE_VIEW_H

#include "pipeline/context/context.h"
#include "stages/primitives.h"

/* Checks an image (size, stride, type, layout, alignment, range, max_pixels, longest side) and makes its view.
   Statuses: HS_ERR_IMAGE, HS_ERR_LIMIT, HS_ERR_UNSUPPORTED (options.equalize). */
hs_status image_view_source(hs_context *context, const hs_image *image, source_view *view);

/* Checks the options' region and the mask (or null) for a checked image, and makes the filter. Status: HS_ERR_ARGUMENT,
   also if the region has no pixel of the image. */
hs_status image_view_filter(hs_context *context, const hs_image *image, const hs_image *mask, position_filter *filter);

/* Makes a filter without region and mask. */
void image_view_everywhere(const hs_image *image, position_filter *filter);

/* options.equalize: histogram equalisation of a picture before its frame. */

/* With options.equalize: replaces a picture in host memory by its equalised gray, in memory of the context that is
   valid until its next call. Without: leaves the picture unchanged. The picture is 8-bit, as image_view_source ensures.
   Statuses: HS_ERR_MEMORY, HS_ERR_LIMIT. */
hs_status equalize_picture(hs_context *context, source_view *source);

/* ------------------------------------------------------------------ arrays of the primitives */

/* Records a failure if the context is not null; the value of the expression is the status. */
#define ARRAY_FAIL(context, status, ...) ((context) ? CONTEXT_FAIL((context), (status), __VA_ARGS__) : (status))

/* Checks size, stride, type and alignment of an array and makes its view. name: name of the array in messages. context
   may be null here and below. Statuses: HS_ERR_ARGUMENT, HS_ERR_LIMIT. */
hs_status array_view_check(hs_context *context, const hs_array *array, const char *name, prim_view *view);

/* Like array_view_check, for an array whose type must be u8. */
hs_status array_view_check_u8(hs_context *context, const hs_array *array, const char *name, prim_view *view);

/* Checks a mask of a checked array: u8, of the same size. */
hs_status array_view_check_mask(hs_context *context, const hs_array *mask, const prim_view *of, prim_view *view);

/* Tiles of an array. A tile size larger than the array is reduced to the array's size. */
typedef struct array_tiling {
  size_t tile_width, tile_height;
  size_t columns, rows, count;
} array_tiling;

hs_status array_view_tiling(hs_context *context, const prim_view *view, const hs_tiling *tiling, array_tiling *out);

/* Checks the output array for a result with the view's type and size: alignment, stride (0: no gaps), and that it does
   not overlap the view; in_place allows the view itself. *stride: the actual stride. */
hs_status array_view_output(hs_context *context, const prim_view *view, const void *out, size_t out_stride_bytes,
                            bool in_place, size_t *stride);

/* Checks the taps and the border rule of a convolution of the view. */
hs_status array_view_filter(hs_context *context, const prim_view *view, const double *taps, size_t tap_count,
                            hs_ends ends);

#endif
