/*
 * Escaped text for HTML and SVG; see html_text.h.
 */
#include "pipeline/cli/bench/html_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "pipeline/cli/common/cli_common.h"

static const char replacement_character[] = "\xEF\xBF\xBD";
static const char ellipsis_character[] = "\xE2\x80\xA6";

static bool is_forbidden(const unsigned char *text, size_t length) {
  if (length == 1) {
    return (text[0] < 0x20 && text[0] != '\t' && text[0] != '\n') || text[0] == 0x7F;
  }
  if (length == 2) {
    return text[0] == 0xC2 && text[1] < 0xA0; /* the second set of controls, U+0080 to U+009F */
  }
  return length == 3 && text[0] == 0xEF && text[1] == 0xBF && text[2] >= 0xBE;
}

/* Writes the character at text and returns the number of its bytes. */
static size_t write_character(FILE *out, const unsigned char *text) {
  const size_t length = cli_utf8_length(text);
  if (length == 0 || is_forbidden(text, length)) {
    fputs(replacement_character, out);
    return length == 0 ? 1 : length;
  }
  switch (text[0]) {
  case '&':
    fputs("&amp;", out);
    break;
  case '<':
    fputs("&lt;", out);
    break;
  case '>':
    fputs("&gt;", out);
    break;
  case '"':
    fputs("&quot;", out);
    break;
  case '\'':
    fputs("&#39;", out);
    break;
  default:
    fwrite(text, 1, length, out);
  }
  return length;
}

void html_write_text(FILE *out, const char *text) { html_write_start(out, text, SIZE_MAX); }

void html_write_start(FILE *out, const char *text, size_t most) {
  const unsigned char *byte = (const unsigned char *)text;
  for (size_t written = 0; *byte != '\0'; ++written) {
    const size_t length = cli_utf8_length(byte);
    if (written + 1 >= most && byte[length == 0 ? 1 : length] != '\0') {
      fputs(ellipsis_character, out);
      return;
    }
    byte += write_character(out, byte);
  }
}
