/*
 * The EXIF of a PNG: its eXIf chunk (PNG, third edition, 11.3.3.6), which may follow the pixels.
 */
#ifndef HARTSIFT_IMAGE_IO_PNG_EXIF_H
#define HARTSIFT_IMAGE_IO_PNG_EXIF_H

#include "pipeline/image_io/image_io.h"

/* Reads the tags of the first eXIf chunk. stream: the file, whose position stays; null: the request has the bytes. *found:
   false where there is no such chunk, or none that can be read. Statuses: HS_ERR_MEMORY. */
hs_status png_exif_read(const image_request *request, FILE *stream, bool *found, exif_tags *tags);

#endif
