/*
 * The primitives of each instruction set it may be built for, as a table.
 */
#ifndef HARTSIFT_CPU_PRIMITIVES_PRIMITIVES_SIMD_H
#define HARTSIFT_CPU_PRIMITIVES_PRIMITIVES_SIMD_H

#include "stages/primitive_ops.h"

#define PRIMITIVES_SIMD_DECLARE(ISA)                                                                                   \
  uint64_t prim_sum_u8_##ISA(const void *x, size_t n);                                                                 \
  uint64_t prim_sum_u16_##ISA(const void *x, size_t n);                                                                \
  void prim_sum_chunks_f32_##ISA(const void *x, size_t n, double *sums);                                               \
  void prim_sum_chunks_f64_##ISA(const void *x, size_t n, double *sums);                                               \
  void prim_range_u8_##ISA(const void *x, size_t n, prim_range *range);                                                \
  void prim_range_u16_##ISA(const void *x, size_t n, prim_range *range);                                               \
  void prim_range_f32_##ISA(const void *x, size_t n, prim_range *range);                                               \
  void prim_range_f64_##ISA(const void *x, size_t n, prim_range *range);                                               \
  uint64_t prim_count_above_u8_##ISA(const void *x, size_t n, double threshold);                                       \
  uint64_t prim_count_above_u16_##ISA(const void *x, size_t n, double threshold);                                      \
  uint64_t prim_count_above_f32_##ISA(const void *x, size_t n, double threshold);                                      \
  uint64_t prim_count_above_f64_##ISA(const void *x, size_t n, double threshold);                                      \
  void prim_tile_u8_##ISA(const prim_view *tile, double threshold, prim_tile *out);                                    \
  void prim_map_##ISA(const uint8_t *in, uint8_t *out, size_t n, const uint8_t table[PRIM_LEVELS]);                    \
  void prim_convolve_f32_##ISA(const void *x, void *y, size_t n, const double *taps, size_t m);                        \
  void prim_convolve_f64_##ISA(const void *x, void *y, size_t n, const double *taps, size_t m);                        \
  extern const prim_ops prim_ops_##ISA

PRIMITIVES_SIMD_DECLARE(sse2);
PRIMITIVES_SIMD_DECLARE(avx2);
PRIMITIVES_SIMD_DECLARE(avx512);
PRIMITIVES_SIMD_DECLARE(neon);

#endif
