/*
 * Converts a caller's source to the input of a frame: pixels in host memory, rows of a JPEG decoded on the device, or
 * rows that arrive one by one.
 *
 *     source_open     copies the source; on the caller's thread
 *     source_read     decodes to a picture: pixels, or a JPEG for the device's decoder; on any thread
 *     picture_sources sets the sources of frames' requests to pictures, and decodes JPEGs
 *     source_rows_open  instead of the last two, where a frame in tiles takes the picture row by row
 */
#ifndef HARTSIFT_SOURCE_SOURCE_H
#define HARTSIFT_SOURCE_SOURCE_H

#include "pipeline/context/engine.h"
#include "pipeline/image_io/image_io.h"
#include "pipeline/image_io/jpeg/synthetic_jpeg.h"

enum { SOURCE_REASON_BYTES = 512 };

/* ---- source.c */

/* A copied source; the memory it points to stays the caller's. */
typedef struct opened_source {
  hs_source source;     /* load and mask point to the fields below */
  hs_load_options load; /* resolved, with the context's limits and allocator */
  hs_image mask;        /* data null: none */
  bool keep_encoded;    /* JPEGs are left to the context's device if it can decode them */
} opened_source;

/* A decoded picture, its mask, and their memory. */
typedef struct source_picture {
  hs_source source; /* HS_SOURCE_PIXELS or HS_SOURCE_JPEG */
  hs_image mask;    /* the caller's, or scaled to the picture; used if is_masked */
  bool is_masked;
} source_picture;

/* True if a frame can use the source without source_read. */
static inline bool source_is_picture(const hs_source *source) {
  return source->kind == HS_SOURCE_PIXELS || source->kind == HS_SOURCE_JPEG;
}

/* Copies a caller's source of a file, encoded bytes or rows; checks the device's JPEG decoder if it is wanted. On
   the caller's thread. Statuses: HS_ERR_ARGUMENT, HS_ERR_OPTION, HS_ERR_IMAGE. */
hs_status source_open(hs_context *context, const hs_source *source, opened_source *opened);

/* Checks the fields of a source that do not depend on its kind. HS_ERR_ARGUMENT. */
hs_status source_check(hs_context *context, const hs_source *source);

/* Reads and decodes, on any thread. On failure *picture is empty and reason says why. Statuses: as hs_load_source. */
hs_status source_read(const opened_source *opened, source_picture *picture, char *reason, size_t reason_bytes);

/* Makes a view of the mask. If loading reduced the image and the mask has the original's size, it is a scaled copy in
   memory of the allocator. The frame reports other errors of the mask. */
hs_status source_fit_mask(const hs_image *image, const hs_image *mask, const hs_allocator *allocator, hs_image *fitted);

/* Makes a view of a source that is a picture, with its mask. */
source_picture picture_view(const hs_source *source);

/* True if a frame with this status must be repeated with decoded pixels (source_read without keep_encoded): the file
   stayed encoded, and only reading it gives the reason of the failure. */
bool picture_wants_pixels(const source_picture *picture, hs_status frame);

/* Converts features to the pixels of the original image. */
void picture_to_original(const source_picture *picture, hs_features *features);

/* Frees a picture; an empty one and a view are allowed. */
void picture_free(source_picture *picture);

/* Checks a picture as a frame would, without decoding it. Statuses: as hs_extract. */
hs_status picture_check(hs_context *context, const hs_source *picture);

/* Sets the sources of requests[count] to pictures[count], 1..JPEG_GROUP_MAX, all pixels or all JPEGs. With
   on_device, JPEGs are decoded on the device where possible and source_on_device is set; then decoder->refused after
   the frame tells whether to repeat the call with on_device false. Otherwise they are decoded into host memory of
   the context, valid until its next call. Statuses: as hs_extract, and HS_ERR_IMAGE for a JPEG that changed since it
   was loaded. */
hs_status picture_sources(hs_context *context, const hs_source *const *pictures, int32_t count, bool on_device,
                          frame_request *requests);

/* A source decoded row by row while a tiled frame processes earlier rows: it is never in memory as a whole. */
typedef struct source_rows {
  image_rows rows;    /* of a file */
  hs_row_reader user; /* of the caller's rows */
  hs_image image;     /* size and type; data is a non-null placeholder */
  row_feed feed;      /* for a frame's request */
  char reason[SOURCE_REASON_BYTES];
} source_rows;

/* Reads the header of a source that supports row access, and gives its upright size. False: the source must be read
   as a whole; nothing stays open. *rows must not be moved until it is closed. */
bool source_rows_open(const opened_source *opened, source_rows *rows);

void source_rows_close(source_rows *rows);

/* ---- jpeg_on_gpu.c: JPEGs decoded by the device before a frame, after a comparison with libjpeg */

/* True if the context's device may decode JPEGs; runs the comparison if that has not been done. */
bool decoder_check_ready(hs_context *context);

/* Compares synthetic pictures first..first+count-1, at most JPEG_GROUP_MAX. False: reason says what differs. */
bool decoder_check_run(hs_context *context, uint32_t first, int32_t count, char *reason, size_t reason_bytes);

/* The synthetic picture of this number: kinds of sampling alternate, then contents. */
synthetic_jpeg decoder_check_picture(uint32_t number);

/* Enqueues the decoding of 1..JPEG_GROUP_MAX JPEGs on the context's stream. False: libjpeg is to decode them. */
bool jpeg_decode_on_gpu(hs_context *context, const hs_source *const *pictures, int32_t count, decoded_rows *rows);

/* Sides of the stored picture: orientations 5 to 8 swap width and height. */
typedef struct stored_sides {
  int32_t width, height;
} stored_sides;

stored_sides jpeg_stored_sides(const hs_source *jpeg);

#endif
