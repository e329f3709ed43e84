/*
 * UTF-8 in text from elsewhere.
 */
#ifndef HARTSIFT_BASE_UTF8_H
#define HARTSIFT_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the UTF-8 character at `text` (zero-terminated), 0 when it is none. Overlong forms, surrogates and values
   beyond U+10FFFF are none. */
size_t utf8_length(const unsigned char *text);

/* Bytes of the byte-order mark that a text begins with: 3, or 0 without one. */
size_t utf8_mark_length(const char *text, size_t size);

/* Whether a text begins with the byte-order mark of UTF-16, in either order. */
bool utf16_is_marked(const char *text, size_t size);

#endif
