/* The blocking calls from a file to its features. */
#include "cpu/schedule/float_environment.h"
#include "pipeline/context/context.h"
#include "pipeline/encoded/file_rows.h"
#include "pipeline/frame/extract_rows.h"

/* Where the picture would be worked off in tiles it is not held either, if its file can be read row by row. False: it is to
   be held. */
static bool extract_in_rows(hs_context *c, const file_source *source, const hs_image *mask, hs_features *features,
                            hs_status *st) {
  file_rows rows;
  if (!extract_rows_may(c) || !file_rows_open(source, &rows)) return false;
  const bool done = extract_rows(c, &rows.image, &rows.feed, mask, features, st);
  file_rows_close(&rows);
  return done;
}

/* *again: the file is to be read anew, without keep_encoded. */
static hs_status extract_once(hs_context *c, const file_source *source, const hs_image *mask, hs_features *features,
                              bool *again) {
  char reason[FILE_SOURCE_REASON_BYTES];
  file_picture picture;
  hs_status st = HS_OK;
  *again = false;
  if (extract_in_rows(c, source, mask, features, &st)) return st;
  st = file_source_read(source, mask, &picture, reason, sizeof reason);
  if (st != HS_OK) return CONTEXT_FAIL(c, st, "%s", reason);
  st = hs_extract(c, &picture.image, mask ? &picture.mask : NULL, features);
  if (st == HS_OK) file_picture_place(&picture, features);
  *again = file_source_again(&picture.image, st);
  file_picture_free(&picture);
  return st;
}

static hs_status extract_source(hs_context *c, file_source *source, const hs_image *mask, hs_features *features) {
  bool again;
  const hs_status st = extract_once(c, source, mask, features, &again);
  source->keep_encoded = false;
  return again ? extract_once(c, source, mask, features, &again) : st;
}

hs_status hs_extract_file(hs_context *c, const char *path, const hs_load_options *load, const hs_image *mask,
                          hs_features *features) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!c) return HS_ERR_ARGUMENT;
  context_clear_error(c);
  if (!path || path[0] == '\0' || !features)
    return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "path is null or empty, or features is null");
  file_source source;
  const hs_status st = file_source_take(c, path, NULL, 0, load, &source);
  return st == HS_OK ? extract_source(c, &source, mask, features) : st;
}

hs_status hs_extract_encoded(hs_context *c, const void *bytes, size_t size, const hs_load_options *load,
                             const hs_image *mask, hs_features *features) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  if (!c) return HS_ERR_ARGUMENT;
  context_clear_error(c);
  if (!bytes || !features) return CONTEXT_FAIL(c, HS_ERR_ARGUMENT, "bytes or features is null");
  file_source source;
  const hs_status st = file_source_take(c, NULL, bytes, size, load, &source);
  return st == HS_OK ? extract_source(c, &source, mask, features) : st;
}
