/*
 * options.equalize: the picture whose levels are spread before a frame.
 */
#ifndef HARTSIFT_FRAME_EQUALIZE_PICTURE_H
#define HARTSIFT_FRAME_EQUALIZE_PICTURE_H

#include "pipeline/context/context.h"

/* With options.equalize, replaces a picture in host memory (8-bit: image_view_source sees to it) by its equalised gray,
   in memory of the context until its next call; without, leaves it. Statuses: HS_ERR_MEMORY, HS_ERR_LIMIT. */
hs_status equalize_picture(hs_context *context, source_view *source);

#endif
