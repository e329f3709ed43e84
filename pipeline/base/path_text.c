/* File name endings, and UTF-8 in untrusted text; see path_text.h. */
#include "pipeline/base/path_text.h"

#include <stdbool.h>
#include <string.h>

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
