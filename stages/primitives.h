/*
 * The arithmetic of the primitives: the contract of every backend, so that all backends give the same bytes.
 *
 * An array is a sequence of n elements, row by row; strides do not matter. A tile is the sequence of its elements, so
 * its statistics equal the reduction of the same view.
 *
 * Sum. u8, u16: exact in 64 bits, then rounded to double once. f32, f64: a fixed tree in double. A sequence of at most
 * PRIM_CHUNK elements: element i is added to lane i % PRIM_LANES, which starts at +0, in the order of i (a lane takes
 * at most 32); then lane l adds lane l + 16 for l < 16, lane l + 8 for l < 8, and so on to lane 0, the sum. A longer
 * sequence is divided into chunks of PRIM_CHUNK elements (the last one may be shorter); the sums of the chunks are a
 * sequence of doubles, which is summed by the same rule. A lane is never -0, so a chunk may be padded with zeros. An
 * element takes part in at most 31 + 5 rounded additions on each of L = max(1, ceil(log_1024 n)) tree levels: the error
 * is at most 36 L 2^-53 sum|x| to first order.
 * Mean: the sum / n, one division.
 * Minimum, maximum: NaN is skipped; the result is NaN if there is nothing else; a zero result is +0. Above a threshold
 * t (double): the elements with x > t, compared exactly; NaN (either side) is not above. Every NaN result is the
 * positive quiet one without payload (PRIM_NAN_BITS).
 *
 * Equalisation. First the histogram h; i0 its first bin that is not empty. h[i0] = n: the picture is unchanged. Else
 * bin i > i0 becomes round(float(h[i0+1] + ... + h[i]) * scale), halves to even, at most 255, with scale = 255.0f /
 * float(n - h[i0]); bins up to i0 become 0.
 *
 * Convolution. y[i] = sum over j of c[j] x[i + r - j], m = 2r + 1 taps, products in the order of j. Taps are rounded to
 * the signal's type. prim_end_index defines x outside the signal. With u = 2^-53 (f64) or 2^-24 (f32):
 *   m <= 7, in the signal's type: with q_k = fma(c[2k+1], x, c[2k] x); the last tap has no partner:
 *     m = 1: c[0] x;  m = 3: fma(c[2], x, q_0);  m = 5: fma(c[4], x, q_0 + q_1);
 *     m = 7: (q_0 + q_1) + fma(c[6], x, q_2).
 *     No term is rounded more than 4 times: the error is at most 4 u sum|c x|.
 *   m >= 9, f32: the sum of c[j] x, exact in double, added in order in double, rounded to float once. m >= 9, f64: the
 *   sum in order; the errors of products and sums (both exact: fma, two-sum) are summed
 *     separately and added at the end (Ogita, Rump, Oishi 2005): an error of u |y| and a term in u^2. See
 *     prim_dot_step.
 * The bounds hold without underflow.
 */
#ifndef HARTSIFT_STAGES_PRIMITIVES_H
#define HARTSIFT_STAGES_PRIMITIVES_H

#include "stages/base.h"
#include "stages/portable.h"

enum {
  PRIM_CHUNK = 1024, /* number of elements that lanes add before their tree */
  PRIM_LANES = 32,
  PRIM_TREE_TAPS_MAX = 7, /* shorter filters use the pair tree, filters with more taps the long sums */
  PRIM_TAPS_MAX = (1 << 24) - 1
};

#define PRIM_NAN_BITS     0x7ff8000000000000ull
#define PRIM_NAN_BITS_F32 0x7fc00000u

/* Values as in hs_element and hs_ends; asserted in pipeline/primitives. */
typedef enum prim_element { PRIM_U8 = 0, PRIM_U16 = 1, PRIM_F32 = 2, PRIM_F64 = 3 } prim_element;
typedef enum prim_ends { PRIM_ENDS_ZERO = 0, PRIM_ENDS_REPLICATE = 1, PRIM_ENDS_REFLECT_101 = 2 } prim_ends;

static inline size_t prim_element_bytes(prim_element type) { return (size_t)1 << type; }

/* A view of elements: rows stride_bytes apart. */
typedef struct prim_view {
  const void *data;
  size_t width, height;
  size_t stride_bytes;
  prim_element type;
} prim_view;

/* Kinds of reductions of an array. REDUCE_RANGE: minimum and maximum. */
typedef enum reduce_kind { REDUCE_SUM, REDUCE_MEAN, REDUCE_RANGE } reduce_kind;

/* The statistics of one tile. Layout as hs_tile. */
typedef struct prim_tile {
  double sum, mean, min, max;
  uint64_t above;
} prim_tile;

HS_INLINE double prim_double_of_bits(uint64_t bits) {
#ifdef __CUDA_ARCH__
  return __longlong_as_double((long long)bits);
#else
  double v;
  memcpy(&v, &bits, sizeof v);
  return v;
#endif
}

/* Returns v; any NaN becomes the NaN of results (PRIM_NAN_BITS). */
HS_INLINE double prim_plain_nan(double v) { return v != v ? prim_double_of_bits(PRIM_NAN_BITS) : v; }
HS_INLINE float prim_plain_nan_f32(float v) { return v != v ? hs_bits_float(PRIM_NAN_BITS_F32) : v; }

/* Returns an extreme value of a range that started at +inf and -inf and skipped NaN. */
HS_INLINE double prim_extreme(double found, double low, double high) {
  return low > high ? prim_double_of_bits(PRIM_NAN_BITS) : found + 0.0;
}

/* Returns an integer (-1..65535) such that for integers x > t is equivalent to x > result. */
HS_INLINE int32_t prim_threshold_integer(double t) {
  if (!(t < 65535.0)) return 65535; /* NaN too */
  if (t < 0.0) return -1;
  return (int32_t)t;
}

/* Returns the largest float not above t: for any float x, x > t is equivalent to x > result. */
HS_INLINE float prim_threshold_float(double t) {
#ifdef __CUDA_ARCH__
  return __double2float_rd(t);
#else
  const float f = (float)t;
  return (double)f > t ? nextafterf(f, -INFINITY) : f;
#endif
}

/* Returns a * b + c in double, rounded once. */
HS_INLINE double prim_fma(double a, double b, double c) {
#ifdef __CUDA_ARCH__
  return __fma_rn(a, b, c);
#elif defined(__MINGW32__) && !defined(__FMA__)
  return hs_fma_by_integers(a, b, c);
#else
  return fma(a, b, c);
#endif
}

/* Returns the factor from a sum of bins to a level. rest: n - h[i0], not 0. */
HS_INLINE float prim_equalize_scale(uint64_t rest) { return 255.0f / (float)rest; }

/* Returns the level of a bin. sum: the bins after i0 up to and including this bin. */
HS_INLINE uint8_t prim_equalize_level(uint64_t sum, float scale) {
  const int32_t level = hs_round_half_even((float)sum * scale);
  return (uint8_t)(level < 255 ? level : 255);
}

/* Returns the index to read for the sample at i in a signal of n samples (1 or more); -1: the sample is outside and
 * counts as 0. REFLECT_101 mirrors at the outermost samples without repeating them (-1 reads 1), as often as needed. */
HS_INLINE int64_t prim_end_index(int64_t i, int64_t n, prim_ends ends) {
  if (i >= 0 && i < n) return i;
  if (ends == PRIM_ENDS_ZERO) return -1;
  if (ends == PRIM_ENDS_REPLICATE) return i < 0 ? 0 : n - 1;
  if (n == 1) return 0;
  const int64_t period = 2 * (n - 1);
  int64_t k = i % period;
  if (k < 0) k += period;
  return k < n ? k : period - k;
}

/* Computes one sample by the pair tree, m = 1, 3, 5 or 7. x[j] belongs to c[j]: x runs backwards along the signal. */
HS_INLINE double prim_tree_f64(const double *c, const double *x, int32_t m) {
  double s = c[0] * x[0];
  if (m == 1) return prim_plain_nan(s);
  s = prim_fma(c[1], x[1], s);
  if (m == 3) return prim_plain_nan(prim_fma(c[2], x[2], s));
  s = s + prim_fma(c[3], x[3], c[2] * x[2]);
  if (m == 5) return prim_plain_nan(prim_fma(c[4], x[4], s));
  return prim_plain_nan(s + prim_fma(c[6], x[6], prim_fma(c[5], x[5], c[4] * x[4])));
}

HS_INLINE float prim_tree_f32(const float *c, const float *x, int32_t m) {
  float s = c[0] * x[0];
  if (m == 1) return prim_plain_nan_f32(s);
  s = hs_fmaf(c[1], x[1], s);
  if (m == 3) return prim_plain_nan_f32(hs_fmaf(c[2], x[2], s));
  s = s + hs_fmaf(c[3], x[3], c[2] * x[2]);
  if (m == 5) return prim_plain_nan_f32(hs_fmaf(c[4], x[4], s));
  return prim_plain_nan_f32(s + hs_fmaf(c[6], x[6], hs_fmaf(c[5], x[5], c[4] * x[4])));
}

/* The long sum in double. prim_dot_start sets it to {c[0] x, the rounding error of this product}. */
typedef struct prim_dot {
  double sum, error;
} prim_dot;

HS_INLINE prim_dot prim_dot_start(double c, double x) {
  prim_dot d;
  d.sum = c * x;
  d.error = prim_fma(c, x, -d.sum);
  return d;
}

HS_INLINE prim_dot prim_dot_step(prim_dot d, double c, double x) {
  const double p = c * x, product_error = prim_fma(c, x, -p);
  const double t = d.sum + p, z = t - d.sum;
  const double sum_error = (d.sum - (t - z)) + (p - z);
  d.sum = t;
  d.error = d.error + (product_error + sum_error);
  return d;
}

/* Returns the sum with its errors. If the sum is not finite, the errors are meaningless, and the plain sum is
 * returned. */
HS_INLINE double prim_dot_end(prim_dot d) {
  const double y = d.sum + d.error;
  return prim_plain_nan(y != y ? d.sum : y);
}

/* Functions of an instruction set for the primitives. They process runs of consecutive elements.
 * The threads files of cpu/primitives divide arrays into runs and share them among threads. */

/* For vectors of up to this length every dot product fits 32 bits: 2^16 * 128^2 = 2^30. */
enum { DOT_ASKING = 4, DOT_ANSWERS = 4, DOT_LENGTH_MAX = 65536 };

/* Vectors of signed bytes, `stride` bytes apart. */
typedef struct dot_vectors {
  const int8_t *first;
  size_t stride;
} dot_vectors;

/* Dot products of each asking vector with each answering one, of `length` numbers, at most DOT_LENGTH_MAX. */
typedef void (*dot_bytes_function)(dot_vectors asking, dot_vectors answering, size_t length,
                                   int32_t products[DOT_ASKING][DOT_ANSWERS]);

/* Projects a vector of `length` numbers on `count` axes: values[k] is the sum of vector[i] * axes[i * count + k] over i
 * in ascending order, beginning at 0, with each product and each sum rounded. */
typedef void (*project_function)(const double *vector, size_t length, const double *axes, size_t count, double *values);

/* Smallest and largest element so far, ignoring NaN; initially +inf and -inf. */
typedef struct prim_range {
  double low, high;
} prim_range;

enum { PRIM_LEVELS = 256 };

/* Functions of one instruction set. Arrays of four are indexed by prim_element; arrays of two by its last bit: U8 and
 * U16, or F32 and F64. */
typedef struct prim_ops {
  const char *name;
  /* Returns the exact sum of n elements of u8 or u16. */
  uint64_t (*sum[2])(const void *x, size_t n);
  /* Computes the ceil(n / PRIM_CHUNK) sums of the chunks of n elements of f32 or f64. */
  void (*sum_chunks[2])(const void *x, size_t n, double *sums);
  /* Widens the range by n elements. */
  void (*range[4])(const void *x, size_t n, prim_range *range);
  /* Returns the number of the n elements that are above the threshold. */
  uint64_t (*count_above[4])(const void *x, size_t n, double threshold);
  /* Computes sum, range and count of a tile of u8, without the mean. */
  void (*tile_u8)(const prim_view *tile, double threshold, prim_tile *out);
  /* Adds the histogram of a u8 picture to counts. mask: of the same size, or data null. */
  void (*histogram)(const prim_view *picture, const prim_view *mask, uint64_t counts[PRIM_LEVELS]);
  /* Computes out[i] = table[in[i]]; out may be in. */
  void (*map)(const uint8_t *in, uint8_t *out, size_t n, const uint8_t table[PRIM_LEVELS]);
  /* Computes y[0..n-1] from x[0..n+m-2], which begins r samples before y: y[i] = sum of c[j] x[i + 2r - j]. */
  void (*convolve[2])(const void *x, void *y, size_t n, const double *taps, size_t m);
} prim_ops;

#endif
