/*
 * Words, numbers and line ends of text that is not trusted.
 */
#include "pipeline/formats/common/text_cursor.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/formats/common/number_text.h"
#include "pipeline/base/message.h"

enum { TEXT_PROBE_BYTES = 65536 };

static bool text_is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

text_cursor cursor_make(const feature_source *source) {
  text_cursor cursor = {.source = source, .line = 1};
  cursor.at = source->size > 0 ? (const char *)source->bytes : "";
  cursor.end = cursor.at + source->size;
  if (source->size >= 3 && memcmp(cursor.at, "\xef\xbb\xbf", 3) == 0) cursor.at += 3;
  return cursor;
}

hs_status cursor_fail(const text_cursor *cursor, const char *format, ...) {
  char reason[256];
  va_list arguments;
  va_start(arguments, format);
  if (vsnprintf(reason, sizeof reason, format, arguments) < 0) reason[0] = '\0';
  va_end(arguments);
  const feature_source *source = cursor->source;
  hs_message_set(source->message, source->message_bytes, "%s:%zu: %s", source->path, cursor->line, reason);
  return HS_ERR_FORMAT;
}

void cursor_skip_blanks(text_cursor *cursor, bool across_lines) {
  while (cursor->at < cursor->end && (text_is_blank(*cursor->at) || (across_lines && *cursor->at == '\n'))) {
    if (*cursor->at == '\n') cursor->line++;
    cursor->at++;
  }
}

bool cursor_at_end(text_cursor *cursor) {
  cursor_skip_blanks(cursor, true);
  return cursor->at == cursor->end;
}

bool cursor_word(text_cursor *cursor, bool across_lines, const char **word, size_t *size) {
  cursor_skip_blanks(cursor, across_lines);
  const char *start = cursor->at;
  while (cursor->at < cursor->end && !text_is_blank(*cursor->at) && *cursor->at != '\n') cursor->at++;
  *word = start;
  *size = (size_t)(cursor->at - start);
  return *size > 0;
}

bool cursor_field(text_cursor *cursor, const char **field, size_t *size) {
  cursor_skip_blanks(cursor, false);
  if (cursor->at == cursor->end || *cursor->at == '\n') return false;
  const char *start = cursor->at;
  while (cursor->at < cursor->end && *cursor->at != ',' && *cursor->at != '\n') cursor->at++;
  const char *stop = cursor->at;
  if (cursor->at < cursor->end && *cursor->at == ',') cursor->at++;
  while (stop > start && text_is_blank(stop[-1])) stop--;
  if (stop - start >= 2 && *start == '"' && stop[-1] == '"') { /* RFC 4180; no name or number needs the quotes */
    start++;
    stop--;
  }
  *field = start;
  *size = (size_t)(stop - start);
  return true;
}

hs_status cursor_number_field(text_cursor *cursor, size_t index, double *value) {
  const char *field;
  size_t size;
  if (!cursor_field(cursor, &field, &size)) return cursor_fail(cursor, "the line has fewer fields than the header");
  if (number_to_double(field, size, value)) return HS_OK;
  return cursor_fail(cursor, "field %zu is not a finite number", index + 1);
}

uint64_t cursor_count_lines(text_cursor cursor) {
  uint64_t count = 0;
  while (!cursor_at_end(&cursor)) {
    count++;
    while (cursor.at < cursor.end && *cursor.at != '\n') cursor.at++;
  }
  return count;
}

void text_shown(const char *word, size_t size, char shown[TEXT_SHOWN_BYTES]) {
  size_t length = size < TEXT_SHOWN_BYTES - 1 ? size : TEXT_SHOWN_BYTES - 1;
  for (size_t i = 0; i < length; i++) shown[i] = word[i] >= ' ' && word[i] <= '~' ? word[i] : '?';
  shown[length] = '\0';
}

/* A word that is not what was expected. */
static hs_status cursor_fail_word(const text_cursor *cursor, const char *what, const char *kind, const char *word,
                                  size_t size) {
  char shown[TEXT_SHOWN_BYTES];
  text_shown(word, size, shown);
  return cursor_fail(cursor, "%s: expected %s, found \"%s\"", what, kind, shown);
}

hs_status cursor_double(text_cursor *cursor, bool across_lines, const char *what, double *value) {
  const char *word;
  size_t size;
  if (!cursor_word(cursor, across_lines, &word, &size)) return cursor_fail(cursor, "%s is missing", what);
  if (!number_to_double(word, size, value)) return cursor_fail_word(cursor, what, "a finite number", word, size);
  return HS_OK;
}

hs_status cursor_int(text_cursor *cursor, bool across_lines, const char *what, int64_t *value) {
  const char *word;
  size_t size;
  if (!cursor_word(cursor, across_lines, &word, &size)) return cursor_fail(cursor, "%s is missing", what);
  if (!number_to_int(word, size, value)) return cursor_fail_word(cursor, what, "an integer", word, size);
  return HS_OK;
}

hs_status cursor_descriptor_entry(text_cursor *cursor, bool across_lines, size_t entry, double *value) {
  const char *word;
  size_t size;
  char what[32];
  const bool present = cursor_word(cursor, across_lines, &word, &size);
  const bool is_number = present && number_to_double(word, size, value);
  if (is_number && *value >= 0.0 && *value <= 255.0) return HS_OK;
  (void)snprintf(what, sizeof what, "descriptor entry %zu", entry);
  if (!present) return cursor_fail(cursor, "%s is missing", what);
  return cursor_fail_word(cursor, what, is_number ? "a number of 0..255" : "a finite number", word, size);
}

hs_status cursor_descriptor(text_cursor *cursor, bool across_lines, uint8_t *descriptor) {
  for (size_t k = 0; k < HS_DESCRIPTOR_LENGTH; k++) {
    double value;
    const hs_status status = cursor_descriptor_entry(cursor, across_lines, k, &value);
    if (status != HS_OK) return status;
    if (value != floor(value)) return cursor_fail(cursor, "descriptor entry %zu is %g, no whole number", k, value);
    descriptor[k] = (uint8_t)value;
  }
  return HS_OK;
}

hs_status cursor_end_line(text_cursor *cursor) {
  cursor_skip_blanks(cursor, false);
  if (cursor->at == cursor->end) return HS_OK;
  if (*cursor->at != '\n') return cursor_fail(cursor, "more values in the line than expected");
  cursor->at++;
  cursor->line++;
  return HS_OK;
}

size_t text_count_words(const uint8_t *bytes, size_t size, size_t limit, size_t *rest) {
  feature_source source = {.bytes = bytes, .size = size < TEXT_PROBE_BYTES ? size : TEXT_PROBE_BYTES};
  text_cursor cursor = cursor_make(&source);
  const char *start = cursor.end - source.size;
  cursor_skip_blanks(&cursor, true);
  size_t count = 0;
  const char *word;
  size_t word_size;
  while (count < limit && cursor_word(&cursor, false, &word, &word_size)) count++;
  while (cursor.at < cursor.end && *cursor.at != '\n') cursor.at++;
  if (rest) *rest = (size_t)(cursor.at - start);
  return count;
}

bool text_begins_with_number(const uint8_t *bytes, size_t size) {
  feature_source source = {.bytes = bytes, .size = size < TEXT_PROBE_BYTES ? size : TEXT_PROBE_BYTES};
  text_cursor cursor = cursor_make(&source);
  const char *word;
  size_t word_size;
  double value;
  return cursor_word(&cursor, true, &word, &word_size) && number_to_double(word, word_size, &value);
}
