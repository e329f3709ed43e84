/*
 * A strict JSON parser (RFC 8259): the caller steps through objects and arrays, and skips unknown members. It works on
 * a text_cursor, allocates nothing and limits the nesting. Also writes strings to a sink.
 */
#ifndef HARTSIFT_FORMATS_COMMON_JSON_TEXT_H
#define HARTSIFT_FORMATS_COMMON_JSON_TEXT_H

#include "pipeline/formats/common/feature_sink.h"
#include "pipeline/formats/common/text_cursor.h"

/* Characters between the quotes of a string; escapes are not decoded. */
typedef struct json_text {
  const char *start;
  size_t size;
} json_text;

/* Skips blanks and takes this character. HS_ERR_FORMAT if another one follows. */
hs_status json_expect(text_cursor *cursor, char character);
hs_status json_number(text_cursor *cursor, double *value);
hs_status json_string(text_cursor *cursor, json_text *text);
/* Skips one value of any kind. */
hs_status json_skip(text_cursor *cursor);
bool json_text_is(json_text text, const char *name);

/* Step through "{...}" and "[...]". Call with *first true at the opening bracket. If a call sets *more, the next
   element follows, or the value of the next member, whose name is in *name. If it clears *more, the closing bracket was
   taken. */
hs_status json_next_member(text_cursor *cursor, bool *first, bool *more, json_text *name);
hs_status json_next_element(text_cursor *cursor, bool *first, bool *more);

/* ---- strings to a sink */

/* Writes the text in quotes with escapes. Invalid UTF-8 becomes U+FFFD; a null pointer becomes the word null. */
void json_put_string(feature_sink *sink, const char *text);

#endif
