/*
 * Writing pictures to image files.
 */
#ifndef HARTSIFT_CLI_DRAW_SAVE_PICTURE_H
#define HARTSIFT_CLI_DRAW_SAVE_PICTURE_H

#include "pipeline/image_io/image_io.h"

/* Writes an 8-bit gray or RGB picture atomically in the format of the name's ending: .png, .jpg, .jpeg, .pgm, .ppm,
   .pnm. "-": standard output, PNG if the build has it, else PNM. message: null, or a buffer for the reason of a
   failure. Statuses: HS_ERR_ARGUMENT, HS_ERR_IMAGE, HS_ERR_UNSUPPORTED, HS_ERR_IO, HS_ERR_MEMORY. */
hs_status image_save(const char *path, const hs_image *image, char *message, size_t message_bytes);

/* Encoders of image_save. image: HS_U8, HS_GRAY or HS_RGB, stride set. reason: of a failure; "" for a stream error. */
hs_status image_write_png(FILE *stream, const hs_image *image, char reason[IMAGE_REASON_BYTES]);
hs_status image_write_jpeg(FILE *stream, const hs_image *image, char reason[IMAGE_REASON_BYTES]);
/* colour: P6, gray pixels repeated; else P5. */
hs_status image_write_pnm(FILE *stream, const hs_image *image, bool colour);

#endif
