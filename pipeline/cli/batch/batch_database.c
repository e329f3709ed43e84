/*
 * A database as the output of a batch; see batch_database.h.
 */
#include "pipeline/cli/batch/batch_database.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/formats/common/content_digest.h"
#include "pipeline/base/message.h"
#include "pipeline/formats/colmap/colmap_pairs.h"

/* Time between two commits: a commit waits for the disk, but images not committed are lost if the process is killed. */
enum { DATABASE_COMMIT_MS = 1000 };

cli_exit batch_database_open(batch_database *database, const option_set *set, const char *path, hs_bin_layout layout) {
  char message[CLI_MESSAGE_BYTES] = "";
  *database = (batch_database){.committed_ms = cli_milliseconds()};
  if (!database_camera_choose(set, &database->camera, message, sizeof message)) {
    cli_error(COMMAND_BATCH, "%s", message);
    return CLI_USAGE;
  }
  hs_status status = database_open(set, path, layout, &database->handle, message, sizeof message);
  if (status == HS_OK && pthread_mutex_init(&database->lock, NULL) != 0) {
    hs_colmap_close(database->handle);
    database->handle = NULL;
    status = HS_ERR_MEMORY;
    snprintf(message, sizeof message, "%s", hs_status_string(status));
  }
  if (status != HS_OK) {
    cli_error(COMMAND_BATCH, "%s", message);
    return CLI_FAILED;
  }
  return CLI_DONE;
}

void batch_database_close(batch_database *database) {
  if (database->handle) {
    hs_colmap_close(database->handle);
    pthread_mutex_destroy(&database->lock);
  }
  hs_features_free(&database->read_back);
  memset(database, 0, sizeof *database);
}

/* Digest of an image's features; under the lock. */
static hs_status read_digest(batch_database *database, uint32_t image_id, uint64_t *digest) {
  const hs_status status = hs_colmap_read_features(database->handle, image_id, &database->read_back);
  *digest = status == HS_OK ? digest_features(&database->read_back) : 0;
  return status;
}

batch_prepared *batch_prepare(const hs_features *features, hs_bin_layout layout, const char *place) {
  batch_prepared *prepared = calloc(1, sizeof *prepared);
  if (!prepared) return NULL;
  const feature_target target = {.path = place,
                                 .features = features,
                                 .layout = layout,
                                 .message = prepared->message,
                                 .message_bytes = sizeof prepared->message};
  prepared->features = features->count;
  prepared->digest = digest_features(features);
  prepared->status = colmap_rows_make(&target, &prepared->rows);
  if (prepared->status == HS_OK) prepared->status = colmap_rows_digest(&prepared->rows, &prepared->output_digest);
  return prepared;
}

void batch_prepared_free(batch_prepared *prepared) {
  if (prepared) colmap_rows_free(&prepared->rows);
  free(prepared);
}

hs_status batch_database_put(batch_database *database, const char *name, const colmap_rows *rows, const hs_exif *exif,
                             bool replaces, char *message, size_t message_bytes) {
  pthread_mutex_lock(&database->lock);
  const hs_status status = replaces ? database_replace_rows(database->handle, &database->camera, name, rows, exif)
                                    : database_add_rows(database->handle, &database->camera, name, rows, exif);
  if (status != HS_OK) {
    const char *reason = hs_colmap_last_error(database->handle);
    hs_message_set(message, message_bytes, "%s", reason[0] != '\0' ? reason : hs_status_string(status));
  }
  pthread_mutex_unlock(&database->lock);
  return status;
}

bool batch_database_is_lost(const batch_database *database) { return colmap_is_lost(database->handle); }

bool batch_database_wants_commit(const batch_database *database) {
  return cli_milliseconds() - database->committed_ms >= DATABASE_COMMIT_MS;
}

hs_status batch_database_commit(batch_database *database, char *message, size_t message_bytes) {
  pthread_mutex_lock(&database->lock);
  const hs_status status = hs_colmap_commit(database->handle);
  if (status != HS_OK) hs_message_set(message, message_bytes, "%s", hs_colmap_last_error(database->handle));
  database->committed_ms = cli_milliseconds();
  pthread_mutex_unlock(&database->lock);
  return status;
}

bool batch_database_verify(batch_database *database, const char *name, uint64_t digest) {
  hs_colmap_image image;
  uint64_t found = 0;
  pthread_mutex_lock(&database->lock);
  const bool verified = hs_colmap_find_image(database->handle, name, &image) == HS_OK && image.found != 0 &&
                        read_digest(database, image.image_id, &found) == HS_OK && found == digest;
  pthread_mutex_unlock(&database->lock);
  return verified;
}
