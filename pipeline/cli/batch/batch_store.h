/*
 * Where `batch` puts features: one file for each image in a folder, or one database for all.
 *
 * A file of features is made under a staging folder beside the outputs and then renamed to its place, so that a killed
 * run leaves nothing half done outside that folder.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_STORE_H
#define HARTSIFT_CLI_BATCH_BATCH_STORE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/cli/batch/batch_list.h"
#include "pipeline/cli/common/database_output.h"
#include "pipeline/formats/colmap/colmap_records.h"

/* ---- the database */

enum { BATCH_DATABASE_PENDING = 256 }; /* most images between two commits */

typedef struct batch_database {
  hs_colmap_database *handle; /* null: not open */
  pthread_mutex_t lock;       /* of the handle */
  hs_features read_back;
  database_camera camera; /* of new images */
  double committed_ms;    /* when */
} batch_database;

/* Opens with the options for databases. CLI_FAILED with a message printed. */
cli_exit batch_database_open(batch_database *database, const option_set *set, const char *path, hs_bin_layout layout);
/* Closes without a commit: images added since the last one are dropped. A zeroed struct is allowed. */
void batch_database_close(batch_database *database);

/* An image's features on their way into the database. */
typedef struct batch_prepared {
  hs_status status;
  char message[CLI_MESSAGE_BYTES]; /* of a failure; "" otherwise */
  uint64_t features, digest;       /* their number, and digest_features of them */
  uint64_t output_digest;          /* of what the database will give back */
  colmap_rows rows;
} batch_prepared;

/* Converts features, in any thread; place: of the database. Null: no memory. */
batch_prepared *batch_prepare(const hs_features *features, hs_bin_layout layout, const char *place);
void batch_prepared_free(batch_prepared *prepared);

/* Adds an image. replaces: the database has features that an earlier run made of another picture; they are replaced,
   also without --replace. */
hs_status batch_database_put(batch_database *database, const char *name, const colmap_rows *rows, const hs_exif *exif,
                             bool replaces, char *message, size_t message_bytes);

/* Whether a failure ended the transaction: images added since the last commit are gone, and no more can be added. */
bool batch_database_is_lost(const batch_database *database);

/* Whether the last commit is long enough ago for the next one. */
bool batch_database_wants_commit(const batch_database *database);
/* Commits the images added so far. After a failure no more can be added. */
hs_status batch_database_commit(batch_database *database, char *message, size_t message_bytes);

/* Whether the database has an image with features of this digest. */
bool batch_database_verify(batch_database *database, const char *name, uint64_t digest);

typedef struct batch_store {
  hs_format format;
  hs_bin_layout layout; /* of the descriptors in memory */
  char *place;          /* folder of the outputs, or the database */
  char *staging;        /* folder for what is being written; null: not made */
  int staging_folder;   /* the same, open */
  bool has_turned;      /* --exif: the program that the outputs are for has turned pictures too */
  batch_database database;
} batch_store;

/* place: of a folder, which is made if absent, or with HS_FORMAT_COLMAP_DB of a database. A message is printed on
   failure (CLI_FAILED); then nothing is left to close. */
cli_exit batch_store_open(batch_store *store, const char *place, hs_format format, hs_bin_layout layout);
/* Opens the database, or makes the staging folder, or empties the one that a killed run left. A link, and a folder that is
   not a batch's, are refused. tag: "" or the shard's name. No other process may be working on the same shard. */
cli_exit batch_store_begin(batch_store *store, const option_set *set, const char *tag);
/* Removes the staging folder, when nothing will be put any more: while the shard is this process's, since whoever gets
   it next has a folder of the same name. Closing does it too. */
void batch_store_end(batch_store *store);
/* Removes the staging folder, closes the database. A zeroed store is allowed. */
void batch_store_close(batch_store *store);

bool batch_store_is_database(const batch_store *store);

/* The name of an image's output, for batch_list_mark_shared; user: the store. */
char *batch_store_output(const char *name, const void *user);

/* Writes the features of image `name` to its file or files; *output_digest: of their bytes. Several threads at once, each
   with a number of its own. message says why not. */
hs_status batch_store_put(const batch_store *store, int32_t writer, const char *name, const hs_features *features,
                          uint64_t *output_digest, char *message, size_t message_bytes);

/* For a database: what batch_store_add needs of an image's features, in any thread. Null: no memory. */
batch_prepared *batch_store_prepare(const batch_store *store, const hs_features *features);
/* Adds the features of image `name`, and what exif says of it, permanent with the next commit; one thread. replaces: as
   batch_database_put has it. */
hs_status batch_store_add(batch_store *store, const char *name, const batch_prepared *prepared, const hs_exif *exif,
                          bool replaces, char *message, size_t message_bytes);

/* Whether an image's output is there and has this digest; by_time: and, if it is a file, is not older than the image. */
bool batch_store_verify(batch_store *store, const batch_image_name *image, uint64_t output_digest, bool by_time);

#endif
