/*
 * Writes the outputs of a batch; see batch_store.h.
 */
#include "pipeline/cli/batch/batch_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/atomic_file.h"
#include "pipeline/base/text.h"
#include "pipeline/cli/common/cli_output.h"
#include "pipeline/formats/colmap/colmap_pairs.h"
#include "pipeline/formats/common/content_digest.h"
#include "pipeline/formats/formats.h"

/* ---- the database */

/* Interval of commits. A commit waits for the disk, but images that are not committed are lost if the process is
   killed. */
enum { DATABASE_COMMIT_MS = 1000 };

cli_exit batch_database_open(batch_database *database, const option_set *set, const char *path, hs_bin_layout layout) {
  char message[CLI_MESSAGE_BYTES] = "";
  *database = (batch_database){.committed_ms = cli_milliseconds()};
  if (!database_camera_choose(set, &database->camera, message, sizeof message))
    return cli_fail(CLI_USAGE, COMMAND_BATCH, "%s", message);
  hs_status status = database_open(set, path, layout, &database->handle, message, sizeof message);
  if (status == HS_OK && pthread_mutex_init(&database->lock, NULL) != 0) {
    hs_colmap_close(database->handle);
    database->handle = NULL;
    status = HS_ERR_MEMORY;
    snprintf(message, sizeof message, "%s", hs_status_string(status));
  }
  if (status != HS_OK) return cli_fail(CLI_FAILED, COMMAND_BATCH, "%s", message);
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

/* Computes the digest of an image's features. The caller holds the lock. */
static hs_status read_digest(batch_database *database, uint32_t image_id, uint64_t *digest) {
  const hs_status status = hs_colmap_read_features(database->handle, image_id, &database->read_back);
  *digest = status == HS_OK ? digest_features(&database->read_back) : 0;
  return status;
}

batch_prepared *batch_prepare(const hs_features *features, hs_bin_layout layout, const char *location) {
  batch_prepared *prepared = calloc(1, sizeof *prepared);
  if (!prepared) return NULL;
  const feature_target target = {.path = location,
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

hs_status batch_database_put(batch_database *database, const char *name, colmap_rows *rows, const hs_exif *exif,
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

#define STORE_STAGING_NAME ".hartsift-batch"

/* Joins the two parts of the path of a temporary file. */
static char *store_path(const char *folder, const char *name) {
  const size_t capacity = strlen(folder) + strlen(name) + 2;
  char *path = malloc(capacity);
  if (path) snprintf(path, capacity, "%s/%s", folder, name);
  return path;
}

/* Returns the name of a format's second file, which has another ending. Null: out of memory. */
static char *store_second(const char *path, const feature_format *format) {
  const size_t length = strlen(path) - strlen(format->endings[0]);
  const size_t capacity = length + strlen(format->second_ending) + 1;
  char *second = malloc(capacity);
  if (second) snprintf(second, capacity, "%.*s%s", (int)length, path, format->second_ending);
  return second;
}

/* ---- folders */

/* True if a batch may have written a file with this name to the staging folder: "WRITER.ENDING" of any format, or a
   temporary name. */
static bool is_own_name(const char *name) {
  if (atomic_file_is_temporary(name)) return true;
  const char *ending = name + strspn(name, "0123456789");
  if (ending == name) return false;
  for (size_t i = 0; format_at(i) != NULL; i++) {
    const feature_format *format = format_at(i);
    if (strcmp(ending, format->endings[0]) == 0) return true;
    if (format->second_ending && strcmp(ending, format->second_ending) == 0) return true;
  }
  return false;
}

/* Calls `see` with the name of each entry until it returns false; that name is copied to `stopped`. False with errno if
   the folder cannot be read. */
static bool for_each_entry(os_folder *folder, bool (*see)(const os_folder *folder, const char *name),
                           char stopped[OS_NAME_BYTES]) {
  stopped[0] = '\0';
  os_folder_rewind(folder);
  for (const char *name = os_folder_next(folder); name && stopped[0] == '\0'; name = os_folder_next(folder))
    if (!see(folder, name)) snprintf(stopped, OS_NAME_BYTES, "%s", name);
  return stopped[0] != '\0' || errno == 0;
}

static bool see_own(const os_folder *folder, const char *name) {
  (void)folder;
  return is_own_name(name);
}

static bool remove_own(const os_folder *folder, const char *name) {
  if (is_own_name(name)) (void)os_folder_remove(folder, name);
  return true;
}

/* Opens the staging folder, creating it if missing. It must be a folder of this user, not a link, and contain only
   files of a batch, because it will be emptied, and other users may write to the outputs' folder. Returns null after
   printing the reason. */
static os_folder *store_open_staging(const char *path) {
  os_info info;
  char foreign[OS_NAME_BYTES];
  const bool is_new = os_make_folder(path);
  if (!is_new && errno != EEXIST) {
    cli_error(COMMAND_BATCH, "%s: cannot be made: %s", path, strerror(errno));
    return NULL;
  }
  os_folder *folder = os_folder_open(path, false);
  if (!folder) {
    const bool is_other = errno == ELOOP || errno == ENOTDIR;
    cli_error(COMMAND_BATCH, "%s: %s", path,
              is_other ? "is a link or a file: remove it, because a batch makes a folder of this name"
                       : strerror(errno));
    return NULL;
  }
  if (!os_folder_info(folder, &info) || (!is_new && !os_is_own(&info))) {
    cli_error(COMMAND_BATCH, "%s: belongs to another user: remove it, or name another folder by -o", path);
  } else if (!for_each_entry(folder, see_own, foreign)) {
    cli_error(COMMAND_BATCH, "%s: cannot be read: %s", path, strerror(errno));
  } else if (foreign[0] != '\0') {
    cli_error(COMMAND_BATCH,
              "%s: contains %s, which no batch has made: move it away, because this folder will be emptied", path,
              foreign);
  } else {
    return folder;
  }
  os_folder_close(folder);
  return NULL;
}

/* Deletes the files in the staging folder. */
static void store_empty(const batch_store *store) {
  char none[OS_NAME_BYTES];
  (void)for_each_entry(store->staging_folder, remove_own, none);
}

bool batch_store_is_database(const batch_store *store) { return store->format == HS_FORMAT_COLMAP_DB; }

cli_exit batch_store_open(batch_store *store, const char *location, hs_format format, hs_bin_layout layout) {
  *store = (batch_store){.format = format, .layout = layout, .location = strdup(location)};
  if (!store->location) return cli_fail(CLI_FAILED, COMMAND_BATCH, "out of memory for the names of the outputs");
  if (batch_store_is_database(store)) return CLI_DONE;
  if (!output_make_directories(location)) {
    cli_error(COMMAND_BATCH, "cannot make the directory %s: %s", location, strerror(errno));
    batch_store_close(store);
    return CLI_FAILED;
  }
  for (size_t length = strlen(store->location); length > 1 && store->location[length - 1] == '/'; length--)
    store->location[length - 1] = '\0';
  return CLI_DONE;
}

cli_exit batch_store_begin(batch_store *store, const option_set *set, const char *tag) {
  char name[128];
  store->has_turned = set->values[OPTION_EXIF].is_set;
  if (batch_store_is_database(store)) return batch_database_open(&store->database, set, store->location, store->layout);
  snprintf(name, sizeof name, "%s%s", STORE_STAGING_NAME, tag);
  store->staging = store_path(store->location, name);
  store->staging_folder = store->staging ? store_open_staging(store->staging) : NULL;
  if (!store->staging) cli_error(COMMAND_BATCH, "out of memory for the names of the outputs");
  if (!store->staging_folder) {
    free(store->staging);
    store->staging = NULL;
    return CLI_FAILED;
  }
  store_empty(store);
  return CLI_DONE;
}

void batch_store_end(batch_store *store) {
  if (!store->staging) return;
  store_empty(store);
  os_folder_close(store->staging_folder);
  os_remove_folder(store->staging);
  free(store->staging);
  store->staging = NULL;
}

void batch_store_close(batch_store *store) {
  batch_store_end(store);
  batch_database_close(&store->database);
  free(store->location);
  memset(store, 0, sizeof *store);
}

/* ---- writing */

char *batch_store_output(const char *name, const void *user) {
  const batch_store *store = user;
  return batch_output_name(name, store->format);
}

/* Moves a staged file to its target. Creates the target's folder if it does not exist. */
static bool store_move(const char *from, char *to) {
  if (os_rename(from, to)) return true;
  if (errno != ENOENT) return false;
  char *slash = strrchr(to, '/');
  *slash = '\0';
  const bool made = output_make_directories(to);
  *slash = '/';
  return made && os_rename(from, to);
}

/* Computes the digest of an output: of its file, then of its second file if the format has one. */
static hs_status store_digest(const feature_format *format, const char *path, uint64_t *digest) {
  digest_state state;
  digest_start(&state);
  hs_status status = digest_add_file(&state, path);
  if (status == HS_OK && format->second_ending) {
    char *second = store_second(path, format);
    status = second ? digest_add_file(&state, second) : HS_ERR_MEMORY;
    free(second);
  }
  *digest = digest_end(&state);
  return status;
}

/* Moves the files of an output, the second file first, because readers look for the other one. */
static bool store_move_all(const feature_format *format, const char *from, char *to) {
  bool done = true;
  if (format->second_ending) {
    char *from_second = store_second(from, format);
    char *to_second = store_second(to, format);
    done = from_second != NULL && to_second && store_move(from_second, to_second);
    free(from_second);
    free(to_second);
  }
  return done && store_move(from, to);
}

/* Replaces the staged file's name in a message by the target's name, which is the one that the user knows. */
static void store_rename_in_message(char *message, size_t bytes, const char *staged, const char *target) {
  const size_t stem = strlen(staged) - strlen(strrchr(staged, '.'));
  char text[CLI_MESSAGE_BYTES];
  for (const char *found = message; (found = strchr(found, staged[0])) != NULL; found++) {
    if (strncmp(found, staged, stem) == 0) {
      const char *rest = found + stem + strcspn(found + stem, ": ");
      snprintf(text, sizeof text, "%.*s%s%s", (int)(found - message), message, target, rest);
      hs_message_set(message, bytes, "%s", text);
      return;
    }
  }
}

static hs_status store_write(const batch_store *store, const char *staged, char *target, const char *image,
                             const hs_features *features, uint64_t *digest, char *message, size_t message_bytes) {
  const hs_file_options options = {.struct_size = sizeof options,
                                   .format = store->format,
                                   .layout = store->layout,
                                   .image_name = image,
                                   .message = message,
                                   .message_bytes = message_bytes};
  digest_state written;
  digest_start(&written);
  const hs_status status = features_save(staged, features, &options, true, &written);
  *digest = digest_end(&written);
  if (status != HS_OK) {
    store_rename_in_message(message, message_bytes, staged, target);
    return status;
  }
  if (store_move_all(format_by_id(store->format), staged, target)) return HS_OK;
  hs_message_set_errno(message, message_bytes, errno, "cannot write %s", target);
  return HS_ERR_IO;
}

static hs_status store_put_file(const batch_store *store, int32_t writer, const char *name, char *output,
                                const hs_features *features, uint64_t *digest, char *message, size_t message_bytes) {
  char file[64];
  snprintf(file, sizeof file, "%ld%s", (long)writer, format_by_id(store->format)->endings[0]);
  char *staged = store_path(store->staging, file);
  char *target = store_path(store->location, output);
  hs_status status = HS_ERR_MEMORY;
  if (staged && target) status = store_write(store, staged, target, name, features, digest, message, message_bytes);
  free(staged);
  free(target);
  return status;
}

/* Returns the features as they are written to outputs. */
static hs_features store_view(const batch_store *store, const hs_features *features) {
  hs_features view = *features;
  if (store->has_turned) view.origin.exif_orientation = 0;
  return view;
}

hs_status batch_store_put(const batch_store *store, int32_t writer, const char *name, const hs_features *features,
                          uint64_t *output_digest, char *message, size_t message_bytes) {
  char *output = batch_store_output(name, store);
  const hs_features view = store_view(store, features);
  message[0] = '\0';
  const hs_status status =
      output ? store_put_file(store, writer, name, output, &view, output_digest, message, message_bytes)
             : HS_ERR_MEMORY;
  if (status != HS_OK && message[0] == '\0') hs_message_set(message, message_bytes, "%s", hs_status_string(status));
  free(output);
  return status;
}

batch_prepared *batch_store_prepare(const batch_store *store, const hs_features *features) {
  const hs_features view = store_view(store, features);
  return batch_prepare(&view, store->layout, store->location);
}

hs_status batch_store_add(batch_store *store, const char *name, batch_prepared *prepared, const hs_exif *exif,
                          bool replaces, char *message, size_t message_bytes) {
  char *output = batch_store_output(name, store);
  hs_status status = !output || !prepared ? HS_ERR_MEMORY : prepared->status;
  hs_message_set(message, message_bytes, "%s", prepared ? prepared->message : "");
  if (status == HS_OK)
    status = batch_database_put(&store->database, output, &prepared->rows, exif, replaces, message, message_bytes);
  if (status != HS_OK && message[0] == '\0') hs_message_set(message, message_bytes, "%s", hs_status_string(status));
  free(output);
  return status;
}

/* ---- verifying */

static bool is_newer(const os_info *one, const os_info *other) { return one->time_ns > other->time_ns; }

/* Verifies a file's digest. image: null, or a file that must not be newer than the output. */
static bool store_verify_file(const batch_store *store, const char *target, const char *image, uint64_t expected) {
  os_info image_info, output_info;
  uint64_t digest = 0;
  if (!os_info_of(target, &output_info) || output_info.kind != OS_REGULAR) return false;
  /* an image that is missing or generated cannot be newer */
  if (image && os_info_of(image, &image_info) && is_newer(&image_info, &output_info)) return false;
  return store_digest(format_by_id(store->format), target, &digest) == HS_OK && digest == expected;
}

bool batch_store_verify(batch_store *store, const batch_image_name *image, uint64_t output_digest, bool by_time) {
  char *output = batch_store_output(image->name, store);
  bool verified = false;
  if (output && batch_store_is_database(store)) {
    verified = batch_database_verify(&store->database, output, output_digest);
  } else if (output) {
    char *target = store_path(store->location, output);
    verified = target != NULL && store_verify_file(store, target, by_time ? image->path : NULL, output_digest);
    free(target);
  }
  free(output);
  return verified;
}
