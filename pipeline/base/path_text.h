/* Names of files, and UTF-8 in text from elsewhere. */
#ifndef HARTSIFT_BASE_PATH_TEXT_H
#define HARTSIFT_BASE_PATH_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* True if the name ends in `ending` (in lower case, with its dot), in ASCII letters of either case, and has a stem. Not by
   the locale: it must not decide what a file is. */
bool path_ends_with(const char *path, const char *ending);

/* Bytes of the UTF-8 character at `text` (zero-terminated), 0 when it is none. Overlong forms, surrogates and values
   beyond U+10FFFF are none. */
size_t utf8_length(const unsigned char *text);

/* Bytes of the byte-order mark that a text begins with: 3, or 0 without one. */
size_t utf8_mark_length(const char *text, size_t size);

/* Whether a text begins with the byte-order mark of UTF-16, in either order. */
bool utf16_is_marked(const char *text, size_t size);

#endif
