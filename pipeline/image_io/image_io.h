/*
 * Image files inside the library: what the readers of the single formats share (decoding.c). Public
 * entries are hs_load_image, hs_load_image_memory (load.c) and hs_image_free.
 *
 * A reader gets the whole file in memory and trusts none of it: sizes are checked against the limits
 * and against the number of bytes there before anything of their order is allocated.
 */
#ifndef HARTSIFT_IMAGE_IO_IMAGE_IO_H
#define HARTSIFT_IMAGE_IO_IMAGE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "pipeline/include/hartsift.h"
#include "pipeline/base/message.h"

/* The build says which libraries there are. */
#ifndef HARTSIFT_HAVE_PNG
#  error "HARTSIFT_HAVE_PNG must be defined to 0 or 1"
#endif
#ifndef HARTSIFT_HAVE_JPEG
#  error "HARTSIFT_HAVE_JPEG must be defined to 0 or 1"
#endif

enum { IMAGE_REASON_BYTES = 256 };

/* One decoding: the file's bytes and the caller's wishes, defaults filled in. */
typedef struct image_request {
  const char *name; /* for messages: the path, "standard input", "the image in memory" */
  const uint8_t *bytes;
  size_t size;
  uint64_t max_pixels;       /* never 0 */
  uint64_t max_memory_bytes; /* UINT64_MAX: no limit */
  bool apply_exif;
  bool keep_colour;
  uint32_t jpeg_scale; /* 1, 2, 4 or 8; above 1 for JPEG only */
  hs_exif *exif;       /* null, or what the file says; cleared */
  const hs_allocator *allocator;
  char *message;
  size_t message_bytes;
} image_request;

/* Writes "NAME: reason" to the request's message and returns status. */
hs_status image_fail(const image_request *request, hs_status status, const char *format, ...) HS_MESSAGE_FORMAT(3, 4);

/* Refuses sizes outside the limits: HS_ERR_FORMAT for 0, HS_ERR_LIMIT for more than max_pixels or a
   side beyond int32_t. */
hs_status image_check_size(const image_request *request, uint64_t width, uint64_t height);

/* Makes *image of a checked size, rows without gaps, uncleared. working_bytes: what the decoder holds
   besides; it, the picture and the file together must keep to max_memory_bytes. On failure *image is
   untouched. HS_ERR_LIMIT, HS_ERR_MEMORY. */
hs_status image_allocate(const image_request *request, int32_t width, int32_t height, hs_sample_type type,
                         hs_pixel_layout layout, uint64_t working_bytes, hs_image *image);

/* Channels of a layout; bytes of a sample. */
size_t image_channels(hs_pixel_layout layout);
size_t image_sample_bytes(hs_sample_type type);

/* ---- readers: each makes *image, or leaves it untouched and explains itself in the message */

hs_status image_read_png(const image_request *request, hs_image *image);
hs_status image_read_jpeg(const image_request *request, hs_image *image);
hs_status image_read_pnm(const image_request *request, hs_image *image);

/* ---- load.c */

/* Reads a stream to its end, or until its first bytes show that it is no image. *bytes: from request->allocator, to be
   released also on failure. HS_ERR_MEMORY, HS_ERR_LIMIT (max_memory_bytes), HS_ERR_IO. */
hs_status image_read_stream(const image_request *request, FILE *stream, uint8_t **bytes, size_t *size);

/* ---- gray.c */

/* Converts a row of `count` pixels with 1 (gray), 2 (gray, alpha), 3 (RGB) or 4 (RGB, alpha) channels
   to layout HS_GRAY or HS_RGB (HS_RGB only from 3 or 4 channels): alpha is dropped, colour becomes
   gray as hartsift.h defines it. Samples: uint8_t or native uint16_t. source and target are apart. */
void gray_convert_row(const void *source, size_t source_channels, hs_sample_type type, size_t count, void *target,
                      hs_pixel_layout target_layout);

/* ---- exif.c */

/* What an APP1 segment says; NaN where it says nothing, or nothing that can be meant. */
typedef struct exif_tags {
  int orientation; /* 1..8; 1 where there is none */
  double focal_length_mm, focal_length_35mm;
  double plane_resolution, plane_unit; /* FocalPlaneXResolution and its unit's number */
  double pixel_width, pixel_height;    /* of the picture that the camera wrote */
  double latitude, longitude;          /* degrees, WGS 84, north and east above 0 */
  double altitude;                     /* metres above sea level */
} exif_tags;

/* Reads the payload of an APP1 segment, which is not trusted. False: no EXIF; *tags then says nothing. */
bool exif_parse(const uint8_t *app1, size_t size, exif_tags *tags);

/* The focal length in pixels of a picture decoded as width x height, by COLMAP's rule: from the 35 mm equivalent by the
   picture's diagonal, else from FocalLength and the resolution of the focal plane. stored_side: the larger side of the
   file's picture. 0: not known. */
double exif_focal_length(const exif_tags *tags, double stored_side, int32_t width, int32_t height);

/* Where the pixels of a stored picture go in the picture as it is to be seen. */
typedef struct exif_placement {
  int32_t width, height;    /* of the picture to be seen */
  ptrdiff_t start;          /* pixel index there of the stored pixel (0, 0) */
  ptrdiff_t step_x, step_y; /* change of that index for the next stored column and row */
} exif_placement;

/* orientation 1..8; anything else counts as 1. */
exif_placement exif_place(int orientation, int32_t stored_width, int32_t stored_height);

/* Puts stored row `row` of `count` pixels into the picture (rows without gaps). */
void exif_put_row(const exif_placement *placement, int32_t row, const uint8_t *pixels, size_t count, size_t pixel_bytes,
                  uint8_t *picture);

#endif
