/*
 * Error messages: formatted into a caller's buffer, which may be null or small. Control characters from file names are
 * replaced, so that they cannot reach a terminal.
 */
#ifndef HARTSIFT_BASE_MESSAGE_H
#define HARTSIFT_BASE_MESSAGE_H

#include <stdarg.h>
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

#endif
