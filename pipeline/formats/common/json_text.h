/*
 * Strict reading of JSON (RFC 8259) by pulling: the caller steps through objects and arrays and skips what it does
 * not know. Works on a text_cursor, allocates nothing, and limits the nesting. And strings written to a sink.
 */
#ifndef HARTSIFT_FORMATS_COMMON_JSON_TEXT_H
#define HARTSIFT_FORMATS_COMMON_JSON_TEXT_H

#include "pipeline/formats/common/feature_sink.h"
#include "pipeline/formats/common/text_cursor.h"

/* A string's characters between the quotes, with its escapes not decoded. */
typedef struct json_text {
  const char *start;
  size_t size;
} json_text;

/* Passes over blanks and the character; HS_ERR_FORMAT when there is another one. */
hs_status json_expect(text_cursor *cursor, char character);
hs_status json_number(text_cursor *cursor, double *value);
hs_status json_string(text_cursor *cursor, json_text *text);
/* Passes over any one value. */
hs_status json_skip(text_cursor *cursor);
bool json_text_is(json_text text, const char *name);

/* Steps through "{...}" and "[...]": call with *first true at the opening bracket; each call that sets *more
   stops before the next member's value (its name in *name) or the next element; without *more the
   closing bracket has been passed. */
hs_status json_next_member(text_cursor *cursor, bool *first, bool *more, json_text *name);
hs_status json_next_element(text_cursor *cursor, bool *first, bool *more);

/* ---- strings to a sink */

/* The text in quotes with escapes; bytes that are not UTF-8 become U+FFFD; null becomes the word null. */
void json_put_string(feature_sink *sink, const char *text);

#endif
