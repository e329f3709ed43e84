/*
 * Where `batch` puts features: one file for each image in a folder, or one database for all.
 *
 * A file is made under a staging folder beside the outputs, read back for its digest and then renamed to its place, so
 * that a killed run leaves nothing half done outside that folder.
 */
#ifndef HARTSIFT_PIPELINE_CLI_BATCH_STORE_H
#define HARTSIFT_PIPELINE_CLI_BATCH_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/cli/batch_list.h"

typedef struct batch_store {
  hs_format format;
  hs_bin_layout layout; /* of the descriptors in memory */
  char *folder;         /* of the outputs */
  char *staging;        /* folder for what is being written; null: not made */
} batch_store;

/* Makes the folder of the outputs. A message is printed on failure (CLI_FAILED); then nothing is left to close. */
cli_exit batch_store_open(batch_store *store, const char *folder, hs_format format, hs_bin_layout layout);
/* Makes the staging folder, or empties what a killed run left of it; tag: "" or what tells shards apart. Only while
   nobody else works on the same shard. */
cli_exit batch_store_begin(batch_store *store, const char *tag);
/* Removes the staging folder. A zeroed store is allowed. */
void batch_store_close(batch_store *store);

/* The name of an image's output, for batch_list_mark_shared; user: the store. */
char *batch_store_output(const char *name, const void *user);

/* Writes the features of image `name`; *output_digest: of the bytes of its file or files. Several threads at once, each
   with a number of its own. message says why not. */
hs_status batch_store_put(const batch_store *store, int32_t writer, const char *name, const hs_features *features,
                          uint64_t *output_digest, char *message, size_t message_bytes);

/* Whether the output of an image is there, of this digest, and not older than the image at `path`. */
bool batch_store_verify(const batch_store *store, const batch_image_name *image, uint64_t output_digest);

#endif
