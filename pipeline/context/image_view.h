/*
 * The caller's images as the stages see them, after every check that needs no pixel.
 */
#ifndef HARTSIFT_CONTEXT_IMAGE_VIEW_H
#define HARTSIFT_CONTEXT_IMAGE_VIEW_H

#include "pipeline/context/context.h"

/* Size, stride, type, layout, alignment, range, max_pixels and the longest side. Statuses: HS_ERR_IMAGE, HS_ERR_LIMIT,
   HS_ERR_UNSUPPORTED (options.equalize). */
hs_status image_view_source(hs_context *context, const hs_image *image, source_view *view);

/* The options' region and the mask (or null) of an image that passed. Status: HS_ERR_ARGUMENT, also where the region has no
   pixel of the image. */
hs_status image_view_filter(hs_context *context, const hs_image *image, const hs_image *mask, place_filter *filter);

/* Without region and mask. */
void image_view_everywhere(const hs_image *image, place_filter *filter);

/* options.equalize: the picture whose levels are spread before a frame. */

/* With options.equalize, replaces a picture in host memory (8-bit: image_view_source sees to it) by its equalised gray,
   in memory of the context until its next call; without, leaves it. Statuses: HS_ERR_MEMORY, HS_ERR_LIMIT. */
hs_status equalize_picture(hs_context *context, source_view *source);

#endif
