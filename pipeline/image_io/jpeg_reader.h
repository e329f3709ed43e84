/*
 * A JPEG on its way through libjpeg: what the reader of whole pictures (read_jpeg.c) and that of rows (jpeg_rows.c) share.
 * libjpeg carries on with gray areas where data is missing; here such a file is an error.
 */
#ifndef HARTSIFT_IMAGE_IO_JPEG_READER_H
#define HARTSIFT_IMAGE_IO_JPEG_READER_H

#include "pipeline/image_io/byte_source.h"

#if HARTSIFT_HAVE_JPEG

#  include <setjmp.h>
/* jpeglib.h needs stdio.h and stddef.h before it. */
#  include <jpeglib.h>

/* Everything that must outlive a longjmp; lives in the caller of the function that has the setjmp. */
typedef struct jpeg_reader {
  struct jpeg_decompress_struct jpeg;
  struct jpeg_error_mgr errors;
  struct jpeg_source_mgr source;
  struct jpeg_progress_mgr progress;
  jmp_buf jump;
  const image_request *request;
  byte_source bytes;
  bool ran_out;    /* libjpeg asked for bytes after the end of the file */
  bool has_pixels; /* all rows are decoded: what is wrong with the rest of the file is only noted */
  exif_tags tags;
  int orientation; /* to be applied */
  bool inverted;   /* CMYK as Adobe stores it: 255 is no ink */
  uint8_t *row, *converted;
  hs_status status;
} jpeg_reader;

/* Makes a decoder of these bytes. */
void jpeg_reader_begin(jpeg_reader *decoder, const image_request *request, const byte_source *bytes);

/* Frees what it holds. */
void jpeg_reader_end(jpeg_reader *decoder);

/* Whether a row, as libjpeg gives it, is as it is wanted: one channel of gray, or RGB. */
bool jpeg_reader_row_is_plain(const jpeg_reader *decoder, hs_pixel_layout layout);

/* Bytes that decoding holds beside the picture, once the header is read. */
uint64_t jpeg_reader_working_bytes(jpeg_reader *decoder);

/* Gives the caller the tags, for a picture of this size; nothing where the file has no segment of them. */
void jpeg_reader_give_tags(const jpeg_reader *decoder, int32_t width, int32_t height);

/* ---- inside the setjmp of jump, which they leave by when something is wrong: status is then set, the message written */

/* Ends the decoding with a status whose message is already written. */
void jpeg_reader_stop(jpeg_reader *decoder, hs_status status);

/* Reads the header, checks it, and chooses what the picture is decoded to. */
void jpeg_reader_read_header(jpeg_reader *decoder);

/* Makes room for the row, and for what it is converted to. */
void jpeg_reader_make_rows(jpeg_reader *decoder);

/* The next row, in converted. */
void jpeg_reader_read_row(jpeg_reader *decoder, hs_pixel_layout layout);

/* After the last row: whether anything was missing. */
void jpeg_reader_check_complete(jpeg_reader *decoder);

/* ---- outside again, where that was so */

/* Reads what follows the pixels up to the end marker, and notes damage there: surplus data show that codes were wrong. */
void jpeg_reader_finish(jpeg_reader *decoder);

#endif
#endif
