/*
 * From a caller's source to what a frame takes: pixels in host memory, rows of a JPEG that the device has decoded, or rows
 * that come one after another.
 *
 *     source_open     adopts the source; on the caller's thread
 *     source_read     reads and decodes it to a picture: pixels, or a JPEG that is left to the device; on any thread
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

/* A source as a call has adopted it; what it points to stays the caller's. */
typedef struct opened_source {
  hs_source source;     /* load and mask are those below */
  hs_load_options load; /* complete, with the context's limits and allocator */
  hs_image mask;        /* data null: none */
  bool keep_encoded;    /* JPEGs that the context's device may decode are left to it */
} opened_source;

/* A picture that was read, its mask, and their memory. */
typedef struct source_picture {
  hs_source source; /* HS_SOURCE_PIXELS or HS_SOURCE_JPEG */
  hs_image mask;    /* as the caller has it, or of the picture's size; used where is_masked */
  bool is_masked;
} source_picture;

/* Whether frames take the source as it is, without source_read. */
static inline bool source_is_picture(const hs_source *source) {
  return source->kind == HS_SOURCE_PIXELS || source->kind == HS_SOURCE_JPEG;
}

/* Adopts a caller's source of a file, of encoded bytes or of rows; asks and compares the device's decoder where it is
   wanted. On the thread of the caller. Statuses: HS_ERR_ARGUMENT, HS_ERR_OPTION, HS_ERR_IMAGE. */
hs_status source_open(hs_context *context, const hs_source *source, opened_source *opened);

/* What is wrong with the struct itself, whatever its kind. HS_ERR_ARGUMENT. */
hs_status source_check(hs_context *context, const hs_source *source);

/* Reads and decodes, on any thread. On failure *picture is empty and reason says why. Statuses: as hs_load_source. */
hs_status source_read(const opened_source *opened, source_picture *picture, char *reason, size_t reason_bytes);

/* A view of a source that is a picture, with its mask. */
source_picture picture_view(const hs_source *source);

/* Whether a frame that ended so is to be tried again with pixels, source_read without keep_encoded: the file stayed
   encoded, and what is wrong with it is said when it is read. */
bool picture_wants_pixels(const source_picture *picture, hs_status frame);

/* Puts features of the picture into the pixels of the original. */
void picture_to_original(const source_picture *picture, hs_features *features);

/* Frees what reading made; an empty one and a view are allowed. */
void picture_free(source_picture *picture);

/* Checks a picture as a frame would, without decoding it. Statuses: as hs_extract. */
hs_status picture_check(hs_context *context, const hs_source *picture);

/* Sets the sources of requests[count] to pictures[count], 1..JPEG_GROUP_MAX: all of pixels or all JPEGs. JPEGs are
   decoded on the device where on_device is true and it takes them, and source_on_device is set: then what
   decoder->refused says after the frame decides whether they are asked for again, with on_device false. Else they are
   decoded into host memory of the context. They are valid until its next call. Statuses: as hs_extract, and HS_ERR_IMAGE
   for a JPEG that is not as it was loaded. */
hs_status picture_sources(hs_context *context, const hs_source *const *pictures, int32_t count, bool on_device,
                          frame_request *requests);

/* A source whose rows are decoded while a frame in tiles processes those before: it is never in memory whole. */
typedef struct source_rows {
  image_rows rows;    /* of a file */
  hs_row_reader user; /* of the caller's rows */
  hs_image image;     /* its size and type; data is not null, and is not pixels */
  row_feed feed;      /* for a frame's request */
  char reason[SOURCE_REASON_BYTES];
} source_rows;

/* Reads the header of a source that can be taken row by row, as it is to be seen. False: it is to be read as a whole, for
   whatever reason, and nothing is left. *rows must stay where it is until it is closed. */
bool source_rows_open(const opened_source *opened, source_rows *rows);

void source_rows_close(source_rows *rows);

/* ---- jpeg_on_gpu.c: JPEGs decoded by the device in front of a frame, and the comparison with libjpeg that decides whether
   it may */

/* Whether the context's device may decode; asked and compared where that has not been done. */
bool decoder_check_ready(hs_context *context);

/* Compares synthetic pictures first..first+count-1, at most JPEG_GROUP_MAX of them. False: reason says what differs. */
bool decoder_check_run(hs_context *context, uint32_t first, int32_t count, char *reason, size_t reason_bytes);

/* The synthetic picture of this number: kinds of sampling alternate, then contents. */
synthetic_jpeg decoder_check_picture(uint32_t number);

/* Enqueues the decoding of 1..JPEG_GROUP_MAX JPEGs on the context's stream. False: libjpeg is to decode them. */
bool jpeg_decode_on_gpu(hs_context *context, const hs_source *const *pictures, int32_t count, decoded_rows *rows);

/* The sides of the picture that a JPEG stores: orientations 5 to 8 exchange those to be seen. */
typedef struct stored_sides {
  int32_t width, height;
} stored_sides;

stored_sides jpeg_stored_sides(const hs_source *jpeg);

#endif
