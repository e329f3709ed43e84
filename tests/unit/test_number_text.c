/*
 * Numbers as text: exact round trips, strict reading, no dependence on the locale.
 */
#include <locale.h>

#include "tests/support/test.h"

#include "pipeline/formats/common/text_cursor.h"

static float float_of_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint32_t bits_of_float(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* Our reader, and strtof in the C locale, must read the text as the same float. */
static void check_float(float value, bool also_strtof) {
  char text[NUMBER_TEXT_BYTES];
  double again = 0.0;
  size_t length = number_from_float(value, text);
  assert_int_equal(length, strlen(text));
  assert_true(length < NUMBER_TEXT_BYTES);
  assert_true(number_to_double(text, length, &again));
  assert_int_equal(bits_of_float((float)again), bits_of_float(value));
  if (also_strtof) assert_int_equal(bits_of_float(strtof(text, NULL)), bits_of_float(value));
}

static void check_many_floats(bool also_strtof) {
  uint32_t seed = 7;
  for (int i = 0; i < 200000; i++) {
    uint32_t bits = (feature_maker_random(&seed) << 12) ^ feature_maker_random(&seed);
    if (isfinite(float_of_bits(bits))) check_float(float_of_bits(bits), also_strtof);
    check_float((float)feature_maker_random(&seed) / 16384.0f, also_strtof);
  }
  const float special[] = {0.0f,           -0.0f,           1.0f,         -1.0f,         0.1f,       1e7f,
                           16777216.0f,    9999999.0f,      1e-4f,        9.9999997e-5f, 1e-45f,     1.17549435e-38f,
                           3.40282347e38f, -3.40282347e38f, 999999984.0f, 1e9f,          0.99999994f};
  for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) check_float(special[i], also_strtof);
}

TEST(test_floats_come_back_exactly) { check_many_floats(true); }

TEST(test_float_text_is_short) {
  const struct {
    float value;
    const char *text;
  } cases[] = {{0.1f, "0.1"},     {2.5f, "2.5"},           {3.0f, "3"},      {-0.0f, "-0"},
               {0.001f, "0.001"}, {123456.5f, "123456.5"}, {-7.25f, "-7.25"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char text[NUMBER_TEXT_BYTES];
    number_from_float(cases[i].value, text);
    assert_string_equal(text, cases[i].text);
  }
}

TEST(test_doubles_keep_twelve_digits) {
  uint32_t seed = 3;
  for (int i = 0; i < 100000; i++) {
    double value =
        ldexp((double)feature_maker_random(&seed) / 16777216.0 + 0.5, (int)(feature_maker_random(&seed) % 60) - 30);
    char text[NUMBER_TEXT_BYTES];
    double again = 0.0;
    assert_true(number_to_double(text, number_from_double(value, text), &again));
    assert_true(fabs(again - value) <= 5.1e-12 * value);
    assert_true(fabs(strtod(text, NULL) - again) <= 1e-15 * value);
  }
}

TEST(test_integers) {
  const int64_t values[] = {0, 1, -1, 255, -128, 1234567890123456LL, -99};
  for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
    char text[NUMBER_TEXT_BYTES];
    int64_t again = 0;
    assert_true(number_to_int(text, number_from_int(values[i], text), &again));
    assert_true(again == values[i]);
  }
}

TEST(test_reading_is_strict) {
  const char *const wrong[] = {"",    "-",   "+",   ".",  "1.2.3", "nan",   "inf",        "-inf", "0x10", "1e",
                               "1e+", "1,5", "1 2", "e5", "--1",   "1e999", "1e99999999", "1f",   " 1"};
  const char *const wrong_integers[] = {"", "-", "1.0", "1e3", "0x1", "1234567890123456789", "nan", "1 "};
  double value;
  int64_t integer;
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
    assert_false(number_to_double(wrong[i], strlen(wrong[i]), &value));
  for (size_t i = 0; i < sizeof wrong_integers / sizeof wrong_integers[0]; i++)
    assert_false(number_to_int(wrong_integers[i], strlen(wrong_integers[i]), &integer));
  char longest[NUMBER_TEXT_LONGEST + 2];
  memset(longest, '1', sizeof longest);
  assert_false(number_to_double(longest, NUMBER_TEXT_LONGEST + 1, &value));
  assert_true(number_to_double(longest, NUMBER_TEXT_LONGEST, &value));
  const char *const right[] = {
      "2.", ".5", "-3.25e-2", "+7", "1.0250000000000000e+01", "0.1000000000000000055511151231257827"};
  for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
    assert_true(number_to_double(right[i], strlen(right[i]), &value));
    assert_true(value == strtod(right[i], NULL));
  }
}

TEST(test_points_of_other_locales_are_replaced) {
  char comma[] = "-1,5e-07";
  char arabic[] = "12\xd9\xab"
                  "5";
  char plain[] = "1e+20";
  assert_int_equal(number_normalise_point(comma), 8);
  assert_string_equal(comma, "-1.5e-07");
  assert_int_equal(number_normalise_point(arabic), 4);
  assert_string_equal(arabic, "12.5");
  assert_int_equal(number_normalise_point(plain), 5);
  assert_string_equal(plain, "1e+20");
}

/* Runs the same checks with a comma as the process's decimal point, if the machine has such a locale. */
TEST(test_comma_locale) {
  const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8", "de_DE", "fr_FR"};
  const char *found = NULL;
  for (size_t i = 0; i < sizeof names / sizeof names[0] && !found; i++) found = setlocale(LC_ALL, names[i]);
  if (!found || localeconv()->decimal_point[0] != ',') skip_because("no locale with a decimal comma is installed");
  check_many_floats(false);
  double value = 0.0;
  const char *const slow = "0.1000000000000000055511151231257827";
  bool read = number_to_double(slow, strlen(slow), &value);
  assert_non_null(setlocale(LC_ALL, "C"));
  assert_true(read);
  assert_true(value == 0.1);
}

static double bits_as_double(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Written numbers are read back as the same double, by our reader and by strtod. 15 digits are written where they
 * suffice.
 */
TEST(test_doubles_exactly) {
  uint64_t seed = UINT64_C(88172645463325252);
  static const double known[] = {0.1,    1.0 / 3.0, 123456789.123,     1e300,
                                 5e-324, 1e-4,      999999999.9999999, 4503599627370497.5};
  char text[NUMBER_TEXT_BYTES];
  for (int i = 0; i < 30000; i++) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    double value = i < 8 ? known[i] : i % 2 == 0 ? bits_as_double(seed) : (double)(int64_t)seed * 1e-16, again;
    if (!isfinite(value)) continue;
    const size_t length = number_from_double_exactly(value, text);
    assert_int_equal(length, strlen(text));
    assert_true(strtod(text, NULL) == value);
    assert_true(number_to_double(text, length, &again));
    assert_memory_equal(&again, &value, sizeof value);
    snprintf(text, sizeof text, "%.17g", value);
    assert_true(number_to_double(text, strlen(text), &again) && again == value);
  }
  number_from_double_exactly(0.1, text);
  assert_string_equal(text, "0.1");
}
