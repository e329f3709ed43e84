/* The formats of feature files, and the choice among them by number, name, ending and content. */
#include <stdio.h>
#include <string.h>

#include "pipeline/base/path_text.h"
#include "pipeline/formats/formats.h"

#define FORMAT_ADDRESS(ID, word) [HS_FORMAT_##ID - 1] = &format_##word,
static const feature_format *const format_table[FORMAT_COUNT] = {FEATURE_FORMATS(FORMAT_ADDRESS)};

const feature_format *format_at(size_t index) { return index < FORMAT_COUNT ? format_table[index] : NULL; }

const feature_format *format_by_id(hs_format id) {
  switch (id) { /* the compiler warns of an enumerator that FEATURE_FORMATS lacks */
#define FORMAT_CASE(ID, word)                                                                                          \
  case HS_FORMAT_##ID:                                                                                                 \
    return &format_##word;
    FEATURE_FORMATS(FORMAT_CASE)
  case HS_FORMAT_AUTO:
    return NULL;
  }
  return NULL;
}

const feature_format *format_by_name(const char *name) {
  for (size_t i = 0; name && format_at(i) != NULL; i++)
    if (strcmp(format_at(i)->name, name) == 0) return format_at(i);
  return NULL;
}

/* The longest ending counts: a.haraff.sift is Oxford's, a.sift VLFeat's. suffix: what follows every ending. */
static const feature_format *by_ending(const char *path, const char *suffix) {
  const feature_format *found = NULL;
  size_t longest = 0;
  for (size_t i = 0; path && format_at(i) != NULL; i++) {
    const feature_format *format = format_at(i);
    for (size_t k = 0; k < FORMAT_ENDINGS && format->endings[k] != NULL; k++) {
      char ending[FORMAT_ENDING_BYTES];
      const size_t length = strlen(format->endings[k]);
      (void)snprintf(ending, sizeof ending, "%s%s", format->endings[k], suffix);
      if (length <= longest || !path_ends_with(path, ending)) continue;
      longest = length;
      found = format;
    }
  }
  return found;
}

const feature_format *format_by_ending(const char *path) { return by_ending(path, ""); }

bool format_is_compressed_name(const char *path) { return path && path_ends_with(path, GZIP_ENDING); }

const feature_format *format_read_by_ending(const char *path) {
  return by_ending(path, format_is_compressed_name(path) ? GZIP_ENDING : "");
}

const feature_format *format_by_content(const uint8_t *bytes, size_t size, const feature_format *first) {
  if (first && first->probe(bytes, size)) return first;
  for (size_t i = 0; size > 0 && format_at(i) != NULL; i++)
    if (format_at(i)->probe(bytes, size)) return format_at(i);
  return NULL;
}

const feature_format *format_of_content(const char *path, const uint8_t *bytes, size_t size) {
  const feature_format *named = format_read_by_ending(path);
  const feature_format *format = format_by_content(bytes, size, named);
  /* Damaged at its very beginning: the reader that the name asks for says how. */
  return format ? format : named;
}

const feature_format *format_of_file(const char *path) {
  uint8_t bytes[SOURCE_BEGINNING_BYTES];
  return format_of_content(path, bytes, source_read_beginning(path, bytes));
}

const char *hs_format_name(hs_format format) {
  const feature_format *known = format_by_id(format);
  return known ? known->name : NULL;
}

int32_t hs_format_ignores_exif(hs_format format) {
  const feature_format *known = format_by_id(format);
  return known != NULL && known->as_stored;
}

hs_format hs_format_of_name(const char *path) {
  const feature_format *format = format_by_ending(path);
  return format ? format->id : HS_FORMAT_AUTO;
}
