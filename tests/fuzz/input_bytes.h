/*
 * Shared parts of the fuzz targets: functions that read values from an input, and a macro that ends the run if a
 * requirement fails.
 */
#ifndef HARTSIFT_TESTS_FUZZ_INPUT_BYTES_H
#define HARTSIFT_TESTS_FUZZ_INPUT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The unread part of an input. When it is empty, all values read are 0, so that every input is valid. */
typedef struct input_bytes {
  const uint8_t *data;
  size_t size;
} input_bytes;

uint8_t input_u8(input_bytes *input);
uint32_t input_u32(input_bytes *input);
uint64_t input_u64(input_bytes *input);
/* 0..most. */
uint32_t input_below(input_bytes *input, uint32_t most);
/* Returns mostly plain numbers, often limits of arithmetic: zeros, infinities, NaN, the largest and smallest numbers of
 * each type, powers of two. */
double input_double(input_bytes *input);
float input_float(input_bytes *input);
/* Returns mostly plain integers, often limits of the type. */
int32_t input_i32(input_bytes *input);
/* Returns the input up to a byte of 0, or `most` bytes, as a text from malloc; null if out of memory. */
char *input_text(input_bytes *input, size_t most);

/* Ends the process unless the condition holds, and prints the position to standard error. */
#define fuzz_require(condition) fuzz_require_at((condition), #condition, __FILE__, __LINE__)
void fuzz_require_at(bool condition, const char *what, const char *file, int line);

#endif
