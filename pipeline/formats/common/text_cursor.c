/* Writes and parses numbers, and moves a cursor over untrusted text; see text_cursor.h. */
#include "pipeline/formats/common/text_cursor.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/text.h"

/* ---- Numbers. Common numbers use exact or correctly rounded double arithmetic; all others use the C library, whose
   decimal point is replaced. */

/* Largest exponent of a power of ten that a double holds exactly. */
enum { POWER_LIMIT = 22 };
#define INTEGER_LIMIT 9007199254740992.0

static const double number_powers[POWER_LIMIT + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                      1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                      1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static bool number_is_plain(char c) { return (c >= '0' && c <= '9') || c == '+' || c == '-' || c == 'e' || c == 'E'; }

size_t number_normalise_point(char *text) {
  size_t kept = 0;
  bool in_point = false;
  for (size_t i = 0; text[i] != '\0'; i++) {
    bool plain = number_is_plain(text[i]);
    if (plain)
      text[kept++] = text[i];
    else if (!in_point)
      text[kept++] = '.';
    in_point = !plain;
  }
  text[kept] = '\0';
  return kept;
}

/* Writes value / 10^decimals with a decimal point, without trailing zeros. */
static size_t number_put_fixed(bool negative, uint64_t value, int decimals, char *text) {
  while (decimals > 0 && value % 10 == 0) {
    value /= 10;
    decimals--;
  }
  char reversed[NUMBER_TEXT_BYTES];
  size_t count = 0;
  int digits = 0;
  while (value != 0 || digits <= decimals) {
    if (digits == decimals && decimals > 0) reversed[count++] = '.';
    reversed[count++] = (char)('0' + (int)(value % 10));
    value /= 10;
    digits++;
  }
  size_t length = 0;
  if (negative) text[length++] = '-';
  while (count > 0) text[length++] = reversed[--count];
  text[length] = '\0';
  return length;
}

/* Returns the number of decimals for `significant` digits of a magnitude in [1e-4, 1e9). */
static int number_decimals(double magnitude, int significant) {
  int integer_digits = 0;
  if (magnitude >= 1.0)
    while (integer_digits < 10 && magnitude >= number_powers[integer_digits]) integer_digits++;
  else
    while (integer_digits > -4 && magnitude * number_powers[1 - integer_digits] < 1.0) integer_digits--;
  int decimals = significant - integer_digits;
  return decimals < 0 ? 0 : decimals;
}

static size_t number_by_library(double value, int significant, char *text) {
  int length = snprintf(text, NUMBER_TEXT_BYTES, "%.*g", significant, value);
  if (length < 0) text[0] = '\0';
  return number_normalise_point(text);
}

static bool number_in_fixed_range(double magnitude) { return magnitude >= 1e-4 && magnitude < 1e9; }

/* True for a double half-way between two floats: readers that round once and readers that round twice may get different
   floats. */
static bool number_is_float_midpoint(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (bits & 0x1fffffffu) == 0x10000000u;
}

size_t number_from_float(float value, char text[NUMBER_TEXT_BYTES]) {
  double magnitude = fabs((double)value);
  bool negative = signbit(value) != 0;
  if (magnitude < 1e7 && magnitude == floor(magnitude)) return number_put_fixed(negative, (uint64_t)magnitude, 0, text);
  if (number_in_fixed_range(magnitude)) {
    for (int significant = 6; significant <= 9; significant++) {
      int decimals = number_decimals(magnitude, significant);
      double digits = floor(magnitude * number_powers[decimals] + 0.5);
      double again = digits / number_powers[decimals];
      if ((float)again == (float)magnitude && !number_is_float_midpoint(again))
        return number_put_fixed(negative, (uint64_t)digits, decimals, text);
    }
  }
  return number_by_library((double)value, FLT_DECIMAL_DIG, text);
}

size_t number_from_double(double value, char text[NUMBER_TEXT_BYTES]) {
  enum { SIGNIFICANT = 12 };
  double magnitude = fabs(value);
  if (magnitude == 0.0) return number_put_fixed(false, 0, 0, text);
  if (!number_in_fixed_range(magnitude)) return number_by_library(value, SIGNIFICANT, text);
  int decimals = number_decimals(magnitude, SIGNIFICANT);
  double digits = floor(magnitude * number_powers[decimals] + 0.5);
  return number_put_fixed(value < 0.0, (uint64_t)digits, decimals, text);
}

/* An integer for a double's 53 bits times 10^22, and for the quotient of a 64-bit number, shifted by 63 bits, by a
   64-bit number. */
#if defined(__SIZEOF_INT128__)
#  define NUMBER_HAS_WIDE 1
__extension__ typedef unsigned __int128 number_wide;
#else
#  define NUMBER_HAS_WIDE 0
#endif

#if NUMBER_HAS_WIDE
enum { DOUBLE_BITS = 53 };

/* Computes magnitude * 10^decimals, rounded to even in one step. magnitude: passes number_in_fixed_range; decimals: at
   most 21, so the product is below 2^124. */
static uint64_t number_scale(double magnitude, int decimals) {
  enum { HALF = POWER_LIMIT / 2 };
  int exponent;
  number_wide product = (uint64_t)ldexp(frexp(magnitude, &exponent), DOUBLE_BITS);
  exponent -= DOUBLE_BITS;
  const int first = decimals < HALF ? decimals : HALF;
  product = product * (uint64_t)number_powers[first] * (uint64_t)number_powers[decimals - first];
  number_wide whole = product >> -exponent;
  const number_wide rest = product - (whole << -exponent), half = (number_wide)1 << (-exponent - 1);
  if (rest > half || (rest == half && (whole & 1) != 0)) whole++;
  return (uint64_t)whole;
}
#endif

size_t number_from_double_exactly(double value, char text[NUMBER_TEXT_BYTES]) {
  const double magnitude = fabs(value);
  if (magnitude < INTEGER_LIMIT && magnitude == floor(magnitude))
    return number_put_fixed(signbit(value) != 0, (uint64_t)magnitude, 0, text);
#if NUMBER_HAS_WIDE
  for (int significant = DBL_DIG; number_in_fixed_range(magnitude) && significant <= DBL_DECIMAL_DIG; significant++) {
    const int decimals = number_decimals(magnitude, significant);
    const uint64_t digits = number_scale(magnitude, decimals);
    /* up to 2^53 both operands are exact, so the quotient equals the number that a reader gets */
    if (significant == DBL_DECIMAL_DIG ||
        ((double)digits < INTEGER_LIMIT && (double)digits / number_powers[decimals] == magnitude))
      return number_put_fixed(value < 0.0, digits, decimals, text);
  }
#endif
  return number_by_library(value, DBL_DECIMAL_DIG, text);
}

size_t number_from_int(int64_t value, char text[NUMBER_TEXT_BYTES]) {
  uint64_t magnitude = value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value;
  return number_put_fixed(value < 0, magnitude, 0, text);
}

/* Parts of a scanned number. */
typedef struct number_parts {
  bool negative;
  bool exact; /* the mantissa holds all digits */
  uint64_t mantissa;
  int64_t exponent; /* exponent of ten, for the mantissa */
} number_parts;

static size_t number_scan_digits(const char *text, size_t at, size_t size, number_parts *parts, bool fraction) {
  size_t start = at;
  for (; at < size && text[at] >= '0' && text[at] <= '9'; at++) {
    if (parts->mantissa >= UINT64_C(100000000000000000)) {
      parts->exact = false;
    } else {
      parts->mantissa = parts->mantissa * 10 + (uint64_t)(text[at] - '0');
      if (fraction) parts->exponent--;
    }
  }
  return at - start;
}

static bool number_scan(const char *text, size_t size, number_parts *parts) {
  *parts = (number_parts){.exact = true};
  size_t at = 0;
  if (size == 0 || size > NUMBER_TEXT_LONGEST) return false;
  if (text[0] == '-' || text[0] == '+') {
    parts->negative = text[0] == '-';
    at = 1;
  }
  size_t digits = number_scan_digits(text, at, size, parts, false);
  at += digits;
  if (at < size && text[at] == '.') {
    at++;
    size_t more = number_scan_digits(text, at, size, parts, true);
    at += more;
    digits += more;
  }
  if (digits == 0) return false;
  if (at < size && (text[at] == 'e' || text[at] == 'E')) {
    int64_t exponent = 0;
    if (size - at > 6 || !number_to_int(text + at + 1, size - at - 1, &exponent)) return false;
    parts->exponent += exponent;
    at = size;
  }
  return at == size;
}

/* Parses a copy of the number with strtod, with the decimal point of the current locale, which is found by printing a
   number. */
static bool number_by_strtod(const char *text, size_t size, double *value) {
  char sample[NUMBER_TEXT_BYTES];
  if (snprintf(sample, sizeof sample, "%.1f", 0.5) < 3) return false;
  size_t point_size = strlen(sample) - 2;
  char copy[NUMBER_TEXT_LONGEST + NUMBER_TEXT_BYTES + 1];
  size_t length = 0;
  for (size_t i = 0; i < size; i++) {
    if (text[i] == '.') {
      memcpy(copy + length, sample + 1, point_size);
      length += point_size;
    } else {
      copy[length++] = text[i];
    }
  }
  copy[length] = '\0';
  char *end = NULL;
  *value = strtod(copy, &end);
  return end == copy + length && isfinite(*value);
}

#if NUMBER_HAS_WIDE
enum { DIVISOR_LIMIT = 19 }; /* maximum: 10^19 is below 2^64 */

/* Computes mantissa / 10^power, rounded to even in one step. mantissa is not 0; power is 1..DIVISOR_LIMIT. */
static double number_quotient(uint64_t mantissa, int power) {
  enum { SHIFT = 63 };
  uint64_t divisor = 1;
  for (int i = 0; i < power; i++) divisor *= 10;
  const int up = __builtin_clzll(mantissa), divisor_up = __builtin_clzll(divisor);
  const number_wide numerator = (number_wide)(mantissa << up) << SHIFT;
  divisor <<= divisor_up;
  /* the highest bits of both are set, so the quotient has 63 or 64 bits */
  const uint64_t quotient = (uint64_t)(numerator / divisor);
  const bool inexact = numerator % divisor != 0;
  const int drop = 64 - __builtin_clzll(quotient) - DOUBLE_BITS;
  uint64_t kept = quotient >> drop;
  const uint64_t rest = quotient & ((UINT64_C(1) << drop) - 1), half = UINT64_C(1) << (drop - 1);
  if (rest > half || (rest == half && (inexact || (kept & 1) != 0))) kept++;
  return ldexp((double)kept, drop - SHIFT - up + divisor_up);
}
#endif

bool number_to_double(const char *text, size_t size, double *value) {
  number_parts parts;
  if (!number_scan(text, size, &parts)) return false;
  if (parts.mantissa == 0 && parts.exact) {
    *value = parts.negative ? -0.0 : 0.0;
    return true;
  }
#if NUMBER_HAS_WIDE
  if (parts.exact && parts.mantissa >= (uint64_t)INTEGER_LIMIT && parts.exponent < 0 &&
      parts.exponent >= -DIVISOR_LIMIT) {
    const double quotient = number_quotient(parts.mantissa, (int)-parts.exponent);
    *value = parts.negative ? -quotient : quotient;
    return true;
  }
#endif
  double mantissa = (double)parts.mantissa;
  if (!parts.exact || mantissa >= INTEGER_LIMIT || parts.exponent < -POWER_LIMIT || parts.exponent > POWER_LIMIT)
    return number_by_strtod(text, size, value);
  double magnitude =
      parts.exponent < 0 ? mantissa / number_powers[-parts.exponent] : mantissa * number_powers[parts.exponent];
  *value = parts.negative ? -magnitude : magnitude;
  return true;
}

bool number_to_int(const char *text, size_t size, int64_t *value) {
  size_t at = size > 0 && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  if (at == size || size - at > 18) return false;
  int64_t magnitude = 0;
  for (size_t i = at; i < size; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
    magnitude = magnitude * 10 + (text[i] - '0');
  }
  *value = at == 1 && text[0] == '-' ? -magnitude : magnitude;
  return true;
}

/* ---- words, numbers and line ends */

enum { TEXT_PROBE_BYTES = 65536 };

static bool text_is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

text_cursor cursor_make(const feature_source *source) {
  text_cursor cursor = {.source = source, .line = 1};
  cursor.at = source->size > 0 ? (const char *)source->bytes : "";
  cursor.end = cursor.at + source->size;
  if (source->size >= 3 && memcmp(cursor.at, "\xef\xbb\xbf", 3) == 0) cursor.at += 3;
  return cursor;
}

hs_status cursor_fail(const text_cursor *cursor, const char *format, ...) {
  char reason[256];
  va_list arguments;
  va_start(arguments, format);
  if (vsnprintf(reason, sizeof reason, format, arguments) < 0) reason[0] = '\0';
  va_end(arguments);
  const feature_source *source = cursor->source;
  return hs_message_fail(HS_ERR_FORMAT, source->message, source->message_bytes, "%s:%zu: %s", source->path,
                         cursor->line, reason);
}

void cursor_skip_blanks(text_cursor *cursor, bool across_lines) {
  while (cursor->at < cursor->end && (text_is_blank(*cursor->at) || (across_lines && *cursor->at == '\n'))) {
    if (*cursor->at == '\n') cursor->line++;
    cursor->at++;
  }
}

bool cursor_at_end(text_cursor *cursor) {
  cursor_skip_blanks(cursor, true);
  return cursor->at == cursor->end;
}

bool cursor_word(text_cursor *cursor, bool across_lines, const char **word, size_t *size) {
  cursor_skip_blanks(cursor, across_lines);
  const char *start = cursor->at;
  while (cursor->at < cursor->end && !text_is_blank(*cursor->at) && *cursor->at != '\n') cursor->at++;
  *word = start;
  *size = (size_t)(cursor->at - start);
  return *size > 0;
}

bool cursor_field(text_cursor *cursor, const char **field, size_t *size) {
  cursor_skip_blanks(cursor, false);
  if (cursor->at == cursor->end || *cursor->at == '\n') return false;
  const char *start = cursor->at;
  while (cursor->at < cursor->end && *cursor->at != ',' && *cursor->at != '\n') cursor->at++;
  const char *stop = cursor->at;
  if (cursor->at < cursor->end && *cursor->at == ',') cursor->at++;
  while (stop > start && text_is_blank(stop[-1])) stop--;
  /* removes quotes as in RFC 4180, although no name or number needs them */
  if (stop - start >= 2 && *start == '"' && stop[-1] == '"') {
    start++;
    stop--;
  }
  *field = start;
  *size = (size_t)(stop - start);
  return true;
}

hs_status cursor_number_field(text_cursor *cursor, size_t index, double *value) {
  const char *field;
  size_t size;
  if (!cursor_field(cursor, &field, &size)) return cursor_fail(cursor, "the line has fewer fields than the header");
  if (number_to_double(field, size, value)) return HS_OK;
  return cursor_fail(cursor, "field %zu is not a finite number", index + 1);
}

uint64_t cursor_count_lines(text_cursor cursor) {
  uint64_t count = 0;
  while (!cursor_at_end(&cursor)) {
    count++;
    while (cursor.at < cursor.end && *cursor.at != '\n') cursor.at++;
  }
  return count;
}

void text_shown(const char *word, size_t size, char shown[TEXT_SHOWN_BYTES]) {
  size_t length = size < TEXT_SHOWN_BYTES - 1 ? size : TEXT_SHOWN_BYTES - 1;
  for (size_t i = 0; i < length; i++) shown[i] = word[i] >= ' ' && word[i] <= '~' ? word[i] : '?';
  shown[length] = '\0';
}

/* Fails with the unexpected word in the message. */
static hs_status cursor_fail_word(const text_cursor *cursor, const char *what, const char *kind, const char *word,
                                  size_t size) {
  char shown[TEXT_SHOWN_BYTES];
  text_shown(word, size, shown);
  return cursor_fail(cursor, "%s: expected %s, found \"%s\"", what, kind, shown);
}

hs_status cursor_double(text_cursor *cursor, bool across_lines, const char *what, double *value) {
  const char *word;
  size_t size;
  if (!cursor_word(cursor, across_lines, &word, &size)) return cursor_fail(cursor, "%s is missing", what);
  if (!number_to_double(word, size, value)) return cursor_fail_word(cursor, what, "a finite number", word, size);
  return HS_OK;
}

hs_status cursor_int(text_cursor *cursor, bool across_lines, const char *what, int64_t *value) {
  const char *word;
  size_t size;
  if (!cursor_word(cursor, across_lines, &word, &size)) return cursor_fail(cursor, "%s is missing", what);
  if (!number_to_int(word, size, value)) return cursor_fail_word(cursor, what, "an integer", word, size);
  return HS_OK;
}

hs_status cursor_descriptor_entry(text_cursor *cursor, bool across_lines, size_t entry, double *value) {
  const char *word;
  size_t size;
  char what[32];
  const bool present = cursor_word(cursor, across_lines, &word, &size);
  const bool is_number = present && number_to_double(word, size, value);
  if (is_number && *value >= 0.0 && *value <= 255.0) return HS_OK;
  (void)snprintf(what, sizeof what, "descriptor entry %zu", entry);
  if (!present) return cursor_fail(cursor, "%s is missing", what);
  return cursor_fail_word(cursor, what, is_number ? "a number of 0..255" : "a finite number", word, size);
}

hs_status cursor_descriptor(text_cursor *cursor, bool across_lines, uint8_t *descriptor) {
  for (size_t k = 0; k < HS_DESCRIPTOR_LENGTH; k++) {
    double value;
    const hs_status status = cursor_descriptor_entry(cursor, across_lines, k, &value);
    if (status != HS_OK) return status;
    if (value != floor(value)) return cursor_fail(cursor, "descriptor entry %zu is %g, no whole number", k, value);
    descriptor[k] = (uint8_t)value;
  }
  return HS_OK;
}

hs_status cursor_end_line(text_cursor *cursor) {
  cursor_skip_blanks(cursor, false);
  if (cursor->at == cursor->end) return HS_OK;
  if (*cursor->at != '\n') return cursor_fail(cursor, "more values in the line than expected");
  cursor->at++;
  cursor->line++;
  return HS_OK;
}

size_t text_count_words(const uint8_t *bytes, size_t size, size_t limit, size_t *rest) {
  feature_source source = {.bytes = bytes, .size = size < TEXT_PROBE_BYTES ? size : TEXT_PROBE_BYTES};
  text_cursor cursor = cursor_make(&source);
  const char *start = cursor.end - source.size;
  cursor_skip_blanks(&cursor, true);
  size_t count = 0;
  const char *word;
  size_t word_size;
  while (count < limit && cursor_word(&cursor, false, &word, &word_size)) count++;
  while (cursor.at < cursor.end && *cursor.at != '\n') cursor.at++;
  if (rest) *rest = (size_t)(cursor.at - start);
  return count;
}

bool text_begins_with_number(const uint8_t *bytes, size_t size) {
  feature_source source = {.bytes = bytes, .size = size < TEXT_PROBE_BYTES ? size : TEXT_PROBE_BYTES};
  text_cursor cursor = cursor_make(&source);
  const char *word;
  size_t word_size;
  double value;
  return cursor_word(&cursor, true, &word, &word_size) && number_to_double(word, word_size, &value);
}
