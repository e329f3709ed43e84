/* Messages of failures, the names and sentences of statuses, names of files, UTF-8. */
#include "pipeline/base/text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "os/os_process.h"
#include "pipeline/include/hartsift.h"

/* Returns the length of the text without an incomplete UTF-8 character at its end. */
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

/* Replaces C0, DEL, and C1 in UTF-8 (C2 80..9F), because they could control the terminal that shows the text. */
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
  const size_t length = strlen(name), name_max = bytes / 2;
  const bool is_cut = length > name_max;
  if (is_cut) name += length - name_max;
  while (is_cut && ((unsigned char)*name & 0xC0u) == 0x80u) name++; /* not within a UTF-8 character */
  hs_message_set(message, bytes, "%s%s: ", is_cut ? "..." : "", name);
  const size_t used = strlen(message);
  if (used + 1 < bytes) message_format(message + used, bytes - used, format, arguments);
}

void hs_message_set_errno(char *message, size_t bytes, int error, const char *format, ...) {
  if (!message || bytes == 0) return;
  char reason[128] = "";
  os_error_text(error, reason, sizeof reason);
  if (reason[0] == '\0') snprintf(reason, sizeof reason, "error %d", error);
  const size_t reason_bytes = strlen(": ") + strlen(reason);

  va_list arguments;
  va_start(arguments, format);
  message_format(message, bytes > 2 * reason_bytes ? bytes - reason_bytes : bytes, format, arguments);
  va_end(arguments);
  const size_t used = strlen(message);
  const int wanted = snprintf(message + used, bytes - used, ": %s", reason);
  if (wanted > 0 && (size_t)wanted >= bytes - used) message[message_whole_characters(message, bytes - 1)] = '\0';
}

/* ---- statuses */

#define HS_TEXT(x)    #x
#define HS_TEXT_OF(x) HS_TEXT(x)

typedef struct status_text {
  hs_status status;
  const char *name, *sentence;
} status_text;

static const status_text texts[] = {
    {HS_OK, "HS_OK", "Success."},
    {HS_ERR_ARGUMENT, "HS_ERR_ARGUMENT", "A pointer is null, or an argument is out of its range."},
    {HS_ERR_OPTION, "HS_ERR_OPTION", "An option is out of its range."},
    {HS_ERR_IMAGE, "HS_ERR_IMAGE", "The image view is inconsistent: size, stride, type or layout."},
    {HS_ERR_KEYPOINT, "HS_ERR_KEYPOINT",
     "The keypoint cannot be described: it is outside the picture, has no size or is not a number."},
    {HS_ERR_CAPACITY, "HS_ERR_CAPACITY", "The caller's arrays are too small; the full count is returned."},
    {HS_ERR_LIMIT, "HS_ERR_LIMIT", "The image or the work is larger than the limits allow."},
    {HS_ERR_FORMAT, "HS_ERR_FORMAT", "The content is damaged or of an unknown kind."},
    {HS_ERR_UNSUPPORTED, "HS_ERR_UNSUPPORTED", "The content is valid but this build or this format cannot hold it."},
    {HS_ERR_CANCELLED, "HS_ERR_CANCELLED", "The caller's progress function cancelled the call."},
    {HS_ERR_MEMORY, "HS_ERR_MEMORY", "An allocation failed."},
    {HS_ERR_IO, "HS_ERR_IO", "A file cannot be opened, read, written or renamed."},
    {HS_ERR_THREAD, "HS_ERR_THREAD", "A worker thread cannot be started."},
    {HS_ERR_NO_DEVICE, "HS_ERR_NO_DEVICE", "The requested device is not usable."},
    {HS_ERR_DEVICE, "HS_ERR_DEVICE", "The device reported an error; destroy the context."},
    {HS_ERR_INTERNAL, "HS_ERR_INTERNAL", "An internal invariant is broken; please report it."},
};

static const status_text *find(hs_status status) {
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    if (texts[i].status == status) return &texts[i];
  return NULL;
}

const char *hs_status_name(hs_status status) {
  const status_text *t = find(status);
  return t ? t->name : "HS_ERR_?";
}

const char *hs_status_string(hs_status status) {
  const status_text *t = find(status);
  return t ? t->sentence : "Unknown status.";
}

hs_status_class hs_status_class_of(hs_status status) {
  if (status == HS_OK) return HS_CLASS_OK;
  if ((int)status >= HS_ERR_DEVICE) return HS_CLASS_DEVICE;
  return (int)status >= HS_ERR_MEMORY ? HS_CLASS_RESOURCE : HS_CLASS_ARGUMENT;
}

int32_t hs_version_number(void) { return HS_VERSION_NUMBER; }

int32_t hs_method_version(void) { return HS_METHOD_VERSION; }

_Static_assert(HS_METHOD_VERSION_AFFINE > HS_METHOD_VERSION, "what changes plain features changes affine ones too");
int32_t hs_method_version_affine(void) { return HS_METHOD_VERSION_AFFINE; }

const char *hs_version_string(void) {
  return HS_TEXT_OF(HS_VERSION_MAJOR) "." HS_TEXT_OF(HS_VERSION_MINOR) "." HS_TEXT_OF(
      HS_VERSION_PATCH) " (method " HS_TEXT_OF(HS_METHOD_VERSION) ")";
}

/* ------------------------------------------------------------------ names of files, and UTF-8 */

bool path_ends_with(const char *path, const char *ending) {
  size_t path_size = strlen(path);
  size_t ending_size = strlen(ending);
  if (path_size <= ending_size) return false;
  const char *tail = path + (path_size - ending_size);
  for (size_t i = 0; i < ending_size; i++) {
    char c = tail[i];
    if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
    if (c != ending[i]) return false;
  }
  return true;
}

size_t utf8_length(const unsigned char *text) {
  unsigned char lead = text[0];
  size_t size = lead < 0x80u                    ? 1
                : lead >= 0xc2u && lead < 0xe0u ? 2
                : lead >= 0xe0u && lead < 0xf0u ? 3
                : lead >= 0xf0u && lead < 0xf5u ? 4
                                                : 0;
  for (size_t i = 1; i < size; i++)
    if ((text[i] & 0xc0u) != 0x80u) return 0;
  bool overlong = (lead == 0xe0u && text[1] < 0xa0u) || (lead == 0xf0u && text[1] < 0x90u);
  bool outside = (lead == 0xedu && text[1] > 0x9fu) || (lead == 0xf4u && text[1] > 0x8fu);
  return overlong || outside ? 0 : size;
}

size_t utf8_mark_length(const char *text, size_t size) {
  return size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

bool utf16_is_marked(const char *text, size_t size) {
  return size >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0);
}
