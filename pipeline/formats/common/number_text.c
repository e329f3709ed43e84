/*
 * Number text. The usual case runs in exact or correctly rounded double arithmetic; the rest goes
 * through the C library with its decimal point exchanged.
 */
#include "pipeline/formats/common/number_text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Largest power of ten, and largest integer range, that a double holds exactly. */
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

/* Digits of `value` with the point `decimals` places from the right; zeros after the point are dropped. */
static size_t number_put_fixed(bool negative, uint64_t value, int decimals, char *text) {
  while (decimals > 0 && value % 10 == 0) {
    value /= 10;
    decimals--;
  }
  char reversed[NUMBER_TEXT_BYTES];
  size_t count = 0;
  int place = 0;
  while (value != 0 || place <= decimals) {
    if (place == decimals && decimals > 0) reversed[count++] = '.';
    reversed[count++] = (char)('0' + (int)(value % 10));
    value /= 10;
    place++;
  }
  size_t length = 0;
  if (negative) text[length++] = '-';
  while (count > 0) text[length++] = reversed[--count];
  text[length] = '\0';
  return length;
}

/* How many decimals give `significant` digits of a magnitude in [1e-4, 1e9). */
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

/* A double half-way between floats: readers that round once and readers that round twice may differ. */
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

size_t number_from_int(int64_t value, char text[NUMBER_TEXT_BYTES]) {
  uint64_t magnitude = value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value;
  return number_put_fixed(value < 0, magnitude, 0, text);
}

/* What a scan of a number's text found. */
typedef struct number_parts {
  bool negative;
  bool exact; /* mantissa holds every digit */
  uint64_t mantissa;
  int64_t exponent; /* of ten, for the mantissa */
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

/* strtod on a copy that carries the decimal point of the current locale, found by printing one. */
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

bool number_to_double(const char *text, size_t size, double *value) {
  number_parts parts;
  if (!number_scan(text, size, &parts)) return false;
  if (parts.mantissa == 0 && parts.exact) {
    *value = parts.negative ? -0.0 : 0.0;
    return true;
  }
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
