/*
 * Compares features of pictures that are decoded row by row while their tiles are extracted with features of the whole
 * picture.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_ROWS_CHECK_H
#define HARTSIFT_TESTS_SUPPORT_ROWS_CHECK_H

#include "pipeline/include/hartsift.h"
#include "tests/support/image_maker.h"

/* Returns a limit for a picture of this size on the options' device: the memory of its smallest tiles, plus a part of
 * the difference to the whole picture's memory. */
uint64_t rows_cap(hs_options options, int32_t width, int32_t height);

/* Makes a file of a generated scene, which image_file_free frees. Bytes are null if the library cannot encode it. */
image_file rows_jpeg_of_scene(const jpeg_spec *spec);

/* Compares the features of a file, on disk and in memory, within the limit of rows_cap, with the CPU's features of the
 * whole picture. Returns the peak bytes for the file on disk, without the returned features. */
size_t rows_check_file(const hs_options *options, const image_file *file, const hs_load_options *load,
                       const char *what);

/* Extracts from the first `size` bytes of a file that may be truncated or changed. Status and message must equal those
 * of loading, and no feature may be returned. width, height: size of the picture. */
void rows_check_damaged(hs_options options, const image_file *file, size_t size, int32_t width, int32_t height);

#endif
