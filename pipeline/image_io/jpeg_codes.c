/* Huffman codes of a JPEG as tables that the next bits of the stream look up; see jpeg_stream.h. */
#include <string.h>

#include "pipeline/image_io/jpeg_stream.h"

/* The symbol that the topmost bits of `bits` begin with. *length: of its code, 0: none. */
static uint8_t code_of(const jpeg_codes *codes, uint32_t bits, int32_t most, int32_t *length) {
  for (int32_t n = 1; n <= most; n++) {
    const int32_t code = (int32_t)(bits >> (32 - n));
    if (code >= codes->beyond[n] || code < codes->first[n]) continue;
    *length = n;
    return codes->values[codes->at[n] + code - codes->first[n]];
  }
  *length = 0;
  return 0;
}

/* A symbol of an AC table that baseline has no use for ends nothing and skips nothing. */
static jpeg_step step_of(bool of_ac, uint8_t symbol, int32_t length) {
  const uint8_t run = symbol >> 4, size = symbol & 15, bits = (uint8_t)length;
  if (!of_ac) return (jpeg_step){(uint8_t)(bits + symbol), symbol, 0};
  if (symbol == 0) return (jpeg_step){bits, JPEG_STEP_END, 0};
  if (size == 0) return symbol == 0xF0 ? (jpeg_step){bits, 16, 0} : (jpeg_step){0, 0, 0};
  return (jpeg_step){(uint8_t)(bits + size), (uint8_t)(run + 1), (uint16_t)((1 << size) - 1)};
}

/* The bits of a value that comes to `most`. */
static int32_t bits_of_value(uint16_t most) {
  int32_t bits = 0;
  while (most >> bits) bits++;
  return bits;
}

/* Two coefficients, or one and the block's end, where both codes lie within the bits looked at. */
static jpeg_step two_steps(const jpeg_codes *codes, uint32_t look) {
  const jpeg_step first = codes->one[look];
  if (first.bits == 0 || first.skip >= JPEG_STEP_END || first.bits >= JPEG_LOOK_BITS) return first;
  const jpeg_step second = codes->one[(look << first.bits) & ((1 << JPEG_LOOK_BITS) - 1)];
  const int32_t code_bits = second.bits - bits_of_value(second.most);
  if (second.bits == 0 || first.bits + code_bits > JPEG_LOOK_BITS) return first;
  if (second.most == 0 && second.skip < JPEG_STEP_END) return first; /* 16 zeros must not be a block's last */
  return (jpeg_step){(uint8_t)(first.bits + second.bits), (uint8_t)(first.skip + second.skip),
                     (uint16_t)(first.most + second.most)};
}

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
  if (!symbols_are_baseline(codes, at, of_ac)) return false;
  memset(codes->one, 0, sizeof codes->one);
  for (int32_t n = 1; n <= JPEG_LOOK_BITS; n++) {
    const int32_t share = 1 << (JPEG_LOOK_BITS - n);
    for (code = codes->first[n]; code < codes->beyond[n]; code++) {
      const jpeg_step step = step_of(of_ac, codes->values[codes->at[n] + code - codes->first[n]], n);
      for (int32_t i = 0; i < share; i++) codes->one[code * share + i] = step;
    }
  }
  for (uint32_t look = 0; of_ac && look < 1 << JPEG_LOOK_BITS; look++) codes->more[look] = two_steps(codes, look);
  codes->defined = true;
  return true;
}

jpeg_step jpeg_codes_long(const jpeg_codes *codes, bool of_ac, uint32_t bits) {
  int32_t length;
  const uint8_t symbol = code_of(codes, bits, JPEG_CODE_BITS_MOST, &length);
  return length == 0 ? (jpeg_step){0, 0, 0} : step_of(of_ac, symbol, length);
}
