/*
 * JSON strings from names that may hold anything.
 */
#include "pipeline/formats/common/json_writer.h"

#include <stdbool.h>
#include <string.h>

/* Length of the UTF-8 character at `text` (zero-terminated), 0 when it is none. Overlong forms,
   surrogates and values beyond U+10FFFF are none. */
static size_t utf8_size(const unsigned char *text) {
  unsigned char lead = text[0];
  size_t size = lead < 0x80u                    ? 1
                : lead >= 0xc2u && lead < 0xe0u ? 2
                : lead >= 0xe0u && lead < 0xf0u ? 3
                : lead >= 0xf0u && lead < 0xf5u ? 4
                                                : 0;
  for (size_t i = 1; i < size; i++) {
    if ((text[i] & 0xc0u) != 0x80u) return 0;
  }
  bool overlong = (lead == 0xe0u && text[1] < 0xa0u) || (lead == 0xf0u && text[1] < 0x90u);
  bool outside = (lead == 0xedu && text[1] > 0x9fu) || (lead == 0xf4u && text[1] > 0x8fu);
  return overlong || outside ? 0 : size;
}

static void json_put_escape(feature_sink *sink, unsigned char c) {
  static const char digits[] = "0123456789abcdef";
  const char escape[6] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15u]};
  sink_bytes(sink, escape, sizeof escape);
}

void json_put_string(feature_sink *sink, const char *text) {
  if (text == NULL) {
    sink_text(sink, "null");
    return;
  }
  sink_text(sink, "\"");
  for (const unsigned char *at = (const unsigned char *)text; *at != 0;) {
    size_t size = utf8_size(at);
    if (size == 0) {
      sink_text(sink, "\\ufffd");
      size = 1;
    } else if (*at < 0x20u) {
      json_put_escape(sink, *at);
    } else if (*at == '"' || *at == '\\') {
      sink_text(sink, "\\");
      sink_bytes(sink, at, 1);
    } else {
      sink_bytes(sink, at, size);
    }
    at += size;
  }
  sink_text(sink, "\"");
}
