#include "tests/fuzz/input_bytes.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint8_t input_u8(input_bytes *input) {
  if (input->size == 0) return 0;
  input->size--;
  return *input->data++;
}

uint32_t input_u32(input_bytes *input) {
  uint32_t value = 0;
  for (int i = 0; i < 4; i++) value |= (uint32_t)input_u8(input) << 8 * i;
  return value;
}

uint64_t input_u64(input_bytes *input) {
  const uint64_t low = input_u32(input);
  return (uint64_t)input_u32(input) << 32 | low;
}

uint32_t input_below(input_bytes *input, uint32_t most) {
  const uint32_t value = most > UINT8_MAX ? input_u32(input) : input_u8(input);
  return most == UINT32_MAX ? value : value % (most + 1);
}

/* The last bit of the first byte chooses between a table of special values and a plain number. */
double input_double(input_bytes *input) {
  static const double ends[] = {0.0,
                                -0.0,
                                1.0,
                                -1.0,
                                NAN,
                                INFINITY,
                                -INFINITY,
                                DBL_MAX,
                                -DBL_MAX,
                                DBL_MIN,
                                5e-324,
                                DBL_EPSILON,
                                FLT_MAX,
                                FLT_MIN,
                                1e-45,
                                2147483647,
                                2147483648.0,
                                -2147483649.0,
                                4294967296.0,
                                9.3e18,
                                1e6,
                                1000000.5,
                                0.5,
                                16777216.0,
                                16777217.0,
                                3.141592653589793,
                                6.283185307179586,
                                1e300};
  const uint8_t kind = input_u8(input);
  if ((kind & 1u) == 0) return (double)(int16_t)(input_u8(input) | (uint16_t)input_u8(input) << 8) / (1 << (kind >> 5));
  if (kind < 64) {
    const uint64_t bits = input_u64(input);
    double value = 0;
    memcpy(&value, &bits, sizeof value);
    return value;
  }
  return ends[(kind >> 1) % (sizeof ends / sizeof ends[0])];
}

float input_float(input_bytes *input) {
  const double value = input_double(input);
  return value > (double)FLT_MAX ? INFINITY : value < -(double)FLT_MAX ? -INFINITY : (float)value;
}

int32_t input_i32(input_bytes *input) {
  static const int32_t ends[] = {
      0, 1, -1, 2, INT32_MAX, INT32_MIN, INT32_MAX - 1, INT16_MAX, INT16_MAX + 1, 1 << 22, 1 << 16, 1024};
  const uint8_t kind = input_u8(input);
  if ((kind & 1u) == 0) return (int32_t)(kind >> 1) - 8;
  if (kind < 64) return (int32_t)input_u32(input);
  return ends[(kind >> 1) % (sizeof ends / sizeof ends[0])];
}

char *input_text(input_bytes *input, size_t most) {
  size_t length = 0;
  const size_t room = input->size < most ? input->size : most;
  while (length < room && input->data[length] != 0) length++;
  char *text = malloc(length + 1);
  if (text && length > 0) memcpy(text, input->data, length);
  if (text) text[length] = '\0';
  if (length < input->size && input->data[length] == 0) length++;
  input->data += length;
  input->size -= length;
  return text;
}

void fuzz_require_at(bool condition, const char *what, const char *file, int line) {
  if (condition) return;
  fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
  abort();
}
