/*
 * Pictures decoded row by row while their tiles are extracted: their features compared with the whole picture's.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_ROWS_CHECK_H
#define HARTSIFT_TESTS_SUPPORT_ROWS_CHECK_H

#include "pipeline/include/hartsift.h"
#include "tests/support/image_maker.h"

/* A limit for a picture of this size on the options' device: the memory of its smallest tiles, plus a part of the
 * difference to the whole. */
uint64_t rows_cap(hs_options options, int32_t width, int32_t height);

/* A file of a generated scene; freed by image_file_free. bytes null: the library cannot encode it. */
image_file rows_jpeg_of_scene(const jpeg_spec *spec);

/* Compares the features of a file, on disk and in memory, within that limit, with the CPU's features of the whole
 * picture. Returns the peak bytes for the file on disk, without the returned features. */
size_t rows_check_file(const hs_options *options, const image_file *file, const hs_load_options *load,
                       const char *what);

/* The first `size` bytes of a file that may be truncated or changed: status and message equal those of loading, and no
 * feature is returned. width and height: of the picture. */
void rows_check_damaged(hs_options options, const image_file *file, size_t size, int32_t width, int32_t height);

#endif
