/*
 * Pictures that are decoded row by row while their tiles are worked off: their features against those of the whole.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_ROWS_CHECK_H
#define HARTSIFT_TESTS_SUPPORT_ROWS_CHECK_H

#include "pipeline/include/hartsift.h"
#include "tests/support/image_maker.h"

/* A limit for a picture of this size, by the options' device: what its smallest tiles take, and a part of what is
   between that and the whole. */
uint64_t rows_cap(hs_options options, int32_t width, int32_t height);

/* A file of a generated scene; freed by image_file_free. bytes null: the library cannot. */
image_file rows_jpeg_of_scene(const jpeg_spec *spec);

/* Compares the features of a file on disk and in memory, within that limit, with those that the CPU finds in the whole
   picture. Returns the most bytes that were held for the file on disk, the features that the call hands out not
   counted. */
size_t rows_check_file(const hs_options *options, const image_file *file, const hs_load_options *load,
                       const char *what);

/* The first `size` bytes of a file that may be cut off or changed: status and sentence are those of loading, and no
   feature is handed out. width and height: of the picture. */
void rows_check_damaged(hs_options options, const image_file *file, size_t size, int32_t width, int32_t height);

#endif
