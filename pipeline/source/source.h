/*
 * Converts a caller's source to the input of a frame: pixels in host memory, rows of a JPEG decoded on the device, or
 * rows that are read one by one.
 *
 *     source_open     copies the source; on the caller's thread
 *     source_read     decodes to a picture: pixels, or a JPEG for the device's decoder; on any thread picture_sources
 *     sets the sources of frames' requests to pictures, and decodes JPEGs
 *     source_rows_open  instead of the last two, where a frame in tiles takes the picture row by row
 */
#ifndef HARTSIFT_SOURCE_SOURCE_H
#define HARTSIFT_SOURCE_SOURCE_H

#include "pipeline/context/engine.h"
#include "pipeline/image_io/image_io.h"
#include "pipeline/image_io/jpeg/synthetic_jpeg.h"

enum { SOURCE_REASON_BYTES = 512 };

/* ---- source.c */

/* A copied source. The memory it points to still belongs to the caller. */
typedef struct opened_source {
  hs_source source;     /* load and mask point to the fields below */
  hs_load_options load; /* options with all fields resolved, and with the context's limits and allocator */
  hs_image mask;        /* data null: no mask */
  bool keep_encoded;    /* JPEGs stay encoded for the context's device, if it can decode them */
} opened_source;

/* A decoded picture, its mask, and their memory. */
typedef struct source_picture {
  hs_source source; /* HS_SOURCE_PIXELS or HS_SOURCE_JPEG */
  hs_image mask;    /* the caller's mask, or a copy scaled to the picture; used if is_masked */
  bool is_masked;
} source_picture;

/* True if a frame can use the source without source_read. */
static inline bool source_is_picture(const hs_source *source) {
  return source->kind == HS_SOURCE_PIXELS || source->kind == HS_SOURCE_JPEG;
}

/* Copies a caller's source of a file, encoded bytes or rows. Checks the device's JPEG decoder if it is needed. Call on
   the caller's thread. Statuses: HS_ERR_ARGUMENT, HS_ERR_OPTION, HS_ERR_IMAGE. */
hs_status source_open(hs_context *context, const hs_source *source, opened_source *opened);

/* Checks the fields of a source that do not depend on its kind. HS_ERR_ARGUMENT. */
hs_status source_check(hs_context *context, const hs_source *source);

/* Reads and decodes a source, on any thread. On failure *picture is empty and reason has the reason. Statuses: as
   hs_load_source. */
hs_status source_read(const opened_source *opened, source_picture *picture, char *reason, size_t reason_bytes);

/* Makes a view of the mask for the image. If loading reduced the image and the mask has the original's size, the view
   is a scaled copy in memory of the allocator. The frame reports other errors of the mask. */
hs_status source_fit_mask(const hs_image *image, const hs_image *mask, const hs_allocator *allocator, hs_image *fitted);

/* Makes a view of a source that is a picture, with its mask. */
source_picture picture_view(const hs_source *source);

/* True if a frame with this status must be repeated with decoded pixels (source_read without keep_encoded): the file
   stayed encoded, and only decoding it here gives the reason of the failure. */
bool picture_wants_pixels(const source_picture *picture, hs_status frame);

/* Converts features to the pixels of the original image. */
void picture_to_original(const source_picture *picture, hs_features *features);

/* Frees a picture; an empty picture and a view are allowed. */
void picture_free(source_picture *picture);

/* Checks a picture as a frame would, without decoding it. Statuses: as hs_extract. */
hs_status picture_check(hs_context *context, const hs_source *picture);

/* Sets the sources of requests[count] to pictures[count], 1..JPEG_GROUP_MAX, all pixels or all JPEGs. With on_device,
   JPEGs are decoded on the device if possible, and source_on_device is set; call decoder->refused after the frame, and
   if it names a picture, repeat the call with on_device false. Otherwise JPEGs are decoded into host memory of the
   context, valid until its next call. Statuses: as hs_extract, and HS_ERR_IMAGE for a JPEG that changed since it was
   loaded. */
hs_status picture_sources(hs_context *context, const hs_source *const *pictures, int32_t count, bool on_device,
                          frame_request *requests);

/* A source that is decoded row by row while a tiled frame processes earlier rows. The complete picture is never in
   memory. */
typedef struct source_rows {
  image_rows rows;    /* reader of a file */
  hs_row_reader user; /* reader of the caller's rows */
  hs_image image;     /* size and type; data is a non-null placeholder */
  row_feed feed;      /* feed for a frame's request */
  char reason[SOURCE_REASON_BYTES];
} source_rows;

/* Reads the header of a source that can be read by rows, and gives its upright size. False: the complete source must be
   read, and nothing stays open. *rows must not be moved until it is closed. */
bool source_rows_open(const opened_source *opened, source_rows *rows);

void source_rows_close(source_rows *rows);

/* ---- jpeg_on_gpu.c: JPEGs decoded by the device before a frame, after a comparison with libjpeg */

/* True if the context's device may decode JPEGs. Makes the comparison if it has not been made. */
bool decoder_check_ready(hs_context *context);

/* Compares the synthetic pictures first..first+count-1, at most JPEG_GROUP_MAX. False: reason says what differs. */
bool decoder_check_run(hs_context *context, uint32_t first, int32_t count, char *reason, size_t reason_bytes);

/* Returns the synthetic picture with this number: subsampling alternates fastest, then the content. */
synthetic_jpeg decoder_check_picture(uint32_t number);

/* Enqueues the decoding of 1..JPEG_GROUP_MAX JPEGs on the context's stream. False: libjpeg must decode them. */
bool jpeg_decode_on_gpu(hs_context *context, const hs_source *const *pictures, int32_t count, decoded_rows *rows);

/* Width and height of the stored picture: orientations 5 to 8 swap them. */
typedef struct stored_sides {
  int32_t width, height;
} stored_sides;

stored_sides jpeg_stored_sides(const hs_source *jpeg);

#endif
