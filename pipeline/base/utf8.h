/*
 * UTF-8 in text from elsewhere.
 */
#ifndef HARTSIFT_BASE_UTF8_H
#define HARTSIFT_BASE_UTF8_H

#include <stddef.h>

/* Bytes of the UTF-8 character at `text` (zero-terminated), 0 when it is none. Overlong forms, surrogates and values
   beyond U+10FFFF are none. */
size_t utf8_length(const unsigned char *text);

#endif
