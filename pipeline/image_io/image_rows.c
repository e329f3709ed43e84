/* Pictures read row by row; see image_io.h. */
#include "pipeline/image_io/image_io.h"

#include <string.h>

#include "pipeline/base/memory.h"

/* Opens the bytes of a source that can be read again: a regular file, or bytes in memory. Standard input, scenes and
   pipes are not opened: a pipe's writer would notice that it is opened and closed. */
static hs_status rows_open_bytes(image_rows *r, const char *path) {
  size_t size = 0;
  if (!path) {
    r->bytes = byte_source_of(&r->request);
    return HS_OK;
  }
  if (!image_is_regular_file(path)) return HS_OK;
  const hs_status status = image_open_file(&r->request, &r->stream, &size);
  if (status != HS_OK || size == 0) return status;
  r->request.size = size;
  r->buffer = hs_memory_alloc(r->request.allocator, BYTE_SOURCE_READ);
  if (!r->buffer) return HS_ERR_MEMORY;
  r->bytes = (byte_source){.stream = r->stream, .buffer = r->buffer};
  return HS_OK;
}

/* Returns the row reader for this kind of file; null: this kind is decoded as a whole. */
static const image_rows_kind *rows_kind_of(image_rows *r) {
  if (r->bytes.left == 0 && !byte_source_fill(&r->bytes)) return NULL;
  if (image_is_png(r->bytes.next, r->bytes.left)) return image_rows_of_png();
  return image_is_jpeg(r->bytes.next, r->bytes.left) ? image_rows_of_jpeg() : NULL;
}

static bool rows_are_wanted(const image_rows *r) {
  const image_request *q = &r->request;
  const bool shrinks = q->max_image_size > 0 && (r->width > q->max_image_size || r->height > q->max_image_size);
  return !r->whole && !shrinks;
}

/* Chooses the sample type of rows: floats if a value range is given. */
static hs_status rows_choose_type(image_rows *r) {
  const size_t bytes = (size_t)r->width * image_sample_bytes(r->type);
  r->stored = r->type;
  r->extremes = (sample_extremes){1.0, 0.0};
  if (!image_has_range(&r->request)) return HS_OK;
  r->type = HS_F32;
  r->working_bytes += bytes;
  if (!r->samples) r->samples = hs_memory_alloc(r->request.allocator, bytes);
  return r->samples ? HS_OK : image_fail(&r->request, HS_ERR_MEMORY, "out of memory for a row of %zu bytes", bytes);
}

static hs_status rows_begin(image_rows *r) {
  if (!rows_are_wanted(r)) return HS_ERR_UNSUPPORTED;
  const hs_status status = rows_choose_type(r);
  const uint64_t held = r->working_bytes + (r->request.bytes ? r->request.size : BYTE_SOURCE_READ);
  return status == HS_OK ? image_check_memory(&r->request, held, "decoding a row") : status;
}

hs_status image_rows_open(image_rows *r, const char *path, const void *bytes, size_t size,
                          const hs_load_options *load) {
  memset(r, 0, sizeof *r);
  hs_status status = image_request_make(load, path ? path : "the image in memory", &r->found, &r->request);
  r->request.bytes = path ? NULL : bytes;
  r->request.size = path ? 0 : size;
  if (status == HS_OK && path && !r->request.only_files && image_is_no_file(path)) return HS_OK;
  if (status == HS_OK) status = rows_open_bytes(r, path);
  r->kind = status == HS_OK ? rows_kind_of(r) : NULL;
  if (r->request.jpeg_scale > 1 && r->kind != image_rows_of_jpeg()) r->kind = NULL;
  if (r->kind) status = r->kind->begin(r);
  if (r->kind && status == HS_OK) status = rows_begin(r);
  if (status == HS_OK && r->kind) return HS_OK;
  image_rows_close(r);
  return status;
}

/* Returns the status. Clears the caller's EXIF after a failure. */
static hs_status rows_end_with(const image_rows *r, hs_status status) {
  if (status != HS_OK && r->request.exif) memset(r->request.exif, 0, sizeof *r->request.exif);
  if (status != HS_OK) (void)image_give_notes(&r->request, status);
  return status;
}

/* Makes the final checks, which need the complete file. */
static hs_status rows_conclude(image_rows *r) {
  hs_status status = image_check_damage(&r->request);
  if (status == HS_OK) status = range_check(&r->request, &r->extremes, r->stored);
  return image_give_notes(&r->request, status);
}

hs_status image_rows_read(image_rows *r, uint8_t *row) {
  uint8_t *stored = r->samples ? r->samples : row;
  hs_status status = r->kind->read(r, stored);
  if (status == HS_OK) {
    extremes_add(&r->extremes, stored, (size_t)r->width, r->stored);
    if (r->samples) range_widen(stored, (size_t)r->width, r->stored, (float *)(void *)row);
    r->next++;
  }
  if (status == HS_OK && r->next == r->height) status = rows_conclude(r);
  return rows_end_with(r, status);
}

hs_status image_rows_rewind(image_rows *r) {
  if (r->next == 0) return HS_OK;
  r->kind->end(r);
  r->next = 0;
  r->bytes = byte_source_of(&r->request);
  if (r->stream) {
    rewind(r->stream);
    r->bytes = (byte_source){.stream = r->stream, .buffer = r->buffer};
  }
  const int32_t width = r->width, height = r->height;
  const hs_sample_type stored = r->stored;
  r->found = (image_findings){.notes = {.damages = 0}};
  hs_status status = r->kind->begin(r);
  const bool same = r->width == width && r->height == height && r->type == stored && !r->whole;
  if (status == HS_OK && same) status = rows_choose_type(r);
  if (status != HS_OK || same) return rows_end_with(r, status);
  return rows_end_with(r, image_fail(&r->request, HS_ERR_IO, "the file was changed while it was read"));
}

void image_rows_close(image_rows *r) {
  if (r->kind) r->kind->end(r);
  if (r->stream) fclose(r->stream);
  hs_memory_release(r->request.allocator, r->buffer);
  hs_memory_release(r->request.allocator, r->samples);
  memset(r, 0, sizeof *r);
}
