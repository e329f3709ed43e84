/*
 * Strict JSON (RFC 8259) pull parser: the caller steps through objects and arrays and skips unknown members. Works on
 * a text_cursor, allocates nothing, limits the nesting. Also writes strings to a sink.
 */
#ifndef HARTSIFT_FORMATS_COMMON_JSON_TEXT_H
#define HARTSIFT_FORMATS_COMMON_JSON_TEXT_H

#include "pipeline/formats/common/feature_sink.h"
#include "pipeline/formats/common/text_cursor.h"

/* The characters between a string's quotes, escapes not decoded. */
typedef struct json_text {
  const char *start;
  size_t size;
} json_text;

/* Skips blanks and takes the character; HS_ERR_FORMAT for any other. */
hs_status json_expect(text_cursor *cursor, char character);
hs_status json_number(text_cursor *cursor, double *value);
hs_status json_string(text_cursor *cursor, json_text *text);
/* Skips one value of any kind. */
hs_status json_skip(text_cursor *cursor);
bool json_text_is(json_text text, const char *name);

/* Iterates over "{...}" and "[...]": call with *first true at the opening bracket. A call that sets *more stops
   before the next member's value (its name in *name) or element; without *more the closing bracket was taken. */
hs_status json_next_member(text_cursor *cursor, bool *first, bool *more, json_text *name);
hs_status json_next_element(text_cursor *cursor, bool *first, bool *more);

/* ---- strings to a sink */

/* Writes the text in quotes with escapes; invalid UTF-8 becomes U+FFFD, a null pointer the word null. */
void json_put_string(feature_sink *sink, const char *text);

#endif
