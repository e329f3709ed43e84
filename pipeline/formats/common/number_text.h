/*
 * Numbers as text and back, independent of the locale's decimal point.
 */
#ifndef HARTSIFT_FORMATS_COMMON_NUMBER_TEXT_H
#define HARTSIFT_FORMATS_COMMON_NUMBER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room that every writer here needs, and the longest number that is read, characters. */
enum { NUMBER_TEXT_BYTES = 32, NUMBER_TEXT_LONGEST = 100 };

/* Each writes a finite number and returns its length; the text is zero-terminated. */
/* As few digits (6 to 9) as give back the same float. */
size_t number_from_float(float value, char text[NUMBER_TEXT_BYTES]);
/* 12 significant digits, zeros at the end dropped: enough for a float that was shifted or converted in
   double precision to come back as the same float. */
size_t number_from_double(double value, char text[NUMBER_TEXT_BYTES]);
size_t number_from_int(int64_t value, char text[NUMBER_TEXT_BYTES]);

/* A whole text of `size` characters: sign, digits, point, exponent; correctly rounded. False for
   anything else: words such as nan, empty text, more than NUMBER_TEXT_LONGEST characters, or a value
   beyond the range of double. Digits may be missing on one side of the point ("2." and ".5"). */
bool number_to_double(const char *text, size_t size, double *value);
/* A decimal integer with optional sign. */
bool number_to_int(const char *text, size_t size, int64_t *value);

/* What the C library's printf puts between integer and fraction (never empty) is replaced by '.';
   for the fallback paths, and separate so that it can be tested without such a locale. */
size_t number_normalise_point(char *text);

#endif
