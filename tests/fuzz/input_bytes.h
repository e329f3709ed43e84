/*
 * Shared parts of the fuzz targets: reads values from an input, and ends the run if a promise is broken.
 */
#ifndef HARTSIFT_TESTS_FUZZ_INPUT_BYTES_H
#define HARTSIFT_TESTS_FUZZ_INPUT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The rest of an input. When it is empty all values are 0, so that every input is valid. */
typedef struct input_bytes {
  const uint8_t *data;
  size_t size;
} input_bytes;

uint8_t input_u8(input_bytes *input);
uint32_t input_u32(input_bytes *input);
uint64_t input_u64(input_bytes *input);
/* 0..most. */
uint32_t input_below(input_bytes *input, uint32_t most);
/* Mostly plain numbers, often limits of arithmetic: zeros, infinities, NaN, the largest and smallest of each type,
 * powers of two. */
double input_double(input_bytes *input);
float input_float(input_bytes *input);
/* The same for integers. */
int32_t input_i32(input_bytes *input);
/* The input up to a byte of 0 or `most` bytes, as a text from malloc; null if out of memory. */
char *input_text(input_bytes *input, size_t most);

/* Ends the process, with the position on standard error, unless the condition holds. */
#define fuzz_require(condition) fuzz_require_at((condition), #condition, __FILE__, __LINE__)
void fuzz_require_at(bool condition, const char *what, const char *file, int line);

#endif
