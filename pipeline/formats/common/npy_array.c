/*
 * Arrays of NumPy: the header (a Python dictionary as text), and access to items.
 */
#include "pipeline/formats/common/npy_array.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/formats/common/feature_codec.h"
#include "pipeline/formats/common/text_cursor.h"
#include "pipeline/base/memory.h"

/* Bytes of magic, version and length before the header's text; data begins at a multiple of NPY_ALIGNMENT. */
enum { NPY_PREFIX_BYTES = 10, NPY_PREFIX_2_BYTES = 12, NPY_ALIGNMENT = 64, NPY_HEADER_MAX = 128 };

static const uint8_t npy_magic[6] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

void npy_put_header(feature_sink *sink, const char *descr, size_t rank, uint64_t rows, uint64_t columns) {
  char shape[64] = "()";
  unsigned long long height = rows;
  unsigned long long width = columns;
  if (rank == 1) (void)snprintf(shape, sizeof shape, "(%llu,)", height);
  if (rank == 2) (void)snprintf(shape, sizeof shape, "(%llu, %llu)", height, width);
  char text[NPY_HEADER_MAX];
  int printed = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);
  size_t used = printed > 0 ? (size_t)printed : 0;
  size_t total = (NPY_PREFIX_BYTES + used + 1 + NPY_ALIGNMENT - 1) / NPY_ALIGNMENT * NPY_ALIGNMENT;
  uint8_t prefix[NPY_PREFIX_BYTES] = {0};
  memcpy(prefix, npy_magic, sizeof npy_magic);
  prefix[6] = 1;
  bytes_put_u16(prefix + 8, (uint16_t)(total - NPY_PREFIX_BYTES));
  sink_bytes(sink, prefix, sizeof prefix);
  sink_bytes(sink, text, used);
  for (size_t i = NPY_PREFIX_BYTES + used; i + 1 < total; i++) sink_text(sink, " ");
  sink_text(sink, "\n");
}

/* Position in the header's text. */
typedef struct npy_text {
  const char *at, *end;
} npy_text;

static void npy_skip_blanks(npy_text *text) {
  while (text->at < text->end && (*text->at == ' ' || *text->at == '\n')) text->at++;
}

static bool npy_take(npy_text *text, char character) {
  npy_skip_blanks(text);
  if (text->at == text->end || *text->at != character) return false;
  text->at++;
  return true;
}

static bool npy_take_word(npy_text *text, const char *word) {
  npy_skip_blanks(text);
  size_t size = strlen(word);
  if ((size_t)(text->end - text->at) < size || memcmp(text->at, word, size) != 0) return false;
  text->at += size;
  return true;
}

static bool npy_take_string(npy_text *text, const char **start, size_t *size) {
  npy_skip_blanks(text);
  if (text->at == text->end || (*text->at != '\'' && *text->at != '"')) return false;
  char quote = *text->at++;
  *start = text->at;
  while (text->at < text->end && *text->at != quote) text->at++;
  *size = (size_t)(text->at - *start);
  return npy_take(text, quote);
}

static bool npy_take_shape(npy_text *text, npy_array *array) {
  array->rank = 0;
  array->shape[0] = array->shape[1] = 1;
  if (!npy_take(text, '(')) return false;
  while (!npy_take(text, ')')) {
    npy_skip_blanks(text);
    size_t digits = 0;
    int64_t value;
    while (text->at + digits < text->end && text->at[digits] >= '0' && text->at[digits] <= '9') digits++;
    if (!number_to_int(text->at, digits, &value)) return false;
    if (array->rank < 2) array->shape[array->rank] = (uint64_t)value;
    array->rank++;
    text->at += digits;
    if (!npy_take(text, ',') && (text->at == text->end || *text->at != ')')) return false;
  }
  return true;
}

static bool npy_take_descr(npy_text *text, npy_array *array) {
  const char *descr;
  size_t size;
  int64_t length;
  if (!npy_take_string(text, &descr, &size) || size < 3 || !strchr("<>|=", descr[0]) || descr[0] == '\0') return false;
  if (!number_to_int(descr + 2, size - 2, &length) || length < 0) return false;
  array->big_endian = descr[0] == '>';
  array->kind = descr[1];
  array->item_bytes = (size_t)length;
  if (array->kind == 'U' && !hs_size_mul(array->item_bytes, 4, &array->item_bytes)) return false;
  return true;
}

/* Parses the three members of the dictionary, each exactly once, in any order. */
static bool npy_take_dictionary(npy_text *text, npy_array *array) {
  unsigned seen = 0;
  if (!npy_take(text, '{')) return false;
  while (!npy_take(text, '}')) {
    const char *key;
    size_t size;
    unsigned bit = 0;
    bool good = npy_take_string(text, &key, &size) && npy_take(text, ':');
    if (!good) return false;
    if (size == 5 && memcmp(key, "descr", size) == 0) {
      bit = 1;
      good = npy_take_descr(text, array);
    } else if (size == 5 && memcmp(key, "shape", size) == 0) {
      bit = 2;
      good = npy_take_shape(text, array);
    } else if (size == 13 && memcmp(key, "fortran_order", size) == 0) {
      bit = 4;
      array->fortran = npy_take_word(text, "True");
      good = array->fortran || npy_take_word(text, "False");
    }
    if (!good || bit == 0 || (seen & bit) != 0) return false;
    seen |= bit;
    if (!npy_take(text, ',')) {
      if (!npy_take(text, '}')) return false;
      break;
    }
  }
  npy_skip_blanks(text);
  return seen == 7 && text->at == text->end;
}

const char *npy_parse_header(const uint8_t *bytes, size_t held, uint64_t size, npy_array *array, size_t *data_at) {
  *array = (npy_array){0};
  if (held < NPY_PREFIX_2_BYTES || memcmp(bytes, npy_magic, sizeof npy_magic) != 0) return "not a NumPy array";
  if (bytes[6] < 1 || bytes[6] > 3) return "a NumPy array of an unknown version";
  size_t prefix = bytes[6] == 1 ? NPY_PREFIX_BYTES : NPY_PREFIX_2_BYTES;
  size_t length = bytes[6] == 1 ? bytes_get_u16(bytes + 8) : bytes_get_u32(bytes + 8);
  if (length > held - prefix) return "the header of the NumPy array is cut off";
  npy_text text = {.at = (const char *)bytes + prefix, .end = (const char *)bytes + prefix + length};
  if (!npy_take_dictionary(&text, array)) return "the header of the NumPy array cannot be understood";
  if (array->rank > 2) return "a NumPy array of more than two dimensions: expected one or two";
  size_t count = 0;
  size_t need = 0;
  if (array->shape[0] > SIZE_MAX || array->shape[1] > SIZE_MAX ||
      !hs_size_mul((size_t)array->shape[0], (size_t)array->shape[1], &count) ||
      !hs_size_mul(count, array->item_bytes, &need) || need != size - prefix - length || size < held)
    return "shape and size of the NumPy array do not agree";
  *data_at = prefix + length;
  return NULL;
}

const char *npy_parse(const uint8_t *bytes, size_t size, npy_array *array) {
  size_t data_at = 0;
  const char *fault = npy_parse_header(bytes, size, size, array, &data_at);
  if (!fault) array->data = bytes + data_at;
  return fault;
}

bool npy_is_numeric(const npy_array *array) {
  size_t bytes = array->item_bytes;
  bool power = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
  if (array->kind == 'f') return power && bytes > 1;
  return power && (array->kind == 'u' || array->kind == 'i');
}

static double npy_from_half(uint64_t bits) {
  double sign = (bits & 0x8000u) != 0 ? -1.0 : 1.0;
  int exponent = (int)((bits >> 10) & 31u);
  double fraction = (double)(bits & 1023u);
  if (exponent == 31) return fraction != 0.0 ? (double)NAN : sign * (double)INFINITY;
  if (exponent == 0) return sign * ldexp(fraction, -24);
  return sign * ldexp(1024.0 + fraction, exponent - 25);
}

static double npy_from_bits(const npy_array *array, uint64_t bits) {
  if (array->kind == 'f') {
    if (array->item_bytes == 2) return npy_from_half(bits);
    if (array->item_bytes == 8) {
      double value;
      memcpy(&value, &bits, sizeof value);
      return value;
    }
    uint32_t bits32 = (uint32_t)bits;
    float value;
    memcpy(&value, &bits32, sizeof value);
    return (double)value;
  }
  if (array->kind == 'u') return (double)bits;
  uint64_t sign = UINT64_C(1) << (8 * array->item_bytes - 1);
  if ((bits & sign) == 0) return (double)bits;
  /* converts to two's complement: the magnitude is computed first, so that large numbers lose no digits */
  uint64_t mask = sign | (sign - 1);
  return -(double)((~bits + 1) & mask);
}

double npy_value(const npy_array *array, size_t row, size_t column) {
  size_t index = array->fortran ? column * (size_t)array->shape[0] + row : row * (size_t)array->shape[1] + column;
  const uint8_t *item = array->data + index * array->item_bytes;
  uint64_t bits = 0;
  for (size_t i = 0; i < array->item_bytes; i++) {
    size_t byte = array->big_endian ? array->item_bytes - 1 - i : i;
    bits |= (uint64_t)item[i] << (8 * byte);
  }
  return npy_from_bits(array, bits);
}
