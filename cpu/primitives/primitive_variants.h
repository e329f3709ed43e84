/*
 * The primitives of each instruction set: entries of the tables in stages/primitives.h.
 */
#ifndef HARTSIFT_CPU_PRIMITIVES_PRIMITIVE_VARIANTS_H
#define HARTSIFT_CPU_PRIMITIVES_PRIMITIVE_VARIANTS_H

#include "stages/primitives.h"

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

extern const prim_ops prim_ops_ref;

/* Counts the histogram of an 8-bit picture. It uses several tables, so that equal neighbours do not wait for each
 * other. */

void histogram_tables(const prim_view *picture, const prim_view *mask, uint64_t counts[PRIM_LEVELS]);

#define DOT_DECLARE(ISA)                                                                                               \
  void dot_bytes_##ISA(dot_vectors asking, dot_vectors answering, size_t length,                                       \
                       int32_t products[DOT_ASKING][DOT_ANSWERS])
DOT_DECLARE(ref);
DOT_DECLARE(sse2);
DOT_DECLARE(avx2);
DOT_DECLARE(avx512);
DOT_DECLARE(avx512vnni);
DOT_DECLARE(neon);
DOT_DECLARE(neondot);

#define PROJECT_DECLARE(ISA)                                                                                           \
  void project_##ISA(const double *vector, size_t length, const double *axes, size_t count, double *values)
PROJECT_DECLARE(ref);
PROJECT_DECLARE(sse2);
PROJECT_DECLARE(avx2);
PROJECT_DECLARE(avx512);
PROJECT_DECLARE(neon);

#endif
