/*
 * Writing a picture in the format that its name's ending tells; whole or not at all.
 */
#include <errno.h>
#include <string.h>

#include "pipeline/base/atomic_file.h"
#include "pipeline/cli/draw/save_picture.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/path_text.h"

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

/* Fills in the stride; HS_ERR_IMAGE when the view is none that can be written. */
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
  if (!path || !image) {
    hs_message_set(message, message_bytes, "the picture to write or its name is null");
    return HS_ERR_ARGUMENT;
  }
  const save_format format = save_format_of(path);
  if (format == SAVE_UNKNOWN) {
    hs_message_set(message, message_bytes, "%s: the name must end in .png, .jpg, .jpeg, .pgm, .ppm or .pnm", path);
    return HS_ERR_UNSUPPORTED;
  }
  hs_image view;
  if (save_check_image(image, &view) != HS_OK) {
    hs_message_set(message, message_bytes, "%s: only 8-bit gray and RGB pictures are written", path);
    return HS_ERR_IMAGE;
  }
  if (format == SAVE_PGM && view.layout == HS_RGB) {
    hs_message_set(message, message_bytes, "%s: a .pgm holds no colour; .ppm does", path);
    return HS_ERR_UNSUPPORTED;
  }

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
    hs_message_set(message, message_bytes, "%s", file.message);
    return status;
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
