/*
 * A database of COLMAP's as the output of `batch`: images are added in their order and become permanent many at a time.
 */
#ifndef HARTSIFT_CLI_BATCH_BATCH_DATABASE_H
#define HARTSIFT_CLI_BATCH_BATCH_DATABASE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "pipeline/cli/common/database_output.h"

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

/* Adds an image; *digest: of its features as the database gives them back. */
hs_status batch_database_put(batch_database *database, const char *name, const hs_features *features,
                             const hs_exif *exif, uint64_t *digest, char *message, size_t message_bytes);

/* Whether the last commit is long enough ago for the next one. */
bool batch_database_wants_commit(const batch_database *database);
/* Commits the images added so far. After a failure no more can be added. */
hs_status batch_database_commit(batch_database *database, char *message, size_t message_bytes);

/* Whether the database has an image with features of this digest. */
bool batch_database_verify(batch_database *database, const char *name, uint64_t digest);

#endif
