/*
 * Outputs of `batch`: one file per image in a folder, or one database for all images.
 *
 * A file is written in a staging folder next to the outputs and then renamed to its target, so that a killed run leaves
 * no incomplete files outside that folder.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_STORE_H
#define HARTSIFT_CLI_BATCH_BATCH_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/os_files.h"
#include "os/os_threads.h"
#include "pipeline/cli/batch/batch_list.h"
#include "pipeline/cli/common/database_output.h"
#include "pipeline/formats/colmap/colmap_records.h"

/* ---- the database */

enum { BATCH_DATABASE_PENDING = 256 }; /* maximum number of images between commits */

typedef struct batch_database {
  hs_colmap_database *handle; /* open database; null: none */
  pthread_mutex_t lock;       /* protects the handle */
  hs_features read_back;
  database_camera camera; /* camera for new images */
  double committed_ms;    /* time of the last commit, milliseconds */
} batch_database;

/* Opens the database with the options for databases. CLI_FAILED after printing a message. */
cli_exit batch_database_open(batch_database *database, const option_set *set, const char *path, hs_bin_layout layout);
/* Closes the database without a commit: images added since the last commit are dropped. A zeroed struct is allowed. */
void batch_database_close(batch_database *database);

/* Features of an image, converted for the database. */
typedef struct batch_prepared {
  hs_status status;
  char message[CLI_MESSAGE_BYTES]; /* message of a failure; "" otherwise */
  uint64_t features, digest;       /* number of features, and their digest (digest_features) */
  uint64_t output_digest;          /* digest of the features as the database will return them */
  colmap_rows rows;
} batch_prepared;

/* Converts features, on any thread. location: path of the database, for messages. Null: out of memory. */
batch_prepared *batch_prepare(const hs_features *features, hs_bin_layout layout, const char *location);
void batch_prepared_free(batch_prepared *prepared);

/* Adds an image; may take the arrays of *rows, as colmap_add_rows. replaces: the database has features of another
   picture from an earlier run, which are replaced even without --replace. */
hs_status batch_database_put(batch_database *database, const char *name, colmap_rows *rows, const hs_exif *exif,
                             bool replaces, char *message, size_t message_bytes);

/* True if a failure has ended the transaction: images since the last commit are lost, and no more can be added. */
bool batch_database_is_lost(const batch_database *database);

/* True if it is time for a commit. */
bool batch_database_wants_commit(const batch_database *database);
/* Commits the images added so far. After a failure no more images can be added. */
hs_status batch_database_commit(batch_database *database, char *message, size_t message_bytes);

/* True if the database has the image with features of this digest. */
bool batch_database_verify(batch_database *database, const char *name, uint64_t digest);

typedef struct batch_store {
  hs_format format;
  hs_bin_layout layout;      /* bin order of the descriptors in memory */
  char *location;            /* path of the folder of outputs, or of the database */
  char *staging;             /* path of the folder for files that are being written; null: not created */
  os_folder *staging_folder; /* that folder, open */
  bool has_turned;           /* --exif: the program that reads the outputs gets rotated pictures too */
  batch_database database;
} batch_store;

/* Prepares a store. location: path of a folder, which is created if missing, or with HS_FORMAT_COLMAP_DB of a database.
   On failure (CLI_FAILED) a message is printed and nothing stays open. */
cli_exit batch_store_open(batch_store *store, const char *location, hs_format format, hs_bin_layout layout);
/* Opens the database, or creates the staging folder; empties a folder that a killed run left. Refuses a link, and a
   folder that is not a batch's. tag: "" or the shard's name. No other process may work on the same shard. */
cli_exit batch_store_begin(batch_store *store, const option_set *set, const char *tag);
/* Removes the staging folder. Call after the last write, while this process holds the shard, because the next process
   of the shard uses the same name. batch_store_close does it too. */
void batch_store_end(batch_store *store);
/* Removes the staging folder and closes the database. A zeroed store is allowed. */
void batch_store_close(batch_store *store);

bool batch_store_is_database(const batch_store *store);

/* Returns the name of an image's output, for batch_list_mark_shared. user: the store. */
char *batch_store_output(const char *name, const void *user);

/* Writes the features of image `name` to its file or files; *output_digest: digest of their bytes. Thread-safe if each
   thread has its own writer number. message: reason of a failure. */
hs_status batch_store_put(const batch_store *store, int32_t writer, const char *name, const hs_features *features,
                          uint64_t *output_digest, char *message, size_t message_bytes);

/* Converts an image's features for batch_store_add, on any thread. Only for a database. Null: out of memory. */
batch_prepared *batch_store_prepare(const batch_store *store, const hs_features *features);
/* Adds the features of image `name` and its EXIF data to the database; permanent after the next commit. Only on one
   thread. replaces: as in batch_database_put. */
hs_status batch_store_add(batch_store *store, const char *name, batch_prepared *prepared, const hs_exif *exif,
                          bool replaces, char *message, size_t message_bytes);

/* True if an image's output exists with this digest. by_time: if the output is a file, it must also not be older than
   the image. */
bool batch_store_verify(batch_store *store, const batch_image_name *image, uint64_t output_digest, bool by_time);

#endif
