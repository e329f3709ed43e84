/*
 * EXIF segments for tests; see exif_maker.h.
 */
#include "tests/support/exif_maker.h"

#include <stdbool.h>
#include <string.h>

enum { SIGNATURE_BYTES = 6, HEADER_BYTES = 8, ENTRY_BYTES = 12 };

typedef struct writer {
  uint8_t *tiff;
  bool big;
  size_t entry, data; /* offsets for the next entry and for the next values outside entries */
} writer;

static void put(const writer *w, size_t at, uint32_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) w->tiff[at + i] = (uint8_t)(value >> (8 * (w->big ? bytes - 1 - i : i)));
}

static void put_entry(writer *w, const exif_field *field) {
  static const uint8_t widths[] = {0, 1, 1, 2, 4, 4};
  const size_t width = field->type < sizeof widths ? widths[field->type] : 4;
  const size_t numbers = field->count * (size_t)(field->type == FIELD_RATIONAL ? 2 : 1);
  const bool outside = numbers * width > 4;
  put(w, w->entry, field->tag, 2);
  put(w, w->entry + 2, field->type, 2);
  put(w, w->entry + 4, field->count, 4);
  if (outside) put(w, w->entry + 8, (uint32_t)w->data, 4);
  for (size_t i = 0; i < numbers && i < EXIF_MAKER_NUMBERS; i++)
    put(w, (outside ? w->data : w->entry + 8) + i * width, field->numbers[i], width);
  if (outside) w->data += numbers * width;
  w->entry += ENTRY_BYTES;
}

size_t exif_maker_make(char order, const exif_field *fields, size_t count, uint8_t out[EXIF_MAKER_BYTES]) {
  writer w = {.tiff = out + SIGNATURE_BYTES, .big = order == 'M'};
  size_t entries[EXIF_DIRECTORIES] = {0}, at[EXIF_DIRECTORIES];
  memset(out, 0, EXIF_MAKER_BYTES);
  memcpy(out, "Exif", 4);
  memcpy(w.tiff, w.big ? "MM\0*" : "II*\0", 4);
  put(&w, 4, HEADER_BYTES, 4);
  for (size_t i = 0; i < count; i++) entries[fields[i].directory]++;
  const bool has_exif = entries[IN_EXIF] > 0, has_gps = entries[IN_GPS] > 0;
  entries[IN_FIRST] += (size_t)has_exif + (size_t)has_gps;
  w.data = HEADER_BYTES;
  for (int d = 0; d < EXIF_DIRECTORIES; d++) {
    at[d] = w.data;
    if (d == IN_FIRST || entries[d] > 0) w.data += 2 + ENTRY_BYTES * entries[d] + 4;
  }
  for (int d = 0; d < EXIF_DIRECTORIES; d++) {
    if (d > IN_FIRST && entries[d] == 0) continue;
    put(&w, at[d], (uint32_t)entries[d], 2);
    w.entry = at[d] + 2;
    for (size_t i = 0; i < count; i++)
      if ((int)fields[i].directory == d) put_entry(&w, &fields[i]);
    if (d == IN_FIRST && has_exif)
      put_entry(&w, &(exif_field){IN_FIRST, 0x8769, FIELD_LONG, 1, {(uint32_t)at[IN_EXIF]}});
    if (d == IN_FIRST && has_gps) put_entry(&w, &(exif_field){IN_FIRST, 0x8825, FIELD_LONG, 1, {(uint32_t)at[IN_GPS]}});
  }
  return SIGNATURE_BYTES + w.data;
}
