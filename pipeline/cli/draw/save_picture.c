/* Writes a picture atomically, in the format of its name's ending. */
#include "pipeline/cli/draw/drawing.h"

#include <errno.h>
#include <string.h>

#include "pipeline/base/atomic_file.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"

typedef enum save_format { SAVE_UNKNOWN, SAVE_PNG, SAVE_JPEG, SAVE_PGM, SAVE_PPM, SAVE_PNM } save_format;

static save_format save_format_of(const char *path) {
  static const struct {
    const char *ending;
    save_format format;
  } table[] = {{".png", SAVE_PNG}, {".jpg", SAVE_JPEG}, {".jpeg", SAVE_JPEG},
               {".pgm", SAVE_PGM}, {".ppm", SAVE_PPM},  {".pnm", SAVE_PNM}};
  if (strcmp(path, "-") == 0) return HARTSIFT_HAVE_PNG ? SAVE_PNG : SAVE_PNM;
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
    if (path_ends_with(path, table[i].ending)) return table[i].format;
  return SAVE_UNKNOWN;
}

/* Makes a view with the stride set. HS_ERR_IMAGE if the image cannot be written. */
static hs_status save_check_image(const hs_image *image, hs_image *view) {
  size_t row_bytes = 0;
  if (!image->data || image->width < 1 || image->height < 1 || image->type != HS_U8 ||
      (image->layout != HS_GRAY && image->layout != HS_RGB) ||
      !hs_size_mul((size_t)image->width, image_channels(image->layout), &row_bytes) ||
      (image->stride_bytes != 0 && image->stride_bytes < row_bytes))
    return HS_ERR_IMAGE;
  *view = *image;
  view->stride_bytes = image->stride_bytes != 0 ? image->stride_bytes : row_bytes;
  return HS_OK;
}

static hs_status save_encode(save_format format, FILE *stream, const hs_image *image, char reason[IMAGE_REASON_BYTES]) {
  reason[0] = '\0';
  switch (format) {
  case SAVE_PNG:
    return image_write_png(stream, image, reason);
  case SAVE_JPEG:
    return image_write_jpeg(stream, image, reason);
  case SAVE_PGM:
  case SAVE_PPM:
  case SAVE_PNM:
    return image_write_pnm(stream, image, format == SAVE_PPM || image->layout == HS_RGB);
  case SAVE_UNKNOWN:
    break;
  }
  return HS_ERR_INTERNAL;
}

hs_status image_save(const char *path, const hs_image *image, char *message, size_t message_bytes) {
  hs_message_set(message, message_bytes, "%s", "");
  if (!path || !image)
    return hs_message_fail(HS_ERR_ARGUMENT, message, message_bytes, "the picture to write or its name is null");
  const save_format format = save_format_of(path);
  if (format == SAVE_UNKNOWN)
    return hs_message_fail(HS_ERR_UNSUPPORTED, message, message_bytes,
                           "%s: the name must end in .png, .jpg, .jpeg, .pgm, .ppm or .pnm", path);
  hs_image view;
  if (save_check_image(image, &view) != HS_OK)
    return hs_message_fail(HS_ERR_IMAGE, message, message_bytes, "%s: only 8-bit gray and RGB pictures are written",
                           path);
  if (format == SAVE_PGM && view.layout == HS_RGB)
    return hs_message_fail(HS_ERR_UNSUPPORTED, message, message_bytes, "%s: a .pgm has no colour: expected .ppm", path);

  atomic_file file;
  FILE *stream = atomic_file_open(&file, path);
  if (!stream) {
    hs_message_set(message, message_bytes, "%s", file.message);
    return file.status;
  }
  char reason[IMAGE_REASON_BYTES];
  errno = 0;
  hs_status status = save_encode(format, stream, &view, reason);
  if (status == HS_OK) {
    status = atomic_file_commit(&file);
    return hs_message_fail(status, message, message_bytes, "%s", file.message);
  }
  const int error = errno;
  atomic_file_abandon(&file);
  if (status == HS_ERR_IO) {
    hs_message_set_errno(message, message_bytes, error != 0 ? error : EIO, "%s: cannot be written",
                         strcmp(path, "-") == 0 ? "standard output" : path);
  } else {
    hs_message_set(message, message_bytes, "%s: %s", path, reason);
  }
  return status;
}

/* ---- binary PGM and PPM */

hs_status image_write_pnm(FILE *stream, const hs_image *image, bool colour) {
  const size_t width = (size_t)image->width;
  fprintf(stream, "P%c\n%ld %ld\n255\n", colour ? '6' : '5', (long)image->width, (long)image->height);
  for (int32_t y = 0; y < image->height && !ferror(stream); y++) {
    const uint8_t *row = (const uint8_t *)image->data + (size_t)y * image->stride_bytes;
    if (colour && image->layout == HS_GRAY) {
      for (size_t x = 0; x < width; x++) {
        const uint8_t pixel[3] = {row[x], row[x], row[x]};
        fwrite(pixel, 1, sizeof pixel, stream);
      }
    } else {
      fwrite(row, image_channels(image->layout), width, stream);
    }
  }
  return ferror(stream) ? HS_ERR_IO : HS_OK;
}

/* ---- 8-bit gray and RGB PNG, on libpng */

#if HARTSIFT_HAVE_PNG

#  include <png.h>
#  include <setjmp.h>

/* State that survives a longjmp. */
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
  /* a side may have up to 2^31 pixels here, but libpng's default limit is a million */
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
    return hs_message_fail(HS_ERR_MEMORY, reason, IMAGE_REASON_BYTES, "out of memory for the PNG encoder");
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
  return hs_message_fail(HS_ERR_UNSUPPORTED, reason, IMAGE_REASON_BYTES,
                         "built without PNG support; .pgm and .ppm are always written");
}

#endif

/* ---- 8-bit gray and RGB JPEG, on libjpeg */

#if HARTSIFT_HAVE_JPEG

#  include <setjmp.h>
#  include <string.h>
/* jpeglib.h needs stdio.h and stddef.h before it. */
#  include <jpeglib.h>
/* jerror.h needs jpeglib.h before it. */
#  include <jerror.h>

enum { WRITE_JPEG_QUALITY = 95 };

/* State that survives a longjmp. */
typedef struct write_jpeg_state {
  struct jpeg_compress_struct jpeg;
  struct jpeg_error_mgr errors;
  jmp_buf jump;
  FILE *stream;
  const hs_image *image;
  char *reason;
  hs_status status;
} write_jpeg_state;

static void write_jpeg_on_error(j_common_ptr jpeg) {
  write_jpeg_state *encoder = jpeg->client_data;
  char text[JMSG_LENGTH_MAX];
  jpeg->err->format_message(jpeg, text);
  hs_message_set(encoder->reason, IMAGE_REASON_BYTES, "%s", text);
  encoder->status = jpeg->err->msg_code == JERR_OUT_OF_MEMORY ? HS_ERR_MEMORY : HS_ERR_UNSUPPORTED;
  longjmp(encoder->jump, 1);
}

static void write_jpeg_on_output(j_common_ptr jpeg) { (void)jpeg; }

static void write_jpeg_set_parameters(write_jpeg_state *encoder) {
  struct jpeg_compress_struct *jpeg = &encoder->jpeg;
  jpeg->image_width = (JDIMENSION)encoder->image->width;
  jpeg->image_height = (JDIMENSION)encoder->image->height;
  jpeg->input_components = encoder->image->layout == HS_RGB ? 3 : 1;
  jpeg->in_color_space = encoder->image->layout == HS_RGB ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_set_defaults(jpeg);
  jpeg_set_quality(jpeg, WRITE_JPEG_QUALITY, TRUE);
  /* full chroma resolution, because the pictures have thin coloured lines */
  jpeg->comp_info[0].h_samp_factor = 1;
  jpeg->comp_info[0].v_samp_factor = 1;
}

/* The only function with a setjmp: it has no variables that a longjmp could leave undefined. */
static void write_jpeg_encode_guarded(write_jpeg_state *encoder) {
  if (setjmp(encoder->jump) != 0) return;
  jpeg_create_compress(&encoder->jpeg);
  jpeg_stdio_dest(&encoder->jpeg, encoder->stream);
  write_jpeg_set_parameters(encoder);
  jpeg_start_compress(&encoder->jpeg, TRUE);
  for (int32_t y = 0; y < encoder->image->height; y++) {
    /* libjpeg only reads the row, although its type is not const */
    JSAMPROW row = (JSAMPROW)(uintptr_t)encoder->image->data + (size_t)y * encoder->image->stride_bytes;
    jpeg_write_scanlines(&encoder->jpeg, &row, 1);
  }
  jpeg_finish_compress(&encoder->jpeg);
}

hs_status image_write_jpeg(FILE *stream, const hs_image *image, char reason[IMAGE_REASON_BYTES]) {
  reason[0] = '\0';
  write_jpeg_state encoder;
  memset(&encoder, 0, sizeof encoder);
  encoder.stream = stream;
  encoder.image = image;
  encoder.reason = reason;
  encoder.jpeg.client_data = &encoder;
  encoder.jpeg.err = jpeg_std_error(&encoder.errors);
  encoder.errors.error_exit = write_jpeg_on_error;
  encoder.errors.output_message = write_jpeg_on_output;
  write_jpeg_encode_guarded(&encoder);
  jpeg_destroy_compress(&encoder.jpeg);
  if (ferror(stream)) {
    reason[0] = '\0';
    return HS_ERR_IO;
  }
  return encoder.status;
}

#else

hs_status image_write_jpeg(FILE *stream, const hs_image *image, char reason[IMAGE_REASON_BYTES]) {
  (void)stream;
  (void)image;
  return hs_message_fail(HS_ERR_UNSUPPORTED, reason, IMAGE_REASON_BYTES,
                         "built without JPEG support; .pgm and .ppm are always written");
}

#endif
