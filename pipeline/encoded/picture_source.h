/*
 * The picture of a frame: a view of the caller's pixels, or what a file that was kept encoded (HS_JPEG) is decoded to,
 * on the context's device in front of the frame, else by libjpeg.
 */
#ifndef HARTSIFT_ENCODED_PICTURE_SOURCE_H
#define HARTSIFT_ENCODED_PICTURE_SOURCE_H

#include "pipeline/context/engine.h"

/* Checks an image, encoded or not, as a frame would, without decoding it. Statuses: as hs_extract. */
hs_status picture_check(hs_context *context, const hs_image *image);

/* Sets the sources of requests[count] to the pictures of images[count], 1..JPEG_GROUP_MAX: all of pixels or all encoded.
   Encoded ones are decoded on the device where on_device is true and it takes them, and source_on_device is set: then what
   decoder->refused says after the frame decides whether they are asked for again, with on_device false. Else they are
   decoded into host memory of the context. They are valid until its next call. Statuses: as hs_extract, and
   HS_ERR_IMAGE for a file that is not what loading left. */
hs_status picture_sources(hs_context *context, const hs_image *const *images, int32_t count, bool on_device,
                          frame_request *requests);

/* Enqueues the decoding of 1..JPEG_GROUP_MAX encoded images on the context's stream. False: libjpeg is to decode them. */
bool picture_decode(hs_context *context, const hs_image *const *images, int32_t count, decoded_rows *rows);

#endif
