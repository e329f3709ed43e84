/*
 * Makes image files in memory for tests; see image_maker.h. An error ends the test program, because the libraries'
 * default handlers exit.
 */
#include "tests/support/image_maker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void image_file_free(image_file *file) {
  free(file->bytes);
  memset(file, 0, sizeof *file);
}

uint32_t image_maker_gray(uint32_t red, uint32_t green, uint32_t blue) {
  return (uint32_t)(((uint64_t)9798 * red + (uint64_t)19235 * green + (uint64_t)3735 * blue + 16384) >> 15);
}

/* ---- PNG */

size_t png_spec_channels(const png_spec *spec) {
  static const size_t channels[7] = {1, 0, 3, 1, 2, 0, 4};
  return channels[spec->colour_type];
}

uint32_t png_spec_sample(const png_spec *spec, int32_t x, int32_t y, size_t channel) {
  const uint32_t value =
      (uint32_t)x * 2521u + (uint32_t)y * 9677u + (uint32_t)channel * 21013u + (uint32_t)(x * y) * 61u;
  return (value >> (spec->depth < 8 ? 3 : 0)) & ((1u << spec->depth) - 1u);
}

uint32_t png_spec_palette(uint32_t index, size_t channel) {
  static const uint32_t step[3] = {37, 91, 151};
  return (index * step[channel] + 11u * (uint32_t)channel + 5u) & 255u;
}

uint32_t png_spec_expected(const png_spec *spec, int32_t x, int32_t y, size_t channel) {
  const uint32_t sample = png_spec_sample(spec, x, y, spec->colour_type == 3 ? 0 : channel);
  if (spec->colour_type == 3) return png_spec_palette(sample, channel);
  return spec->depth < 8 ? sample * 255u / ((1u << spec->depth) - 1u) : sample;
}

#if HARTSIFT_HAVE_PNG
#  include <png.h>

static void image_file_append(png_structp png, png_bytep data, size_t size) {
  image_file *file = png_get_io_ptr(png);
  file->bytes = realloc(file->bytes, file->size + size);
  memcpy(file->bytes + file->size, data, size);
  file->size += size;
}

static void image_file_flush(png_structp png) { (void)png; }

static void png_spec_set_colours(const png_spec *spec, png_structp png, png_infop info) {
  png_color palette[256];
  png_byte alpha[256];
  png_color_16 value = {.gray = 1, .red = 1, .green = 2, .blue = 3};
  const int entries = spec->colour_type == 3 ? 1 << spec->depth : 0;
  for (int i = 0; i < entries; i++) {
    palette[i] = (png_color){.red = (png_byte)png_spec_palette((uint32_t)i, 0),
                             .green = (png_byte)png_spec_palette((uint32_t)i, 1),
                             .blue = (png_byte)png_spec_palette((uint32_t)i, 2)};
    alpha[i] = (png_byte)(i * 3);
  }
  if (entries > 0) png_set_PLTE(png, info, palette, entries);
  if (spec->transparent_value) png_set_tRNS(png, info, alpha, entries, &value);
}

/* Writes one byte per sample below 16 bits, which libpng packs, and big-endian pairs of bytes at 16 bits. */
static void png_spec_fill_row(const png_spec *spec, int32_t y, uint8_t *row) {
  const size_t channels = png_spec_channels(spec);
  for (int32_t x = 0; x < spec->width; x++) {
    for (size_t c = 0; c < channels; c++) {
      const uint32_t sample = png_spec_sample(spec, x, y, c);
      if (spec->depth == 16) *row++ = (uint8_t)(sample >> 8);
      *row++ = (uint8_t)(sample & 255u);
    }
  }
}

image_file png_spec_make(const png_spec *spec) {
  image_file file = {0};
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &file, image_file_append, image_file_flush);
  png_set_IHDR(png, info, (png_uint_32)spec->width, (png_uint_32)spec->height, spec->depth, spec->colour_type,
               spec->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_spec_set_colours(spec, png, info);
  png_write_info(png, info);
  png_set_packing(png);
  const int passes = png_set_interlace_handling(png);
  uint8_t *row = malloc((size_t)spec->width * png_spec_channels(spec) * 2);
  for (int pass = 0; pass < passes; pass++) {
    for (int32_t y = 0; y < spec->height; y++) {
      png_spec_fill_row(spec, y, row);
      png_write_row(png, row);
    }
  }
  free(row);
  png_write_end(png, NULL);
  png_destroy_write_struct(&png, &info);
  return file;
}
#endif

/* ---- JPEG */

size_t jpeg_spec_channels(const jpeg_spec *spec) {
  return spec->space == JPEG_GRAY ? 1 : spec->space == JPEG_YCBCR || spec->space == JPEG_RGB ? 3 : 4;
}

#if HARTSIFT_HAVE_JPEG
#  include <jpeglib.h>

static void jpeg_spec_set_space(const jpeg_spec *spec, struct jpeg_compress_struct *jpeg) {
  static const J_COLOR_SPACE input[] = {JCS_GRAYSCALE, JCS_RGB, JCS_RGB, JCS_CMYK, JCS_CMYK, JCS_CMYK};
  static const J_COLOR_SPACE stored[] = {JCS_GRAYSCALE, JCS_YCbCr, JCS_RGB, JCS_CMYK, JCS_CMYK, JCS_YCCK};
  jpeg->input_components = (int)jpeg_spec_channels(spec);
  jpeg->in_color_space = input[spec->space];
  jpeg_set_defaults(jpeg);
  jpeg_set_colorspace(jpeg, stored[spec->space]);
  if (spec->space == JPEG_CMYK_PLAIN) jpeg->write_Adobe_marker = FALSE;
}

image_file jpeg_spec_make(const jpeg_spec *spec, const uint8_t *samples) {
  image_file file = {0};
#  ifndef C_ARITH_CODING_SUPPORTED
  if (spec->coding == JPEG_ARITHMETIC) return file;
#  endif
  struct jpeg_compress_struct jpeg;
  struct jpeg_error_mgr errors;
  unsigned char *made = NULL;
  unsigned long made_size = 0;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  jpeg_mem_dest(&jpeg, &made, &made_size);
  jpeg.image_width = (JDIMENSION)spec->width;
  jpeg.image_height = (JDIMENSION)spec->height;
  jpeg_spec_set_space(spec, &jpeg);
  jpeg_set_quality(&jpeg, spec->quality, TRUE);
  jpeg.dct_method = JDCT_ISLOW;
  for (int i = 0; i < jpeg.num_components; i++) {
    const bool fine = spec->luma_sampling == 2 && (i == 0 || i == 3);
    jpeg.comp_info[i].h_samp_factor = jpeg.comp_info[i].v_samp_factor = fine ? 2 : 1;
  }
  jpeg.restart_in_rows = spec->restart_rows;
  jpeg.arith_code = spec->coding == JPEG_ARITHMETIC;
  if (spec->coding == JPEG_PROGRESSIVE) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  if (spec->app1) jpeg_write_marker(&jpeg, JPEG_APP0 + 1, spec->app1, (unsigned int)spec->app1_size);
  for (int32_t y = 0; y < spec->height; y++) {
    JSAMPROW row = (JSAMPROW)(uintptr_t)samples + (size_t)y * (size_t)spec->width * jpeg_spec_channels(spec);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  file.bytes = made;
  file.size = made_size;
  return file;
}

uint8_t *jpeg_scaled_by_library(const image_file *file, int scale, bool colour, int32_t *width, int32_t *height) {
  struct jpeg_decompress_struct jpeg;
  struct jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, file->bytes, (unsigned long)file->size);
  jpeg_read_header(&jpeg, TRUE);
  jpeg.out_color_space = colour ? JCS_RGB : JCS_GRAYSCALE;
  jpeg.dct_method = JDCT_ISLOW;
  jpeg.scale_num = 1;
  jpeg.scale_denom = (unsigned int)scale;
  jpeg_start_decompress(&jpeg);
  const size_t row_bytes = (size_t)jpeg.output_width * (size_t)jpeg.output_components;
  uint8_t *pixels = malloc(row_bytes * jpeg.output_height);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW rows[1] = {pixels + row_bytes * jpeg.output_scanline};
    jpeg_read_scanlines(&jpeg, rows, 1);
  }
  *width = (int32_t)jpeg.output_width;
  *height = (int32_t)jpeg.output_height;
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return pixels;
}

uint8_t *jpeg_luma_by_library(const image_file *file) {
  struct jpeg_decompress_struct jpeg;
  struct jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, file->bytes, (unsigned long)file->size);
  jpeg_read_header(&jpeg, TRUE);
  /* Prevents colour conversion: luma is the first of the stored channels. */
  jpeg.out_color_space = jpeg.jpeg_color_space;
  jpeg.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&jpeg);
  const size_t width = jpeg.output_width, channels = (size_t)jpeg.output_components;
  uint8_t *luma = malloc(width * jpeg.output_height);
  uint8_t *row = malloc(width * channels);
  while (jpeg.output_scanline < jpeg.output_height) {
    uint8_t *target = luma + width * jpeg.output_scanline;
    JSAMPROW rows[1] = {row};
    jpeg_read_scanlines(&jpeg, rows, 1);
    for (size_t x = 0; x < width; x++) target[x] = row[x * channels];
  }
  free(row);
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return luma;
}
#endif
