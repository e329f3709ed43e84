/*
 * Fuzz target: any bytes as an image in memory, in gray and in colour. Every byte of a picture is read.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "pipeline/hartsift.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Small, so that many inputs are tried and a reader that ignores a limit is noticed. */
enum { FUZZ_MAX_PIXELS = 1 << 18, FUZZ_MAX_MEMORY_BYTES = 16 << 20 };

static size_t bytes_per_pixel(const hs_image *image) {
  return (image->layout == HS_RGB ? 3u : 1u) * (image->type == HS_U16 ? 2u : 1u);
}

static void decode(const uint8_t *data, size_t size, int keep_colour) {
  char message[64];
  const hs_load_options options = {.struct_size = sizeof options,
                                   .max_pixels = FUZZ_MAX_PIXELS,
                                   .max_memory_bytes = FUZZ_MAX_MEMORY_BYTES,
                                   .keep_colour = keep_colour,
                                   .message = message,
                                   .message_bytes = sizeof message};
  hs_image image;
  const hs_status status = hs_load_image_memory(data, size, &options, &image);
  if (status != HS_OK) {
    if (message[0] == '\0' || image.data != NULL) {
      abort(); /* a failure explains itself and leaves nothing */
    }
    return;
  }
  if (image.width < 1 || image.height < 1 || (uint64_t)image.width * (uint64_t)image.height > FUZZ_MAX_PIXELS ||
      image.stride_bytes != (size_t)image.width * bytes_per_pixel(&image)) {
    abort();
  }
  /* The sum decides something, so that reading is not optimised away and uninitialised bytes show. */
  uint32_t sum = 0;
  for (size_t i = 0; i < image.stride_bytes * (size_t)image.height; ++i) {
    sum = sum * 31u + ((const uint8_t *)image.data)[i];
  }
  if (sum == 0x5EED5EEDu) {
    message[0] = '\0';
  }
  hs_image_free(&image, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (data == NULL) {
    return 0;
  }
  decode(data, size, 0);
  decode(data, size, 1);
  return 0;
}
