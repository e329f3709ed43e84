/*
 * A database of COLMAP's as the output of `batch`: images are added in their order and become permanent many at a time.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_DATABASE_H
#define HARTSIFT_CLI_BATCH_BATCH_DATABASE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "pipeline/cli/common/database_output.h"
#include "pipeline/formats/colmap/colmap_records.h"

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

#endif
