/*
 * Writer of binary PGM and PPM.
 */
#include "pipeline/cli/draw/save_picture.h"

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
