/*
 * Image files in memory for tests, made with libpng and libjpeg directly, and their expected pixels.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_IMAGE_MAKER_H
#define HARTSIFT_TESTS_SUPPORT_IMAGE_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file in memory; bytes come from malloc. */
typedef struct image_file {
  uint8_t *bytes;
  size_t size;
} image_file;

void image_file_free(image_file *file);

/* Returns gray by the formula of the public header, in 64 bits. */
uint32_t image_maker_gray(uint32_t red, uint32_t green, uint32_t blue);

/* ---- PNG */

typedef struct png_spec {
  int colour_type; /* colour type of PNG: 0, 2, 3, 4, 6 */
  int depth;       /* 1, 2, 4, 8, 16 */
  bool interlaced;
  bool transparent_value; /* whether the file has a tRNS chunk (colour types 0, 2, 3) */
  int32_t width, height;
} png_spec;

/* Returns the number of channels stored in the file. */
size_t png_spec_channels(const png_spec *spec);
/* Returns the stored sample: a fixed function of its position, below 2^depth. */
uint32_t png_spec_sample(const png_spec *spec, int32_t x, int32_t y, size_t channel);
/* Returns a colour channel of a palette entry, 0..255. */
uint32_t png_spec_palette(uint32_t index, size_t channel);
/* Returns the full-range sample (8 bits, or 16 for depth 16) of an RGB or gray channel after decoding. */
uint32_t png_spec_expected(const png_spec *spec, int32_t x, int32_t y, size_t channel);
image_file png_spec_make(const png_spec *spec);

/* ---- JPEG */

typedef enum jpeg_coding { JPEG_BASELINE, JPEG_PROGRESSIVE, JPEG_ARITHMETIC } jpeg_coding;
/* Stored colour space. Input samples are in the same space, except for YCbCr and YCCK (from RGB and CMYK). */
typedef enum jpeg_space { JPEG_GRAY, JPEG_YCBCR, JPEG_RGB, JPEG_CMYK, JPEG_CMYK_PLAIN, JPEG_YCCK } jpeg_space;

typedef struct jpeg_spec {
  jpeg_space space; /* JPEG_CMYK and JPEG_YCCK with Adobe's marker, JPEG_CMYK_PLAIN without */
  jpeg_coding coding;
  int quality;
  int luma_sampling; /* 1: full chroma; 2: 4:2:0 */
  int restart_rows;  /* MCU rows between restart markers; 0: no markers */
  int32_t width, height;
  const uint8_t *app1; /* payload of an APP1 segment, or null */
  size_t app1_size;
} jpeg_spec;

/* Returns the number of channels of the input samples. */
size_t jpeg_spec_channels(const jpeg_spec *spec);
/* Makes a file. samples: width x height x channels. Bytes are null if the library cannot encode it (arithmetic
 * coding). */
image_file jpeg_spec_make(const jpeg_spec *spec, const uint8_t *samples);
/* Decodes by libjpeg at 1/scale of the size to gray (stored luma) or RGB, without row padding. *width and *height
 * receive the size of the result. The file must be gray or YCbCr unless colour is requested. The result comes from
 * malloc. */
uint8_t *jpeg_scaled_by_library(const image_file *file, int scale, bool colour, int32_t *width, int32_t *height);
/* Returns the luma plane from libjpeg; gray for JPEG_GRAY. The result comes from malloc. */
uint8_t *jpeg_luma_by_library(const image_file *file);

#endif
