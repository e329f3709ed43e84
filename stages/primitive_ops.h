/*
 * What an instruction set provides for the primitives: work on runs of consecutive elements. Arrays are cut
 * into runs and shared among threads by cpu/primitives/reduce_threads.c and its neighbours.
 */
#ifndef HARTSIFT_STAGES_PRIMITIVE_OPS_H
#define HARTSIFT_STAGES_PRIMITIVE_OPS_H

#include "stages/primitives.h"

/* Of vectors no longer than this no dot product leaves 32 bits: 2^16 * 128^2. */
enum { DOT_ANSWERS = 4, DOT_LENGTH_MAX = 65536 };

/* Dot products of vectors of signed bytes: products[i] = asking . (answering + i * stride), each of `length` numbers, at
   most DOT_LENGTH_MAX. */
typedef void (*dot_bytes_function)(const int8_t *asking, const int8_t *answering, size_t stride, size_t length,
                                   int32_t products[DOT_ANSWERS]);

/* Smallest and largest element so far, NaN passed over; begun with +inf and -inf. */
typedef struct prim_range {
  double low, high;
} prim_range;

enum { PRIM_LEVELS = 256 };

/* Arrays of functions are indexed by prim_element; those of two by its last bit (U8 and U16, F32 and F64). */
typedef struct prim_ops {
  const char *name;
  /* The exact sum of n u8 or u16. */
  uint64_t (*sum[2])(const void *x, size_t n);
  /* The sums of the chunks of n f32 or f64, ceil(n / PRIM_CHUNK) of them. */
  void (*sum_chunks[2])(const void *x, size_t n, double *sums);
  /* Widens the range by n elements. */
  void (*range[4])(const void *x, size_t n, prim_range *range);
  /* How many of n elements are > threshold. */
  uint64_t (*count_above[4])(const void *x, size_t n, double threshold);
  /* Sum, range and count of a tile of u8; the mean is left out. */
  void (*tile_u8)(const prim_view *tile, double threshold, prim_tile *out);
  /* Adds the levels of a picture of u8 to counts; mask: of the same size, or data null. */
  void (*histogram)(const prim_view *picture, const prim_view *mask, uint64_t counts[PRIM_LEVELS]);
  /* out[i] = table[in[i]]; out may be in. */
  void (*map)(const uint8_t *in, uint8_t *out, size_t n, const uint8_t table[PRIM_LEVELS]);
  /* y[0..n-1] from x[0..n+m-2], which begins r samples before y does: y[i] = sum of c[j] x[i + 2r - j]. */
  void (*convolve[2])(const void *x, void *y, size_t n, const double *taps, size_t m);
} prim_ops;

#endif
