/*
 * Text of failures; see message.h.
 */
#include "pipeline/base/message.h"

#include <stdio.h>
#include <string.h>

/* Length of the text without a UTF-8 character that the buffer's end cut in two. */
static size_t message_whole_characters(const char *text, size_t length) {
  size_t start = length;
  while (start > 0 && length - start < 4) {
    start--;
    const unsigned char lead = (unsigned char)text[start];
    if (lead < 0x80u) return length;
    if (lead >= 0xC0u) {
      const size_t need = lead >= 0xF0u ? 4u : lead >= 0xE0u ? 3u : 2u;
      return length - start < need ? start : length;
    }
  }
  return length;
}

/* C0, DEL, and C1 in its UTF-8 form (C2 80..9F): each could steer the terminal that shows the text. */
static void message_clean(char *text) {
  for (unsigned char *c = (unsigned char *)text; *c != 0; c++) {
    if (*c < 0x20u || *c == 0x7Fu) {
      *c = '?';
    } else if (c[0] == 0xC2u && c[1] >= 0x80u && c[1] <= 0x9Fu) {
      c[0] = '?';
      c[1] = '?';
    }
  }
}

static void message_format(char *message, size_t bytes, const char *format, va_list arguments) {
  message[0] = '\0';
  const int wanted = vsnprintf(message, bytes, format, arguments);
  if (wanted < 0)
    message[0] = '\0';
  else if ((size_t)wanted >= bytes)
    message[message_whole_characters(message, bytes - 1)] = '\0';
  message_clean(message);
}

void hs_message_set(char *message, size_t bytes, const char *format, ...) {
  if (!message || bytes == 0) return;
  va_list arguments;
  va_start(arguments, format);
  message_format(message, bytes, format, arguments);
  va_end(arguments);
}

void hs_message_set_about(char *message, size_t bytes, const char *name, const char *format, va_list arguments) {
  if (!message || bytes == 0) return;
  hs_message_set(message, bytes, "%s: ", name);
  const size_t used = strlen(message);
  if (used + 1 < bytes) message_format(message + used, bytes - used, format, arguments);
}

void hs_message_set_errno(char *message, size_t bytes, int error, const char *format, ...) {
  if (!message || bytes == 0) return;
  va_list arguments;
  va_start(arguments, format);
  message_format(message, bytes, format, arguments);
  va_end(arguments);

  char reason[128] = "";
  if (strerror_r(error, reason, sizeof reason) != 0 || reason[0] == '\0')
    snprintf(reason, sizeof reason, "error %d", error);
  const size_t used = strlen(message);
  const int wanted = snprintf(message + used, bytes - used, ": %s", reason);
  if (wanted > 0 && (size_t)wanted >= bytes - used) message[message_whole_characters(message, bytes - 1)] = '\0';
}
