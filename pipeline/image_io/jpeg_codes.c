/* Huffman codes of a JPEG; see jpeg_stream.h. */
#include "pipeline/image_io/jpeg_stream.h"

#include <string.h>

/* The largest values that baseline's symbols may announce. */
static bool symbols_are_baseline(const jpeg_codes *codes, int32_t count, bool of_ac) {
  for (int32_t i = 0; i < count; i++)
    if ((of_ac ? codes->values[i] & 15 : codes->values[i]) > (of_ac ? 10 : 11)) return false;
  return true;
}

bool jpeg_codes_make(const uint8_t *counts, bool of_ac, jpeg_codes *codes) {
  int32_t code = 0, at = 0;
  for (int32_t n = 1; n <= JPEG_CODE_BITS_MOST; n++, code *= 2) {
    codes->first[n] = code;
    codes->at[n] = at;
    at += counts[n - 1];
    code += counts[n - 1];
    codes->beyond[n] = code;
    if (code >= 1 << n) return false; /* all ones is no code */
  }
  codes->defined = symbols_are_baseline(codes, at, of_ac);
  return codes->defined;
}

bool jpeg_codes_same(const jpeg_codes *a, const jpeg_codes *b) {
  const int32_t last = JPEG_CODE_BITS_MOST, count = a->at[last] + a->beyond[last] - a->first[last];
  return memcmp(a->first, b->first, sizeof a->first) == 0 && memcmp(a->beyond, b->beyond, sizeof a->beyond) == 0 &&
         memcmp(a->values, b->values, (size_t)count) == 0;
}
