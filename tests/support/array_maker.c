/* Fills arrays for tests; see array_maker.h. */
#include "tests/support/array_maker.h"

#include "pipeline/base/number_tools.h"

static uint64_t next_bits(uint64_t *state) {
  *state += SPLITMIX64_STEP;
  return splitmix64_mix(*state);
}

static double random_float(uint64_t bits, int32_t powers) {
  const double unit = (double)(bits >> 11) * 0x1p-53 - 0.5;
  return ldexp(unit, (int)(bits % (unsigned)(2 * powers + 1)) - powers);
}

static double special(uint64_t bits, prim_element type) {
  switch (bits % 6) {
  case 0:
    return type == PRIM_F32 ? (double)hs_bits_float(0x7fc12345u) : prim_double_of_bits(0x7ff8000012345678u);
  case 1:
    return -(double)NAN;
  case 2:
    return -0.0;
  case 3:
    return 0.0;
  case 4:
    return (double)INFINITY;
  default:
    return random_float(bits, 3);
  }
}

static double float_of(array_content content, prim_element type, uint64_t bits, size_t i) {
  switch (content) {
  case CONTENT_RANDOM:
    return random_float(bits, 6);
  case CONTENT_CONSTANT:
    return 0.1;
  case CONTENT_WIDE:
    return random_float(bits, type == PRIM_F32 ? 120 : 900);
  case CONTENT_SOME_NAN:
    return bits >> 32 & 3 ? random_float(bits, 6) : special(bits, type);
  case CONTENT_ALL_NAN:
    return i & 1 ? -(double)NAN : (double)NAN;
  default:
    return i % 3 ? -0.0 : 0.0;
  }
}

static uint64_t integer_of(array_content content, uint64_t bits) {
  if (content == CONTENT_CONSTANT) return 37;
  if (content == CONTENT_ALL_NAN) return UINT64_MAX;
  return content == CONTENT_ZEROS ? 0 : bits;
}

void array_fill(void *data, prim_element type, size_t n, array_content content, uint64_t seed) {
  uint64_t state = seed * 2 + 1;
  for (size_t i = 0; i < n; i++) {
    const uint64_t bits = next_bits(&state);
    switch (type) {
    case PRIM_U8:
      ((uint8_t *)data)[i] = (uint8_t)(integer_of(content, bits) & 0xff);
      break;
    case PRIM_U16:
      ((uint16_t *)data)[i] = (uint16_t)(integer_of(content, bits) & 0xffff);
      break;
    case PRIM_F32:
      ((float *)data)[i] = (float)float_of(content, type, bits, i);
      break;
    case PRIM_F64:
      ((double *)data)[i] = float_of(content, type, bits, i);
      break;
    }
  }
}

double array_element(const void *data, prim_element type, size_t i) {
  switch (type) {
  case PRIM_U8:
    return ((const uint8_t *)data)[i];
  case PRIM_U16:
    return ((const uint16_t *)data)[i];
  case PRIM_F32:
    return (double)((const float *)data)[i];
  default:
    return ((const double *)data)[i];
  }
}
