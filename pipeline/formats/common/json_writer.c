/*
 * JSON strings from names that may hold anything.
 */
#include "pipeline/formats/common/json_writer.h"

#include "pipeline/base/utf8.h"
static void json_put_escape(feature_sink *sink, unsigned char c) {
  static const char digits[] = "0123456789abcdef";
  const char escape[6] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15u]};
  sink_bytes(sink, escape, sizeof escape);
}

void json_put_string(feature_sink *sink, const char *text) {
  if (!text) {
    sink_text(sink, "null");
    return;
  }
  sink_text(sink, "\"");
  for (const unsigned char *at = (const unsigned char *)text; *at != 0;) {
    size_t size = utf8_length(at);
    if (size == 0) {
      sink_text(sink, "\\ufffd");
      size = 1;
    } else if (*at < 0x20u || *at == 0x7fu) {
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
