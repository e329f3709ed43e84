/*
 * Journal and manifest of a batch; see batch_manifest.h. batch_rows.c reads them.
 */
#include "pipeline/cli/batch/batch_manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_files.h"
#include "pipeline/base/atomic_file.h"
#include "pipeline/cli/batch/batch_rows.h"
#include "pipeline/formats/common/content_digest.h"

enum { MANIFEST_OPEN_TRIES = 100 };

/* ---- text */

/* Writes a CSV field. It is quoted if necessary, or if a comma in it could be misread. */
static void write_field(FILE *out, const char *text) {
  const bool is_plain = text[strcspn(text, ",\"\r\n")] == '\0' && text[0] != '#' && text[0] != ' ';
  if (is_plain) {
    fputs(text, out);
    return;
  }
  fputc('"', out);
  for (; *text != '\0'; text++) {
    if (*text == '"') fputc('"', out);
    fputc(*text, out);
  }
  fputc('"', out);
}

static void write_head(FILE *out, const batch_manifest *manifest, bool is_journal) {
  const batch_columns columns = {manifest->columns.masks, manifest->columns.sources, is_journal};
  char names[BATCH_COLUMNS_BYTES];
  batch_columns_text(columns, names);
  fprintf(out, "%s\n# %s\n%s\n", BATCH_RECALL_TITLE, manifest->settings, names);
}

static void write_source(FILE *out, const batch_source *source) {
  if (!source->is_recorded)
    fputs(",,,", out);
  else if (source->digest == 0)
    fprintf(out, ",%" PRIu64 ",%" PRIu64 ",", source->bytes, source->time_ns);
  else
    fprintf(out, ",%" PRIu64 ",%" PRIu64 ",%016" PRIx64, source->bytes, source->time_ns, source->digest);
}

static void write_record(FILE *out, const char *name, const batch_record *record, batch_columns columns) {
  const bool done = record->status == HS_OK;
  write_field(out, name);
  if (record->width > 0)
    fprintf(out, ",%" PRId32 ",%" PRId32, record->width, record->height);
  else
    fputs(",,", out);
  if (done)
    fprintf(out, ",%" PRIu64 ",%016" PRIx64 ",%016" PRIx64, record->features, record->digest, record->output_digest);
  else
    fputs(",,,", out);
  fprintf(out, ",%s,", hs_status_name(record->status));
  write_field(out, record->message ? record->message : "");
  if (columns.masks && record->mask_digest != 0)
    fprintf(out, ",%016" PRIx64, record->mask_digest);
  else if (columns.masks)
    fputc(',', out);
  if (columns.sources) write_source(out, &record->source);
}

/* ---- names */

static char *make_path(const char *prefix, int32_t shard, int32_t shards, const char *ending) {
  const size_t capacity = strlen(prefix) + strlen(ending) + 64;
  char *path = malloc(capacity);
  if (path && shards > 1) {
    char digits[16];
    const int width = snprintf(digits, sizeof digits, "%" PRId32, shards);
    snprintf(path, capacity, "%s-%0*" PRId32 "-of-%" PRId32 "%s", prefix, width, shard, shards, ending);
  } else if (path) {
    snprintf(path, capacity, "%s%s", prefix, ending);
  }
  return path;
}

cli_exit batch_manifest_make(batch_manifest *manifest, const batch_list *list, const char *prefix, int32_t shard,
                             int32_t shards, const char *settings) {
  *manifest =
      (batch_manifest){.list = list,
                       .records = calloc(list->count + 1, sizeof *manifest->records),
                       .settings = strdup(settings),
                       .columns = {.masks = batch_settings_have_masks(settings, strlen(settings)), .sources = true},
                       .csv_path = make_path(prefix, shard, shards, ".csv"),
                       .journal_path = make_path(prefix, shard, shards, ".journal"),
                       .prefix = strdup(prefix),
                       .journal = -1,
                       .command = COMMAND_BATCH};
  if (!manifest->records || !manifest->settings || !manifest->csv_path || !manifest->journal_path ||
      !manifest->prefix) {
    cli_error(COMMAND_BATCH, "out of memory for the manifest");
    batch_manifest_free(manifest);
    return CLI_FAILED;
  }
  return CLI_DONE;
}

/* Returns the size of an open file; -1: unknown. */
static int64_t file_bytes(int descriptor) {
  os_info info;
  return os_info_of_open(descriptor, &info) ? (int64_t)info.size : -1;
}

void batch_manifest_free(batch_manifest *manifest) {
  for (size_t i = 0; manifest->records && i < manifest->list->count; i++) free(manifest->records[i].message);
  if (manifest->csv_path && manifest->journal >= 0) {
    if (file_bytes(manifest->journal) == 0) os_remove(manifest->journal_path);
    os_close(manifest->journal);
  }
  for (size_t i = 0; i < manifest->gone_count; i++) free(manifest->gone[i]);
  free(manifest->gone);
  free(manifest->records);
  free(manifest->settings);
  free(manifest->csv_path);
  free(manifest->journal_path);
  free(manifest->prefix);
  memset(manifest, 0, sizeof *manifest);
  manifest->journal = -1;
}

/* ---- journal */

/* Opens and locks the journal; the lock ends with the process. Returns -1 with errno on failure; EAGAIN: another
 * process holds the lock. */
static int open_locked(const char *path) {
  for (int try = 0; try < MANIFEST_OPEN_TRIES; try++) {
    const int journal = os_open(path, OS_APPEND);
    os_info own, there;
    if (journal < 0) return -1;
    if (!os_lock_for_process(journal) && errno == EAGAIN) {
      os_close(journal);
      errno = EAGAIN;
      return -1;
    } /* other errors mean that the file system has no locks; the journal is then used without a lock */
    if (os_info_of_open(journal, &own) && os_info_of(path, &there) && os_is_same(&own, &there)) return journal;
    os_close(journal); /* meanwhile the previous owner has removed this journal */
  }
  errno = EAGAIN;
  return -1;
}

/* Writes the head or a row of a journal in one call. False with errno. */
static bool write_text(int journal, const char *text, size_t length) {
  const int64_t written = os_write(journal, text, length);
  /* the disk is full if only a part was written; the next run removes the incomplete line */
  errno = written >= 0 && written < (int64_t)length ? ENOSPC : errno;
  return written == (int64_t)length;
}

/* Starts this run's journal. The old manifest is removed first, so that a journal and a manifest that exist together
   always have the same settings, even if the process is killed. */
static bool begin_journal(batch_manifest *manifest) {
  os_text text;
  if (manifest->has_old && !os_remove(manifest->csv_path) && errno != ENOENT) return false;
  if (!os_truncate(manifest->journal, 0)) return false;
  if (!os_text_open(&text)) return false;
  write_head(text.stream, manifest, true);
  manifest->is_begun = os_text_close(&text) && write_text(manifest->journal, text.text, text.length);
  manifest->has_old = manifest->has_old && !manifest->is_begun;
  free(text.text);
  return manifest->is_begun;
}

/* True if a file begins like a manifest or a journal, as far as its content goes: a journal may be cut off or empty. */
static bool is_own(int descriptor) {
  char start[sizeof BATCH_RECALL_TITLE];
  const int64_t got = os_read_at(descriptor, start, strlen(BATCH_RECALL_TITLE), 0);
  return got >= 0 && memcmp(start, BATCH_RECALL_TITLE, (size_t)got) == 0;
}

/* Refuses to replace a file that has a manifest's or journal's name but is neither. */
static cli_exit check_own(const batch_manifest *manifest, int descriptor, const char *path) {
  if (is_own(descriptor)) return CLI_DONE;
  return cli_fail(CLI_FAILED, manifest->command,
                  "%s: was not made by batch and would be lost: move it away, or choose another -o", path);
}

/* Refuses to replace other files. A file that cannot be opened is refused too, because its kind is unknown. */
cli_exit batch_manifest_check_old(const batch_manifest *manifest) {
  const char *path = manifest->csv_path;
  const int descriptor = os_open(path, OS_READ);
  if (descriptor < 0 && errno == ENOENT) return CLI_DONE;
  if (descriptor < 0) return cli_fail(CLI_FAILED, manifest->command, "%s: cannot be read: %s", path, strerror(errno));
  const cli_exit result = check_own(manifest, descriptor, path);
  os_close(descriptor);
  return result;
}

cli_exit batch_manifest_open(batch_manifest *manifest, bool resume) {
  uint64_t whole_bytes = 0;
  manifest->journal = open_locked(manifest->journal_path);
  if (manifest->journal < 0) {
    const int error = errno;
    return cli_fail(CLI_FAILED, COMMAND_BATCH, "%s: %s", manifest->journal_path,
                    error == EAGAIN ? "another run is at work there" : strerror(error));
  }
  if (check_own(manifest, manifest->journal, manifest->journal_path) != CLI_DONE) return CLI_FAILED;
  if (batch_manifest_check_old(manifest) != CLI_DONE) return CLI_FAILED;
  atomic_file_remove_left(manifest->csv_path);
  if (!resume) {
    manifest->has_old = os_exists(manifest->csv_path) || file_bytes(manifest->journal) > 0;
    manifest->read = manifest->columns;
    return CLI_DONE;
  }
  const cli_exit result = batch_recall(manifest, &whole_bytes);
  if (result != CLI_DONE) return result;
  manifest->is_begun = whole_bytes > 0;
  if (!manifest->is_begun) manifest->read = manifest->columns;
  if (manifest->is_begun && !os_truncate(manifest->journal, whole_bytes))
    return cli_fail(CLI_FAILED, COMMAND_BATCH, "%s: cannot be written: %s", manifest->journal_path, strerror(errno));
  return CLI_DONE;
}

bool batch_manifest_append(batch_manifest *manifest, size_t index, double milliseconds) {
  os_text text;
  if (manifest->has_old && manifest->records[index].state != BATCH_DONE) return true;
  if (!os_text_open(&text)) return false;
  write_record(text.stream, manifest->list->images[index].name, &manifest->records[index], manifest->read);
  fprintf(text.stream, ",%.3f", milliseconds);
  bool done = os_text_flush(&text);
  if (done) fprintf(text.stream, ",%08" PRIx32 "\n", crc_zip(0, text.text, text.length));
  done = os_text_close(&text) && done && (manifest->is_begun || begin_journal(manifest));
  done = done && write_text(manifest->journal, text.text, text.length);
  free(text.text);
  return done;
}

/* ---- manifest */

cli_exit batch_manifest_finish(batch_manifest *manifest, size_t first, size_t step) {
  if (manifest->has_old) {
    const char *stays = os_exists(manifest->csv_path) ? manifest->csv_path : manifest->journal_path;
    cli_note("no image processed; %s unchanged", stays);
    return CLI_DONE;
  }
  atomic_file file;
  FILE *stream = atomic_file_open(&file, manifest->csv_path);
  hs_status status = file.status;
  if (stream) {
    write_head(stream, manifest, false);
    for (size_t i = first; i < manifest->list->count; i += step) {
      write_record(stream, manifest->list->images[i].name, &manifest->records[i], manifest->columns);
      fputc('\n', stream);
    }
    status = atomic_file_commit(&file);
  }
  if (status != HS_OK)
    return cli_fail(CLI_FAILED, manifest->command, "%s%s%s%s", file.message, manifest->journal >= 0 ? "; " : "",
                    manifest->journal >= 0 ? manifest->journal_path : "",
                    manifest->journal >= 0 ? " holds the same" : "");
  if (manifest->journal < 0) return CLI_DONE;
  if (!os_remove(manifest->journal_path) && errno != ENOENT)
    return cli_fail(CLI_FAILED, manifest->command, "%s: cannot be removed: %s", manifest->journal_path,
                    strerror(errno));
  return CLI_DONE;
}
