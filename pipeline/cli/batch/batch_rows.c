/*
 * Text of manifests and journals; see batch_rows.h.
 */
#include "pipeline/cli/batch/batch_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/formats/common/content_digest.h"

enum { ROWS_FIRST_BYTES = 1 << 16, STATUSES_MOST = 128 };

/* ---- rows */

/* Reads one field at *place; false when the text ends in it. */
static bool read_field(const char **place, const char *end, char **out) {
  const char *at = *place;
  char *to = *out;
  bool quoted = false;
  for (;; at++) {
    if (at == end) return false;
    if (*at == '"')
      if (quoted && at + 1 < end && at[1] == '"')
        *to++ = *at++; /* a doubled quote means one */
      else
        quoted = !quoted;
    else if (!quoted && (*at == ',' || *at == '\n'))
      break;
    else
      *to++ = *at;
  }
  *to++ = '\0';
  *out = to;
  *place = at;
  return true;
}

bool batch_read_row(const char **place, const char *end, batch_row *row) {
  const char *at = *place;
  char *out = row->text;
  row->count = 0;
  for (;;) {
    if (row->count == BATCH_FIELDS_MOST) return false;
    row->fields[row->count++] = out;
    row->check_at = at > *place ? (size_t)(at - *place) - 1 : 0;
    if (!read_field(&at, end, &out)) return false;
    const bool is_last = *at == '\n';
    at++;
    if (is_last) {
      *place = at;
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

/* The status of that name. */
static hs_status find_status(const char *name) {
  for (int status = 1; status < STATUSES_MOST; status++)
    if (strcmp(hs_status_name((hs_status)status), name) == 0) return (hs_status)status;
  return HS_ERR_INTERNAL; /* a later version's */
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

/* Three fields, all empty where nothing was recorded; the last one alone where the file changed while it was read. */
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

/* Moves behind a line that must read `start` and then anything, which *rest gets. */
static bool read_line(const char **place, const char *end, const char *start, const char **rest, size_t *rest_length) {
  const size_t length = strlen(start);
  const char *line_end = memchr(*place, '\n', (size_t)(end - *place));
  if (!line_end || (size_t)(line_end - *place) < length || memcmp(*place, start, length) != 0) return false;
  *rest = *place + length;
  *rest_length = (size_t)(line_end - *rest);
  *place = line_end + 1;
  return true;
}

bool batch_read_head(const char **place, const char *end, bool is_journal, const char **settings, size_t *length,
                     batch_columns *columns) {
  char text[BATCH_COLUMNS_BYTES];
  const char *rest = NULL;
  size_t rest_length = 0;
  if (!read_line(place, end, BATCH_RECALL_TITLE, &rest, &rest_length) || rest_length != 0) return false;
  if (!read_line(place, end, "# ", settings, length)) return false;
  *columns = (batch_columns){batch_settings_have_masks(*settings, *length), false, is_journal};
  for (int sources = 1; sources >= 0; sources--) {
    const char *at = *place;
    columns->sources = sources != 0;
    batch_columns_text(*columns, text);
    if (read_line(&at, end, text, &rest, &rest_length) && rest_length == 0) {
      *place = at;
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
    const ssize_t got = pread(descriptor, text + *size, capacity - *size, (off_t)*size);
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

/* Whether a text of words has this word. */
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
  if (used == 0)
    snprintf(out, CLI_MESSAGE_BYTES, " the defaults"); /* options that are only written where they are given */
}
