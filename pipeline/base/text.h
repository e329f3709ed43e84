/*
 * Text: error messages, formatted into a caller's buffer, which may be null or small, without control characters, which
 * could reach a terminal from file names; and names of files.
 */
#ifndef HARTSIFT_BASE_TEXT_H
#define HARTSIFT_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#if defined(__GNUC__)
#  define HS_MESSAGE_FORMAT(format_index, first_index) __attribute__((format(printf, format_index, first_index)))
#else
#  define HS_MESSAGE_FORMAT(format_index, first_index)
#endif

/* Writes the formatted text, cut to `bytes` including the terminating zero, never inside a UTF-8
   character; control characters become '?'. message null or bytes 0: nothing happens. */
void hs_message_set(char *message, size_t bytes, const char *format, ...) HS_MESSAGE_FORMAT(3, 4);

/* Writes "name: " and the formatted text, cut and cleaned as above. */
void hs_message_set_about(char *message, size_t bytes, const char *name, const char *format, va_list arguments);

/* As hs_message_set, followed by ": " and the system's sentence for the errno value `error`. */
void hs_message_set_errno(char *message, size_t bytes, int error, const char *format, ...) HS_MESSAGE_FORMAT(4, 5);

/* ------------------------------------------------------------------ names of files, and UTF-8 */

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
