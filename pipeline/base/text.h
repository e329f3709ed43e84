/*
 * Text: error messages, UTF-8, and names of files. Messages are formatted into a caller's buffer, which may be null or
 * small. They contain no control characters, which could reach a terminal from file names.
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
/* The same, as an expression of this status. */
#define hs_message_fail(STATUS, ...) (hs_message_set(__VA_ARGS__), (STATUS))

/* Writes "name: " and the formatted text, cut and cleaned as above. Of a name that would take more than half of the
   message only the end is written, after "...", so that the reason is seen. */
void hs_message_set_about(char *message, size_t bytes, const char *name, const char *format, va_list arguments);

/* As hs_message_set, followed by ": " and the system's sentence for the errno value `error`, for which a long text is
   cut. */
void hs_message_set_errno(char *message, size_t bytes, int error, const char *format, ...) HS_MESSAGE_FORMAT(4, 5);

/* ------------------------------------------------------------------ names of files, and UTF-8 */

/* True if the name ends in `ending` (lower case, with its dot), in ASCII letters of either case, and has a stem. The
   locale is ignored: it must not decide the type of a file. */
bool path_ends_with(const char *path, const char *ending);

/* Returns the bytes of the UTF-8 character at `text` (zero-terminated); 0 if it is invalid, which includes overlong
   forms, surrogates and values above U+10FFFF. */
size_t utf8_length(const unsigned char *text);

/* Returns the length of the byte-order mark at the beginning of a text: 3, or 0 without one. */
size_t utf8_mark_length(const char *text, size_t size);

/* Whether a text begins with a byte-order mark of UTF-16, of either byte order. */
bool utf16_is_marked(const char *text, size_t size);

#endif
