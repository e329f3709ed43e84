/*
 * EXIF segments for tests, well formed or malformed as their fields say.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_EXIF_MAKER_H
#define HARTSIFT_TESTS_SUPPORT_EXIF_MAKER_H

#include <stddef.h>
#include <stdint.h>

enum { EXIF_MAKER_BYTES = 1024, EXIF_MAKER_NUMBERS = 6 };
enum { FIELD_BYTE = 1, FIELD_ASCII = 2, FIELD_SHORT = 3, FIELD_LONG = 4, FIELD_RATIONAL = 5 };
/* The directories of a segment: the first one, and those to which its tags 0x8769 and 0x8825 point. */
typedef enum exif_directory_id { IN_FIRST, IN_EXIF, IN_GPS, EXIF_DIRECTORIES } exif_directory_id;

typedef struct exif_field {
  exif_directory_id directory;
  uint32_t tag, type, count;
  uint32_t numbers[EXIF_MAKER_NUMBERS]; /* a rational has two: numerator and denominator */
} exif_field;

/* Writes the payload of an APP1 segment with these fields. order: 'M' big-endian, 'I' little-endian. Returns its
 * size. */
size_t exif_maker_make(char order, const exif_field *fields, size_t count, uint8_t out[EXIF_MAKER_BYTES]);

#endif
