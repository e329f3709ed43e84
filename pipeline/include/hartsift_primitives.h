/*
 * hartsift_primitives.h - reductions, tile statistics, histograms and 1-D convolution; part of hartsift.h.
 *
 * Every instruction set, any number of threads, and the functions for CUDA devices in hartsift_cuda.h give the same
 * bytes. stages/primitives.h defines the arithmetic.
 *
 * context: its threads do the work, and hs_last_error gives its reason of a failure; null: the calling thread does the
 * work. The functions block and use the CPU, also with a context on a GPU. All pointers are host memory, used only
 * during the call. Nothing is allocated; but with a context on a GPU, the first call that needs its CPU threads starts
 * them (HS_ERR_MEMORY, HS_ERR_THREAD). A failure leaves context and outputs unchanged, unless said otherwise.
 */
#ifndef HARTSIFT_PRIMITIVES_H
#define HARTSIFT_PRIMITIVES_H

#include "hartsift_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Types of elements; the first three as hs_sample_type. Values are not scaled. */
typedef enum hs_element {
  HS_ELEMENT_U8 = 0,  /* uint8_t */
  HS_ELEMENT_U16 = 1, /* uint16_t */
  HS_ELEMENT_F32 = 2, /* float */
  HS_ELEMENT_F64 = 3  /* double */
} hs_element;

/* A view of elements in rows. The struct never grows. The order of elements is row by row, each row from the left. */
typedef struct hs_array {
  const void *data;     /* first element; aligned for its type */
  size_t width, height; /* elements in a row, and number of rows: each at least 1, at most 2^40 elements in all; 1-D:
                           height 1 */
  /* bytes from row to row: at least width * element size, and a multiple of the element size; 0: rows without gaps */
  size_t stride_bytes;
  hs_element type; /* type of the elements */
} hs_array;

/* ------------------------------------------------------------------ reductions

   Statuses of all: HS_ERR_ARGUMENT (a null pointer, a wrong size, stride, type or alignment), HS_ERR_LIMIT (more than
   2^40 elements, or beyond the address space), HS_ERR_OPTION (HARTSIFT_CPU names no instruction set of this machine).
   Results are doubles, which hold the sum of any u8 and of up to 2^37 u16
   elements exactly. */

/* Computes the sum. u8, u16: exact in 64 bits, then rounded to double once. f32, f64: by a fixed tree in double, with
   an error of at most 36 L 2^-53 sum|x|, where L is 1 for up to 1024 elements, 2 for up to 2^20, 3 for up to 2^30, 4
   beyond. NaN if an element is NaN or both infinities occur. */
HS_API hs_status hs_reduce_sum(hs_context *context, const hs_array *array, double *sum);
/* Computes the mean: the sum divided by the number of elements. */
HS_API hs_status hs_reduce_mean(hs_context *context, const hs_array *array, double *mean);
/* Find the smallest and the largest element. NaN elements are ignored; the result is NaN if there are no others. A
   zero is returned as +0. */
HS_API hs_status hs_reduce_min(hs_context *context, const hs_array *array, double *minimum);
HS_API hs_status hs_reduce_max(hs_context *context, const hs_array *array, double *maximum);
/* Finds minimum and maximum in one pass. */
HS_API hs_status hs_reduce_range(hs_context *context, const hs_array *array, double *minimum, double *maximum);

/* ------------------------------------------------------------------ tiles */

/* Division of an array into tiles, from its first element on. A row has ceil(array.width / width) tiles, and there are
   ceil(array.height / height) rows of tiles. The last column and the last row may be smaller. Tiles are numbered row by
   row. */
typedef struct hs_tiling {
  size_t width, height; /* size of a tile, elements; 1 or more, may exceed the array's */
  double threshold;     /* threshold of hs_tile.above; NaN: no element is above it */
} hs_tiling;

/* Statistics of one tile. 40 bytes. */
typedef struct hs_tile {
  double sum, mean, min, max; /* results of hs_reduce_sum, _mean, _min and _max for the tile */
  uint64_t above;             /* number of elements > threshold */
} hs_tile;

/* Computes the statistics of every tile. tiles[capacity]: written; may be null with capacity 0, to get only *count,
   the number of tiles. HS_ERR_CAPACITY: more tiles than capacity; the first `capacity` were written, and *count is
   the full number. Statuses: as the reductions, HS_ERR_CAPACITY. */
HS_API hs_status hs_tile_stats(hs_context *context, const hs_array *array, const hs_tiling *tiling, hs_tile *tiles,
                               size_t capacity, size_t *count);

/* ------------------------------------------------------------------ histogram (8-bit) */

/* Counts the elements of array (HS_ELEMENT_U8) with each value into counts[256]. mask: null, or HS_ELEMENT_U8 of the
   same width and height; elements whose mask is 0 are not counted. Statuses: as the reductions. */
HS_API hs_status hs_histogram256(hs_context *context, const hs_array *array, const hs_array *mask,
                                 uint64_t counts[256]);

/* Equalises an 8-bit picture by its histogram, with the bytes of OpenCV's equalizeHist. out: of the picture's size,
   with out_stride_bytes from row to row (0: width); either the picture itself (same data and stride) or memory that
   does not overlap it.
   Statuses: as the reductions. */
HS_API hs_status hs_equalize(hs_context *context, const hs_array *picture, uint8_t *out, size_t out_stride_bytes);

/* ------------------------------------------------------------------ convolution */

/* Continuation of a signal beyond its ends. */
typedef enum hs_ends {
  HS_ENDS_ZERO = 0,      /* zeros */
  HS_ENDS_REPLICATE = 1, /* the outermost sample is repeated */
  /* mirrored at the outermost sample without repeating it: x[-1] = x[1], x[-2] = x[2], and so on, back and forth in a
     short signal; a single sample is repeated */
  HS_ENDS_REFLECT_101 = 2
} hs_ends;

/* Convolves each row of signal (HS_ELEMENT_F32 or F64) with taps: out[i] = sum over j of taps[j] x[i + r - j].
   tap_count = 2 r + 1 is odd, 1..2^24 - 1, and may exceed the row. Taps are rounded to the signal's type. out: type and
   size of the signal, with out_stride_bytes from row to row (0: rows without gaps), not overlapping the signal. Without
   underflow or overflow, the error is at most 4 2^-53 sum|taps[j] x| for F64 and 4 2^-24 sum|taps[j] x| for F32, also
   at the ends. Statuses: as the reductions. */
HS_API hs_status hs_convolve1d(hs_context *context, const hs_array *signal, const double *taps, size_t tap_count,
                               hs_ends ends, void *out, size_t out_stride_bytes);

#ifdef __cplusplus
}
#endif
#endif
