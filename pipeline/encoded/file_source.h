/*
 * A picture that a call is given as a file: read and decoded by whichever thread of the library comes to it, with the mask
 * that goes with it.
 */
#ifndef HARTSIFT_ENCODED_FILE_SOURCE_H
#define HARTSIFT_ENCODED_FILE_SOURCE_H

#include "pipeline/context/context.h"

enum { FILE_SOURCE_REASON_BYTES = 512 };

/* What a caller asks for; what it points to stays the caller's. */
typedef struct file_source {
  const char *path; /* null: bytes[size] are the file */
  const void *bytes;
  size_t size;
  hs_load_options load; /* complete, with the context's limits and allocator */
  bool keep_encoded;    /* JPEGs that the context's device may decode are left to it */
} file_source;

/* A picture that was read, its mask, and what both lie in. */
typedef struct file_picture {
  hs_image image;
  hs_image mask; /* as the caller has it, or of the picture's size; data null: none */
} file_picture;

/* Takes over what a caller gives; asks and compares the device's decoder where it is wanted. On the thread of the caller.
   Statuses: HS_ERR_ARGUMENT, HS_ERR_OPTION. */
hs_status file_source_take(hs_context *context, const char *path, const void *bytes, size_t size,
                           const hs_load_options *load, file_source *source);

/* Reads and decodes, on any thread. mask: of the picture's size or of the original's, null: none. On failure *picture is
   empty and reason says why. Statuses: as hs_load_image. */
hs_status file_source_read(const file_source *source, const hs_image *mask, file_picture *picture, char *reason,
                           size_t reason_bytes);

/* Whether a frame that ended so is to be tried again with pixels, file_source_read without keep_encoded: the file stayed
   encoded, and what is wrong with it is said when it is read. */
bool file_source_again(const hs_image *image, hs_status frame);

/* Puts features of the picture into the pixels of the original. */
void file_picture_place(const file_picture *picture, hs_features *features);

/* Frees what reading made; an empty one is allowed. */
void file_picture_free(file_picture *picture);

#endif
