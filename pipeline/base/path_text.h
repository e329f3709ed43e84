/* File name endings, and UTF-8 in untrusted text. */
#ifndef HARTSIFT_BASE_PATH_TEXT_H
#define HARTSIFT_BASE_PATH_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* True if the name ends in `ending` (lower case, with its dot; ASCII case-insensitive) and has a stem. Independent
   of the locale, which must not decide the type of a file. */
bool path_ends_with(const char *path, const char *ending);

/* Length in bytes of the UTF-8 character at `text` (zero-terminated); 0 if it is invalid: overlong, a surrogate, or
   beyond U+10FFFF. */
size_t utf8_length(const unsigned char *text);

/* Length of the UTF-8 byte-order mark at the start of a text: 3, or 0 without one. */
size_t utf8_mark_length(const char *text, size_t size);

/* True if a text begins with the byte-order mark of UTF-16, in either byte order. */
bool utf16_is_marked(const char *text, size_t size);

#endif
