/* Dot products of vectors of bytes for one instruction set; see dot_bytes.h. */
#include "cpu/ref/dot_bytes.h"
#include "cpu/simd/simd.h"

void SIMD_NAME(dot_bytes)(const int8_t *asking, const int8_t *answering, size_t stride, size_t length,
                          int32_t products[DOT_ANSWERS]) {
  dot_bytes(asking, answering, stride, length, products);
}
