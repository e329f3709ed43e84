/*
 * Text of manifests and journals; see batch_rows.h.
 */
#include "pipeline/cli/batch/batch_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_files.h"
#include "pipeline/formats/common/content_digest.h"

enum { ROWS_FIRST_BYTES = 1 << 16, STATUSES_MAX = 128 };

/* ---- rows */

/* Reads one field at *cursor. False if the text ends within it. */
static bool read_field(const char **cursor, const char *end, char **out) {
  const char *at = *cursor;
  char *to = *out;
  bool quoted = false;
  for (;; at++) {
    if (at == end) return false;
    if (*at == '"')
      if (quoted && at + 1 < end && at[1] == '"')
        *to++ = *at++; /* two quotes stand for one */
      else
        quoted = !quoted;
    else if (!quoted && (*at == ',' || *at == '\n'))
      break;
    else
      *to++ = *at;
  }
  *to++ = '\0';
  *out = to;
  *cursor = at;
  return true;
}

bool batch_read_row(const char **cursor, const char *end, batch_row *row) {
  const char *at = *cursor;
  char *out = row->text;
  row->count = 0;
  for (;;) {
    if (row->count == BATCH_FIELDS_MAX) return false;
    row->fields[row->count++] = out;
    row->check_at = at > *cursor ? (size_t)(at - *cursor) - 1 : 0;
    if (!read_field(&at, end, &out)) return false;
    const bool is_last = *at == '\n';
    at++;
    if (is_last) {
      *cursor = at;
      return true;
    }
  }
}

static bool parse_number(const char *text, int base, uint64_t most, uint64_t *value) {
  const char *digits = base == 16 ? "0123456789abcdef" : "0123456789";
  if (text[0] == '\0' || text[strspn(text, digits)] != '\0') return false;
  errno = 0;
  *value = strtoull(text, NULL, base);
  return errno == 0 && *value <= most;
}

bool batch_check_row(const char *text, const batch_row *row) {
  uint64_t check = 0;
  return parse_number(row->fields[row->count - 1], 16, UINT32_MAX, &check) && check == crc_zip(0, text, row->check_at);
}

/* Returns the status with that name. */
static hs_status find_status(const char *name) {
  for (int status = 1; status < STATUSES_MAX; status++)
    if (strcmp(hs_status_name((hs_status)status), name) == 0) return (hs_status)status;
  return HS_ERR_INTERNAL; /* the name is a status of a later version */
}

bool batch_settings_have_masks(const char *settings, size_t length) {
  static const char name[] = " masks=";
  const char *last = settings + length - (sizeof name - 1);
  for (const char *at = settings; length >= sizeof name - 1 && at <= last; at++)
    if (memcmp(at, name, sizeof name - 1) == 0) return true;
  return false;
}

int batch_row_fields(batch_columns columns) {
  return 8 + (columns.masks ? 1 : 0) + (columns.sources ? 3 : 0) + (columns.journal ? 2 : 0);
}

void batch_columns_text(batch_columns columns, char text[BATCH_COLUMNS_BYTES]) {
  snprintf(text, BATCH_COLUMNS_BYTES, "%s%s%s%s", BATCH_RECALL_COLUMNS, columns.masks ? BATCH_RECALL_MASK_COLUMN : "",
           columns.sources ? BATCH_RECALL_SOURCE_COLUMNS : "", columns.journal ? BATCH_RECALL_JOURNAL_COLUMNS : "");
}

/* Reads three fields. All are empty if nothing was recorded; only the last one is empty if the file changed while it
   was read. */
static bool read_source(const char *const *fields, batch_source *source) {
  *source = (batch_source){.is_recorded = fields[0][0] != '\0'};
  if (!source->is_recorded) return fields[1][0] == '\0' && fields[2][0] == '\0';
  return parse_number(fields[0], 10, UINT64_MAX, &source->bytes) &&
         parse_number(fields[1], 10, UINT64_MAX, &source->time_ns) &&
         (fields[2][0] == '\0' || parse_number(fields[2], 16, UINT64_MAX, &source->digest));
}

bool batch_row_record(const batch_row *row, batch_columns columns, batch_record *record) {
  uint64_t width = 0, height = 0;
  const bool done = strcmp(row->fields[6], hs_status_name(HS_OK)) == 0;
  *record = (batch_record){.state = done ? BATCH_CLAIMED : BATCH_FAILED};
  if (columns.masks && row->fields[BATCH_MASK_FIELD][0] != '\0' &&
      !parse_number(row->fields[BATCH_MASK_FIELD], 16, UINT64_MAX, &record->mask_digest))
    return false;
  if (columns.sources && !read_source(row->fields + BATCH_MASK_FIELD + columns.masks, &record->source)) return false;
  if ((done || row->fields[1][0] != '\0') &&
      (!parse_number(row->fields[1], 10, INT32_MAX, &width) || !parse_number(row->fields[2], 10, INT32_MAX, &height)))
    return false;
  record->width = (int32_t)width;
  record->height = (int32_t)height;
  if (!done) {
    record->status = find_status(row->fields[6]);
    return strncmp(row->fields[6], "HS_ERR_", 7) == 0;
  }
  return parse_number(row->fields[3], 10, UINT64_MAX, &record->features) &&
         parse_number(row->fields[4], 16, UINT64_MAX, &record->digest) &&
         parse_number(row->fields[5], 16, UINT64_MAX, &record->output_digest);
}

/* ---- head */

/* Reads a line that must begin with `start`; *rest: the remaining part. */
static bool read_line(const char **cursor, const char *end, const char *start, const char **rest, size_t *rest_length) {
  const size_t length = strlen(start);
  const char *line_end = memchr(*cursor, '\n', (size_t)(end - *cursor));
  if (!line_end || (size_t)(line_end - *cursor) < length || memcmp(*cursor, start, length) != 0) return false;
  *rest = *cursor + length;
  *rest_length = (size_t)(line_end - *rest);
  *cursor = line_end + 1;
  return true;
}

bool batch_read_head(const char **cursor, const char *end, bool is_journal, const char **settings, size_t *length,
                     batch_columns *columns) {
  char text[BATCH_COLUMNS_BYTES];
  const char *rest = NULL;
  size_t rest_length = 0;
  if (!read_line(cursor, end, BATCH_RECALL_TITLE, &rest, &rest_length) || rest_length != 0) return false;
  if (!read_line(cursor, end, "# ", settings, length)) return false;
  *columns = (batch_columns){batch_settings_have_masks(*settings, *length), false, is_journal};
  for (int sources = 1; sources >= 0; sources--) {
    const char *at = *cursor;
    columns->sources = sources != 0;
    batch_columns_text(*columns, text);
    if (read_line(&at, end, text, &rest, &rest_length) && rest_length == 0) {
      *cursor = at;
      return true;
    }
  }
  return false;
}

/* ---- files */

char *batch_read_whole(int descriptor, size_t *size) {
  size_t capacity = ROWS_FIRST_BYTES;
  char *text = malloc(capacity);
  *size = 0;
  while (text) {
    const int64_t got = os_read_at(descriptor, text + *size, capacity - *size, *size);
    if (got == 0) return text;
    if (got < 0) {
      free(text);
      return NULL;
    }
    *size += (size_t)got;
    if (*size == capacity) {
      char *larger = capacity <= SIZE_MAX / 2 ? realloc(text, 2 * capacity) : NULL;
      if (!larger) free(text);
      text = larger;
      capacity *= 2;
    }
  }
  errno = ENOMEM;
  return NULL;
}

/* True if a text contains this word, between blanks. */
static bool has_word(const char *text, size_t size, const char *word, size_t length) {
  for (const char *at = text, *end = text + size; at < end;) {
    const char *space = memchr(at, ' ', (size_t)(end - at));
    const size_t span = (size_t)((space ? space : end) - at);
    if (span == length && memcmp(at, word, length) == 0) return true;
    at += span + 1;
  }
  return false;
}

void batch_list_differences(const char *one, size_t one_size, const char *other, size_t other_size,
                            char out[CLI_MESSAGE_BYTES]) {
  size_t used = 0;
  out[0] = '\0';
  for (const char *at = one, *end = one + one_size; at < end && used < CLI_MESSAGE_BYTES;) {
    const char *space = memchr(at, ' ', (size_t)(end - at));
    const size_t span = (size_t)((space ? space : end) - at);
    if (!has_word(other, other_size, at, span))
      used += (size_t)snprintf(out + used, CLI_MESSAGE_BYTES - used, " %.*s", (int)span, at);
    at += span + 1;
  }
  /* `one` has no other words: only given options are recorded, so the others have their defaults */
  if (used == 0) snprintf(out, CLI_MESSAGE_BYTES, " the defaults");
}

/* ---- recalling an earlier run */

/* Records an image that was removed from the folder. Not for a run over a list, whose rows have paths as names: images
   that are no longer listed were left out on purpose. */
static void note_gone(batch_manifest *manifest, const char *name) {
  char *path = manifest->list->folder ? batch_list_path(manifest->list, name) : NULL;
  const bool was_removed = path && batch_source_is_gone(path) && batch_source_is_gone(name);
  free(path);
  char **gone = was_removed ? realloc(manifest->gone, (manifest->gone_count + 1) * sizeof *gone) : NULL;
  if (!gone) return; /* out of memory: only a message is lost */
  manifest->gone = gone;
  gone[manifest->gone_count] = strdup(name);
  manifest->gone_count += gone[manifest->gone_count] != NULL;
}

/* Stores a row for an image of the list. False if a field is invalid. */
static bool take_row(batch_manifest *manifest, const batch_row *row) {
  batch_record record;
  if (!batch_row_record(row, manifest->read, &record)) return false;
  if (record.state == BATCH_FAILED) return true; /* images that failed are processed again */
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
  const char *cursor = text, *end = text + size;
  size_t settings_length = 0;
  *settings_differ = false;
  if (!batch_read_head(&cursor, end, is_journal, settings, &settings_length, &manifest->read)) return 0;
  const int fields = batch_row_fields(manifest->read);
  if (settings_length != strlen(manifest->settings) || memcmp(*settings, manifest->settings, settings_length) != 0) {
    *settings_differ = true;
    return settings_length;
  }
  batch_row row = {.text = malloc(size + BATCH_FIELDS_MAX)};
  const char *whole = cursor;
  while (row.text && batch_read_row(&cursor, end, &row) && row.count == fields &&
         (!is_journal || batch_check_row(whole, &row)) && take_row(manifest, &row))
    whole = cursor;
  free(row.text);
  return (size_t)(whole - text);
}

/* Reads a manifest or journal. path: for messages, and for its ending. whole_bytes: number of bytes that could be
   read. */
static cli_exit recall_file(batch_manifest *manifest, int descriptor, const char *path, uint64_t *whole_bytes) {
  const char *settings = NULL;
  bool differ = false;
  size_t size = 0;
  char *text = batch_read_whole(descriptor, &size);
  if (!text) return cli_fail(CLI_FAILED, COMMAND_BATCH, "%s: cannot be read: %s", path, strerror(errno));
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
    cli_note("%s: has another version's beginning, or is torn: its images are processed again", path);
  *whole_bytes = differ ? 0 : whole;
  free(text);
  return differ ? CLI_USAGE : CLI_DONE;
}

/* Reads a manifest or journal by its path. It is no error if the file does not exist. */
static cli_exit recall_path(batch_manifest *manifest, const char *path) {
  uint64_t whole_bytes = 0;
  const int descriptor = os_open(path, OS_READ);
  if (descriptor < 0 && errno == ENOENT) return CLI_DONE;
  if (descriptor < 0) return cli_fail(CLI_FAILED, COMMAND_BATCH, "%s: cannot be read: %s", path, strerror(errno));
  const cli_exit result = recall_file(manifest, descriptor, path, &whole_bytes);
  os_close(descriptor);
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

/* Calls take(user, path) for the files of the prefix's folder that are named as manifests or journals, while it returns
   CLI_DONE. */
static cli_exit each_manifest(const char *prefix, cli_exit (*take)(void *user, const char *path), void *user) {
  const char *slash = strrchr(prefix, '/');
  const char *base = slash ? slash + 1 : prefix;
  const size_t folder_length = (size_t)(base - prefix);
  char *folder = folder_length > 0 ? os_copy_text(prefix, folder_length) : strdup(".");
  char **entries = NULL;
  const int64_t count = folder ? os_list_folder(folder, &entries) : -1;
  cli_exit result = CLI_DONE;
  for (int64_t i = 0; i < count; i++) {
    const char *name = entries[i];
    const size_t bytes = folder_length + strlen(name) + 1;
    char *path = result == CLI_DONE && batch_is_manifest_name(name, base) ? malloc(bytes) : NULL;
    if (path) {
      snprintf(path, bytes, "%.*s%s", (int)folder_length, prefix, name);
      result = take(user, path);
      free(path);
    }
    free(entries[i]);
  }
  free(entries);
  free(folder);
  return result;
}

static cli_exit recall_other(void *user, const char *path) {
  batch_manifest *manifest = user;
  if (strcmp(path, manifest->csv_path) == 0 || strcmp(path, manifest->journal_path) == 0) return CLI_DONE;
  return recall_path(manifest, path);
}

cli_exit batch_recall(batch_manifest *manifest, uint64_t *whole_bytes) {
  *whole_bytes = 0;
  cli_exit result = each_manifest(manifest->prefix, recall_other, manifest);
  result = result == CLI_DONE ? recall_path(manifest, manifest->csv_path) : result;
  /* the journal's open descriptor is used: opening and closing another one would end the lock */
  return result == CLI_DONE ? recall_file(manifest, manifest->journal, manifest->journal_path, whole_bytes) : result;
}

/* ---- images that are left */

/* Which images of a list are done according to the rows read so far. */
typedef struct done_images {
  const batch_list *list;
  bool *is_done; /* [image] */
} done_images;

static void mark_done(const done_images *d, const char *text, size_t size, bool is_journal) {
  const char *cursor = text, *end = text + size, *settings;
  size_t settings_length;
  batch_columns columns;
  if (!batch_read_head(&cursor, end, is_journal, &settings, &settings_length, &columns)) return;
  const int fields = batch_row_fields(columns);
  batch_row row = {.text = malloc(size + BATCH_FIELDS_MAX)};
  while (row.text && batch_read_row(&cursor, end, &row) && row.count == fields) {
    batch_record record;
    if (!batch_row_record(&row, columns, &record)) break;
    const batch_image_name *image = batch_list_find(d->list, row.fields[0]);
    if (image) d->is_done[image - d->list->images] = record.state != BATCH_FAILED;
  }
  free(row.text);
}

static cli_exit mark_done_in_file(void *user, const char *path) {
  size_t size = 0;
  const int descriptor = os_open(path, OS_READ);
  char *text = descriptor >= 0 ? batch_read_whole(descriptor, &size) : NULL;
  if (text) mark_done(user, text, size, strcmp(strrchr(path, '.'), ".journal") == 0);
  free(text);
  if (descriptor >= 0) os_close(descriptor);
  return CLI_DONE;
}

size_t batch_count_left(const batch_list *list, const char *prefix, size_t first, size_t step) {
  done_images d = {list, calloc(list->count + 1, sizeof *d.is_done)};
  size_t left = 0;
  if (d.is_done) (void)each_manifest(prefix, mark_done_in_file, &d);
  for (size_t i = first; i < list->count; i += step) left += !d.is_done || !d.is_done[i];
  free(d.is_done);
  return left;
}
