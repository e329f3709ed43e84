/*
 * The comparison of a GPU's decoding of JPEGs with libjpeg's, which decides whether it is used.
 */
#ifndef HARTSIFT_ENCODED_DECODER_CHECK_H
#define HARTSIFT_ENCODED_DECODER_CHECK_H

#include "pipeline/context/context.h"
#include "pipeline/image_io/jpeg/synthetic_jpeg.h"

/* Whether the context's device may decode; asked and compared where that has not been done. */
bool decoder_check_ready(hs_context *context);

/* Compares made pictures first..first+count-1, at most JPEG_GROUP_MAX of them. False: reason says what differs. */
bool decoder_check_run(hs_context *context, uint32_t first, int32_t count, char *reason, size_t reason_bytes);

/* One of the pictures compared. The kinds of sampling take turns, then what they are made of. */
synthetic_jpeg decoder_check_picture(uint32_t number);

#endif
