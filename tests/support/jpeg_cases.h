/*
 * JPEGs of every kind that the GPU decodes, made from random coefficients, and changed ones.
 */
#ifndef HARTSIFT_TESTS_SUPPORT_JPEG_CASES_H
#define HARTSIFT_TESTS_SUPPORT_JPEG_CASES_H

#include "pipeline/image_io/jpeg/jpeg_stream.h"
#include "pipeline/image_io/jpeg/synthetic_jpeg.h"

/* Makes file `number`. Numbers cycle through kinds of sampling, restart intervals, tables and codes, with sides of
 * 1..side_most. The coefficients of a block add up to `sum` at most. The result comes from malloc; null without
 * libjpeg. */
unsigned char *jpeg_case_make(uint32_t number, int32_t side_most, int32_t sum, size_t *size);

/* Changes a few bits or bytes, drops some, or truncates the file. Returns its size. */
size_t jpeg_case_change(unsigned char *bytes, size_t size, uint64_t seed);

/* Packs a file for the GPU. Returns false if libjpeg must decode the file. */
bool jpeg_case_pack(const uint8_t *bytes, size_t size, void *memory, size_t memory_bytes, jpeg_shape *shape);

/* Decodes by libjpeg, without applying the EXIF orientation. */
hs_status jpeg_case_load(const uint8_t *bytes, size_t size, hs_image *image);

#endif
