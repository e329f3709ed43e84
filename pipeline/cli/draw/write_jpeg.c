/*
 * Writer of 8-bit gray and RGB JPEG, on libjpeg.
 */
#include "pipeline/cli/draw/save_picture.h"

#if HARTSIFT_HAVE_JPEG

#  include <setjmp.h>
#  include <string.h>
/* jpeglib.h needs stdio.h and stddef.h before it. */
#  include <jpeglib.h>
/* jerror.h needs jpeglib.h before it. */
#  include <jerror.h>

enum { WRITE_JPEG_QUALITY = 95 };

/* What must outlive a longjmp. */
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
  /* Full chroma: thin coloured lines on gray are what these pictures are about. */
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
    /* libjpeg reads the row only, but its type has no const. */
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
  hs_message_set(reason, IMAGE_REASON_BYTES, "built without JPEG support; .pgm and .ppm are always written");
  return HS_ERR_UNSUPPORTED;
}

#endif
