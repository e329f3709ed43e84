/* JSON: writes strings with arbitrary bytes, and parses with a text_cursor. */
#include <string.h>

#include "pipeline/base/text.h"
#include "pipeline/formats/common/json_text.h"
#include "pipeline/formats/common/text_cursor.h"

/* ---- writing */

static void json_put_escape(feature_sink *sink, unsigned char c) {
  static const char digits[] = "0123456789abcdef";
  const char escape[6] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15u]};
  sink_bytes(sink, escape, sizeof escape);
}

void json_put_string(feature_sink *sink, const char *text) {
  if (!text) {
    sink_text(sink, "null");
    return;
  }
  sink_text(sink, "\"");
  for (const unsigned char *at = (const unsigned char *)text; *at != 0;) {
    size_t size = utf8_length(at);
    if (size == 0) {
      sink_text(sink, "\\ufffd");
      size = 1;
    } else if (*at < 0x20u || *at == 0x7fu) {
      json_put_escape(sink, *at);
    } else if (*at == '"' || *at == '\\') {
      sink_text(sink, "\\");
      sink_bytes(sink, at, 1);
    } else {
      sink_bytes(sink, at, size);
    }
    at += size;
  }
  sink_text(sink, "\"");
}

/* ---- reading */

/* Maximum nesting that json_skip accepts, more than any feature file has. */
enum { JSON_DEPTH_MAX = 32 };

/* Returns the next character after blanks; 0 at the end. A zero byte in the file is an error too. */
static char json_peek(text_cursor *cursor) {
  cursor_skip_blanks(cursor, true);
  return cursor->at < cursor->end ? *cursor->at : '\0';
}

hs_status json_expect(text_cursor *cursor, char character) {
  char found = json_peek(cursor);
  if (cursor->at == cursor->end) return cursor_fail(cursor, "the file ends where %c is expected", character);
  if (found != character) return cursor_fail(cursor, "expected %c", character);
  cursor->at++;
  return HS_OK;
}

static size_t json_digits(const char *text, size_t at, size_t size) {
  size_t start = at;
  while (at < size && text[at] >= '0' && text[at] <= '9') at++;
  return at - start;
}

/* Returns the length of a number by JSON's grammar, which is stricter than number_to_double; 0: no number. */
static size_t json_number_size(const char *text, size_t size) {
  size_t at = size > 0 && text[0] == '-' ? 1 : 0;
  size_t digits = json_digits(text, at, size);
  if (digits == 0 || (digits > 1 && text[at] == '0')) return 0;
  at += digits;
  if (at < size && text[at] == '.') {
    digits = json_digits(text, at + 1, size);
    if (digits == 0) return 0;
    at += 1 + digits;
  }
  if (at < size && (text[at] == 'e' || text[at] == 'E')) {
    at++;
    if (at < size && (text[at] == '+' || text[at] == '-')) at++;
    digits = json_digits(text, at, size);
    if (digits == 0) return 0;
    at += digits;
  }
  return at;
}

hs_status json_number(text_cursor *cursor, double *value) {
  cursor_skip_blanks(cursor, true);
  size_t size = json_number_size(cursor->at, (size_t)(cursor->end - cursor->at));
  if (size == 0 || !number_to_double(cursor->at, size, value)) return cursor_fail(cursor, "expected a finite number");
  cursor->at += size;
  return HS_OK;
}

/* Returns the length of the escape that begins at a backslash; 0: invalid. */
static size_t json_escape_size(const char *text, size_t size) {
  if (size < 2) return 0;
  if (text[1] != '\0' && strchr("\"\\/bfnrt", text[1])) return 2;
  if (text[1] != 'u' || size < 6) return 0;
  for (size_t i = 2; i < 6; i++)
    if (text[i] == '\0' || !strchr("0123456789abcdefABCDEF", text[i])) return 0;
  return 6;
}

hs_status json_string(text_cursor *cursor, json_text *text) {
  hs_status status = json_expect(cursor, '"');
  if (status != HS_OK) return status;
  text->start = cursor->at;
  while (cursor->at < cursor->end && *cursor->at != '"') {
    if ((unsigned char)*cursor->at < 0x20u) return cursor_fail(cursor, "a string holds a control character");
    size_t step = 1;
    if (*cursor->at == '\\') step = json_escape_size(cursor->at, (size_t)(cursor->end - cursor->at));
    if (step == 0) return cursor_fail(cursor, "a string holds an unknown escape");
    cursor->at += step;
  }
  if (cursor->at == cursor->end) return cursor_fail(cursor, "the file ends inside a string");
  text->size = (size_t)(cursor->at - text->start);
  cursor->at++;
  return HS_OK;
}

bool json_text_is(json_text text, const char *name) {
  return strlen(name) == text.size && memcmp(text.start, name, text.size) == 0;
}

/* Takes a comma or the closing bracket. Called after the opening bracket, and after each value. */
static hs_status json_next(text_cursor *cursor, bool *first, bool *more, char closing) {
  char found = json_peek(cursor);
  if (cursor->at < cursor->end && found == closing) {
    cursor->at++;
    *more = false;
    return HS_OK;
  }
  *more = true;
  if (*first) {
    *first = false;
    return HS_OK;
  }
  return json_expect(cursor, ',');
}

hs_status json_next_element(text_cursor *cursor, bool *first, bool *more) {
  if (*first) {
    hs_status status = json_expect(cursor, '[');
    if (status != HS_OK) return status;
  }
  return json_next(cursor, first, more, ']');
}

hs_status json_next_member(text_cursor *cursor, bool *first, bool *more, json_text *name) {
  hs_status status = *first ? json_expect(cursor, '{') : HS_OK;
  if (status == HS_OK) status = json_next(cursor, first, more, '}');
  if (status != HS_OK || !*more) return status;
  status = json_string(cursor, name);
  return status != HS_OK ? status : json_expect(cursor, ':');
}

static hs_status json_skip_plain(text_cursor *cursor) {
  static const char *const words[] = {"true", "false", "null"};
  json_text text;
  double value;
  char found = json_peek(cursor);
  if (found == '"') return json_string(cursor, &text);
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    size_t size = strlen(words[i]);
    if ((size_t)(cursor->end - cursor->at) >= size && memcmp(cursor->at, words[i], size) == 0) {
      cursor->at += size;
      return HS_OK;
    }
  }
  return json_number(cursor, &value);
}

/* Uses its own stack, so that deep nesting cannot exhaust the call stack. */
hs_status json_skip(text_cursor *cursor) {
  char open[JSON_DEPTH_MAX];
  bool first[JSON_DEPTH_MAX];
  size_t depth = 0;
  do {
    bool more = true;
    hs_status status = HS_OK;
    if (depth > 0) {
      json_text name;
      status = open[depth - 1] == '{' ? json_next_member(cursor, &first[depth - 1], &more, &name)
                                      : json_next_element(cursor, &first[depth - 1], &more);
      if (status != HS_OK) return status;
    }
    if (!more) {
      depth--;
      continue;
    }
    char found = json_peek(cursor);
    if (found != '{' && found != '[') {
      status = json_skip_plain(cursor);
      if (status != HS_OK) return status;
      continue;
    }
    if (depth == JSON_DEPTH_MAX) return cursor_fail(cursor, "values are nested too deeply");
    open[depth] = found;
    first[depth++] = true;
  } while (depth > 0);
  return HS_OK;
}
