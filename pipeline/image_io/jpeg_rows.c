/* The rows of a JPEG; see image_rows.h. */
#include "pipeline/image_io/image_rows.h"
#include "pipeline/image_io/jpeg_reader.h"

#if HARTSIFT_HAVE_JPEG

#  include <string.h>

#  include "pipeline/base/memory.h"

/* Each of the two functions with a setjmp has no variables that a longjmp could leave undefined. */

static void rows_begin_guarded(image_rows *rows, jpeg_reader *decoder) {
  if (setjmp(decoder->jump) != 0) return;
  jpeg_reader_read_header(decoder);
  rows->width = (int32_t)decoder->jpeg.output_width;
  rows->height = (int32_t)decoder->jpeg.output_height;
  rows->type = HS_U8;
  rows->working_bytes = jpeg_reader_working_bytes(decoder);
  rows->whole = decoder->orientation > 1 || jpeg_has_multiple_scans(&decoder->jpeg);
  if (rows->whole) return;
  jpeg_reader_make_rows(decoder);
  jpeg_start_decompress(&decoder->jpeg);
}

static hs_status jpeg_rows_begin(image_rows *rows) {
  jpeg_reader *decoder = hs_memory_alloc(rows->request.allocator, sizeof *decoder);
  if (!decoder) return image_fail(&rows->request, HS_ERR_MEMORY, "no memory for the JPEG decoder");
  rows->decoder = decoder;
  jpeg_reader_begin(decoder, &rows->request, &rows->bytes);
  rows_begin_guarded(rows, decoder);
  if (decoder->status == HS_OK) jpeg_reader_give_tags(decoder, rows->width, rows->height);
  return decoder->status;
}

static void rows_read_guarded(const image_rows *rows, jpeg_reader *decoder, uint8_t *row) {
  if (setjmp(decoder->jump) != 0) return;
  if (jpeg_reader_row_is_plain(decoder, HS_GRAY)) {
    jpeg_read_scanlines(&decoder->jpeg, &row, 1);
  } else {
    jpeg_reader_read_row(decoder, HS_GRAY);
    memcpy(row, decoder->converted, (size_t)rows->width);
  }
  if (decoder->jpeg.output_scanline == decoder->jpeg.output_height) jpeg_reader_check_complete(decoder);
}

static hs_status jpeg_rows_read(image_rows *rows, uint8_t *row) {
  jpeg_reader *decoder = rows->decoder;
  rows_read_guarded(rows, decoder, row);
  if (decoder->status == HS_OK && decoder->jpeg.output_scanline == decoder->jpeg.output_height)
    jpeg_reader_finish(decoder);
  return decoder->status;
}

static void jpeg_rows_end(image_rows *rows) {
  if (rows->decoder) jpeg_reader_end(rows->decoder);
  hs_memory_release(rows->request.allocator, rows->decoder);
  rows->decoder = NULL;
}

const image_rows_kind *image_rows_of_jpeg(void) {
  static const image_rows_kind kind = {jpeg_rows_begin, jpeg_rows_read, jpeg_rows_end};
  return &kind;
}

#else

const image_rows_kind *image_rows_of_jpeg(void) { return NULL; }

#endif
