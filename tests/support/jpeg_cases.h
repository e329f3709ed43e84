/*
 * JPEGs of every kind that the GPU's decoder takes, made of drawn coefficients, and changed ones.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_JPEG_CASES_H
#define HARTSIFT_TESTS_SUPPORT_JPEG_CASES_H

#include "pipeline/image_io/jpeg/jpeg_stream.h"
#include "pipeline/image_io/jpeg/synthetic_jpeg.h"

/* Kinds of sampling, restart intervals, tables and codes by turns, sides of 1..side_most; blocks whose coefficients add
   up to sum at most. From malloc; null without libjpeg. */
unsigned char *jpeg_case_make(uint32_t number, int32_t side_most, int32_t sum, size_t *size);

/* Changes a few bits or bytes, drops some, or cuts the file. Returns its size. */
size_t jpeg_case_change(unsigned char *bytes, size_t size, uint64_t seed);

/* Packs a file; false: it is left to libjpeg. */
bool jpeg_case_pack(const uint8_t *bytes, size_t size, void *memory, size_t memory_bytes, jpeg_shape *shape);

/* As libjpeg decodes it, as stored. */
hs_status jpeg_case_load(const uint8_t *bytes, size_t size, hs_image *image);

#endif
