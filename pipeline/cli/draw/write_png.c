/*
 * Writer of 8-bit gray and RGB PNG, on libpng.
 */
#include "pipeline/cli/draw/save_picture.h"

#if HARTSIFT_HAVE_PNG

#  include <png.h>
#  include <setjmp.h>

/* What must outlive a longjmp. */
typedef struct write_png_state {
  FILE *stream;
  const hs_image *image;
  png_structp png;
  png_infop info;
  char *reason;
  bool failed;
} write_png_state;

static void write_png_on_error(png_structp png, png_const_charp text) {
  write_png_state *encoder = png_get_error_ptr(png);
  encoder->failed = true;
  hs_message_set(encoder->reason, IMAGE_REASON_BYTES, "%s", text);
  png_longjmp(png, 1);
}

static void write_png_on_warning(png_structp png, png_const_charp text) {
  (void)png;
  (void)text;
}

/* The only function with a setjmp: it has no variables that a longjmp could leave undefined. */
static void write_png_encode_guarded(write_png_state *encoder) {
  if (setjmp(png_jmpbuf(encoder->png)) != 0) return;
  png_init_io(encoder->png, encoder->stream);
  /* Our own sides end at 2^31; libpng's default limit is a million. */
  png_set_user_limits(encoder->png, INT32_MAX, INT32_MAX);
  png_set_IHDR(encoder->png, encoder->info, (png_uint_32)encoder->image->width, (png_uint_32)encoder->image->height, 8,
               encoder->image->layout == HS_RGB ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(encoder->png, encoder->info);
  for (int32_t y = 0; y < encoder->image->height; y++)
    png_write_row(encoder->png, (png_const_bytep)encoder->image->data + (size_t)y * encoder->image->stride_bytes);
  png_write_end(encoder->png, NULL);
}

hs_status image_write_png(FILE *stream, const hs_image *image, char reason[IMAGE_REASON_BYTES]) {
  reason[0] = '\0';
  write_png_state encoder = {.stream = stream, .image = image, .reason = reason};
  encoder.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &encoder, write_png_on_error, write_png_on_warning);
  if (encoder.png) encoder.info = png_create_info_struct(encoder.png);
  if (!encoder.info) {
    png_destroy_write_struct(&encoder.png, NULL);
    hs_message_set(reason, IMAGE_REASON_BYTES, "no memory for the PNG encoder");
    return HS_ERR_MEMORY;
  }
  write_png_encode_guarded(&encoder);
  png_destroy_write_struct(&encoder.png, &encoder.info);
  if (ferror(stream)) {
    reason[0] = '\0';
    return HS_ERR_IO;
  }
  return encoder.failed ? HS_ERR_UNSUPPORTED : HS_OK;
}

#else

hs_status image_write_png(FILE *stream, const hs_image *image, char reason[IMAGE_REASON_BYTES]) {
  (void)stream;
  (void)image;
  hs_message_set(reason, IMAGE_REASON_BYTES, "built without PNG support; .pgm and .ppm are always written");
  return HS_ERR_UNSUPPORTED;
}

#endif
