/*
 * Reading of manifests and journals; see batch_recall.h. The files are not trusted: a row that cannot be read counts
 * as missing, and the others are checked against the outputs before they are used.
 */
#include "pipeline/cli/batch/batch_recall.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/cli/batch/batch_rows.h"

/* Notes an image that was removed from the folder. The rows of a run over a list have paths as names: what is not in a
   list any more was left out on purpose. */
static void note_gone(batch_manifest *manifest, const char *name) {
  char *path = manifest->list->folder ? batch_list_path(manifest->list, name) : NULL;
  const bool was_removed = path && batch_source_is_gone(path) && batch_source_is_gone(name);
  free(path);
  char **gone = was_removed ? realloc(manifest->gone, (manifest->gone_count + 1) * sizeof *gone) : NULL;
  if (!gone) return; /* without memory only a note is lost */
  manifest->gone = gone;
  gone[manifest->gone_count] = strdup(name);
  manifest->gone_count += gone[manifest->gone_count] != NULL;
}

/* Notes what a row says of an image of the list. False when a field is not what such a row has. */
static bool take_row(batch_manifest *manifest, const batch_row *row) {
  batch_record record;
  if (!batch_row_record(row, manifest->read, &record)) return false;
  if (record.state == BATCH_FAILED) return true; /* a failure is tried again */
  const batch_image_name *image = batch_list_find(manifest->list, row->fields[0]);
  if (image)
    manifest->records[image - manifest->list->images] = record;
  else
    note_gone(manifest, row->fields[0]);
  return true;
}

/* ---- files */

size_t batch_recall_text(batch_manifest *manifest, const char *text, size_t size, bool is_journal,
                         bool *settings_differ, const char **settings) {
  const char *place = text, *end = text + size;
  size_t settings_length = 0;
  *settings_differ = false;
  if (!batch_read_head(&place, end, is_journal, settings, &settings_length, &manifest->read)) return 0;
  const int fields = batch_row_fields(manifest->read);
  if (settings_length != strlen(manifest->settings) || memcmp(*settings, manifest->settings, settings_length) != 0) {
    *settings_differ = true;
    return settings_length;
  }
  batch_row row = {.text = malloc(size + BATCH_FIELDS_MOST)};
  const char *whole = place;
  while (row.text && batch_read_row(&place, end, &row) && row.count == fields &&
         (!is_journal || batch_check_row(whole, &row)) && take_row(manifest, &row))
    whole = place;
  free(row.text);
  return (size_t)(whole - text);
}

/* path: for messages, and for its ending. whole_bytes: how much of it could be read. */
static cli_exit recall_file(batch_manifest *manifest, int descriptor, const char *path, uint64_t *whole_bytes) {
  const char *settings = NULL;
  bool differ = false;
  size_t size = 0;
  char *text = batch_read_whole(descriptor, &size);
  if (!text) {
    cli_error(COMMAND_BATCH, "%s: cannot be read: %s", path, strerror(errno));
    return CLI_FAILED;
  }
  const bool is_journal = strcmp(strrchr(path, '.'), ".journal") == 0;
  const size_t whole = batch_recall_text(manifest, text, size, is_journal, &differ, &settings);
  if (differ) {
    char then[CLI_MESSAGE_BYTES], now[CLI_MESSAGE_BYTES];
    batch_list_differences(settings, whole, manifest->settings, strlen(manifest->settings), then);
    batch_list_differences(manifest->settings, strlen(manifest->settings), settings, whole, now);
    cli_error(COMMAND_BATCH,
              "--resume: %s was made with other options:%s; now:%s; expected the same, or no --resume, which does "
              "everything again",
              path, then, now);
  }
  if (size > 0 && whole == 0)
    cli_note("%s: begins otherwise than this version writes it, or is torn: its images are done again", path);
  *whole_bytes = differ ? 0 : whole;
  free(text);
  return differ ? CLI_USAGE : CLI_DONE;
}

/* A file that is not there has nothing to tell. */
static cli_exit recall_path(batch_manifest *manifest, const char *path) {
  uint64_t whole_bytes = 0;
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 && errno == ENOENT) return CLI_DONE;
  if (descriptor < 0) {
    cli_error(COMMAND_BATCH, "%s: cannot be read: %s", path, strerror(errno));
    return CLI_FAILED;
  }
  const cli_exit result = recall_file(manifest, descriptor, path, &whole_bytes);
  close(descriptor);
  return result;
}

bool batch_is_manifest_name(const char *name, const char *base) {
  const size_t length = strlen(base);
  if (strncmp(name, base, length) != 0) return false;
  const char *rest = name + length;
  if (rest[0] == '-') {
    size_t digits = strspn(rest + 1, "0123456789");
    if (digits == 0 || strncmp(rest + 1 + digits, "-of-", 4) != 0) return false;
    rest += 1 + digits + 4;
    digits = strspn(rest, "0123456789");
    rest += digits;
  }
  return strcmp(rest, ".csv") == 0 || strcmp(rest, ".journal") == 0;
}

static int keep_all(const struct dirent *entry) {
  (void)entry;
  return 1;
}

cli_exit batch_recall(batch_manifest *manifest, uint64_t *whole_bytes) {
  const char *slash = strrchr(manifest->prefix, '/');
  const char *base = slash ? slash + 1 : manifest->prefix;
  const size_t folder_length = (size_t)(base - manifest->prefix);
  char *folder = folder_length > 0 ? strndup(manifest->prefix, folder_length) : strdup(".");
  struct dirent **entries = NULL;
  const int count = folder ? scandir(folder, &entries, keep_all, alphasort) : -1;
  cli_exit result = CLI_DONE;
  *whole_bytes = 0;
  for (int i = 0; i < count; i++) {
    const char *name = entries[i]->d_name;
    const size_t room = folder_length + strlen(name) + 1;
    char *path = result == CLI_DONE && batch_is_manifest_name(name, base) ? malloc(room) : NULL;
    if (path) {
      snprintf(path, room, "%.*s%s", (int)folder_length, manifest->prefix, name);
      if (strcmp(path, manifest->csv_path) != 0 && strcmp(path, manifest->journal_path) != 0)
        result = recall_path(manifest, path);
      free(path);
    }
    free(entries[i]);
  }
  free(entries);
  free(folder);
  result = result == CLI_DONE ? recall_path(manifest, manifest->csv_path) : result;
  /* Not opened a second time: closing that would end the lock. */
  return result == CLI_DONE ? recall_file(manifest, manifest->journal, manifest->journal_path, whole_bytes) : result;
}
