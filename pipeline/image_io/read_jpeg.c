/*
 * Reader of JPEG, on libjpeg: luma as stored or RGB, at full size or 1/2, 1/4, 1/8 of it, the EXIF
 * orientation applied while rows arrive.
 */
#include "pipeline/image_io/jpeg_reader.h"

#if HARTSIFT_HAVE_JPEG

enum { READ_JPEG_ROWS_AT_ONCE = 8 };

/* A picture being decoded: what the function with the setjmp changes and its caller reads. */
typedef struct read_jpeg_state {
  jpeg_reader decoder;
  exif_placement placement;
  hs_image image;
} read_jpeg_state;

static void read_jpeg_allocate(read_jpeg_state *state) {
  jpeg_reader *decoder = &state->decoder;
  const struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
  const bool colour = decoder->request->keep_colour && jpeg->out_color_space != JCS_GRAYSCALE;
  state->placement = exif_place(decoder->orientation, (int32_t)jpeg->output_width, (int32_t)jpeg->output_height);
  jpeg_reader_stop(decoder,
                   image_allocate(decoder->request, state->placement.width, state->placement.height, HS_U8,
                                  colour ? HS_RGB : HS_GRAY, jpeg_reader_working_bytes(decoder), &state->image));
  jpeg_reader_make_rows(decoder);
}

/* Rows that need neither conversion nor turning: libjpeg writes them where they belong. */
static void read_jpeg_read_rows(read_jpeg_state *state) {
  struct jpeg_decompress_struct *jpeg = &state->decoder.jpeg;
  uint8_t *picture = (uint8_t *)(uintptr_t)state->image.data;
  while (jpeg->output_scanline < jpeg->output_height) {
    JSAMPROW rows[READ_JPEG_ROWS_AT_ONCE];
    const JDIMENSION left = jpeg->output_height - jpeg->output_scanline;
    const JDIMENSION count = left < READ_JPEG_ROWS_AT_ONCE ? left : READ_JPEG_ROWS_AT_ONCE;
    for (JDIMENSION i = 0; i < count; i++)
      rows[i] = picture + (size_t)(jpeg->output_scanline + i) * state->image.stride_bytes;
    jpeg_read_scanlines(jpeg, rows, count);
  }
}

static void read_jpeg_read_pixels(read_jpeg_state *state) {
  jpeg_reader *decoder = &state->decoder;
  struct jpeg_decompress_struct *jpeg = &decoder->jpeg;
  const hs_pixel_layout layout = state->image.layout;
  uint8_t *picture = (uint8_t *)(uintptr_t)state->image.data;
  jpeg_start_decompress(jpeg);
  if (decoder->orientation <= 1 && jpeg_reader_row_is_plain(decoder, layout)) {
    read_jpeg_read_rows(state);
    return;
  }
  for (int32_t y = 0; y < (int32_t)jpeg->output_height; y++) {
    jpeg_reader_read_row(decoder, layout);
    exif_put_row(&state->placement, y, decoder->converted, jpeg->output_width, image_channels(layout), picture);
  }
}

/* The only function with a setjmp: it has no variables that a longjmp could leave undefined. */
static void read_jpeg_decode_guarded(read_jpeg_state *state) {
  if (setjmp(state->decoder.jump) != 0) return;
  jpeg_reader_read_header(&state->decoder);
  read_jpeg_allocate(state);
  read_jpeg_read_pixels(state);
  jpeg_reader_check_complete(&state->decoder);
}

hs_status image_read_jpeg(const image_request *request, hs_image *image) {
  read_jpeg_state state = {.image = {.data = NULL}};
  const byte_source bytes = byte_source_of(request);
  jpeg_reader *decoder = &state.decoder;
  jpeg_reader_begin(decoder, request, &bytes);
  read_jpeg_decode_guarded(&state);
  if (decoder->status == HS_OK) jpeg_reader_finish(decoder);
  jpeg_reader_end(decoder);
  if (decoder->status != HS_OK) {
    hs_image_free(&state.image);
    return decoder->status;
  }
  jpeg_reader_give_tags(decoder, state.image.width, state.image.height);
  *image = state.image;
  image->exif_orientation = decoder->orientation > 1 ? decoder->orientation : 0;
  return HS_OK;
}

#else

hs_status image_read_jpeg(const image_request *request, hs_image *image) {
  (void)image;
  return image_fail(request, HS_ERR_UNSUPPORTED, "built without JPEG support");
}

#endif
