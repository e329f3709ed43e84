/*
 * Primitives on the device, as stages/primitives.h defines them: sum, mean, range, tiles, histogram, equalisation
 * and convolution.
 */
#ifndef HARTSIFT_CUDA_PRIMITIVES_PRIMITIVES_CUDA_H
#define HARTSIFT_CUDA_PRIMITIVES_PRIMITIVES_CUDA_H

#include "cuda/runtime/device.h"
#include "stages/primitives.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct reduce_args {
  prim_view view; /* rows without padding have height 1 */
  reduce_kind kind;
  double *first;    /* device: the sum, the mean or the minimum; null: the minimum is not wanted */
  double *second;   /* device: the maximum; null: not wanted */
  void *scratch;    /* device, 256-byte aligned, reduce_scratch_bytes(args) bytes */
  uint32_t *ticket; /* device: 0 before every launch, and 0 again after it */
  int32_t processors;
} reduce_args;

size_t reduce_scratch_bytes(const reduce_args *args);

/* Makes a reduction of any type. One launch; two or three for a sum of more than 2^20 elements of f32 or f64. */
stage_status reduce_launch(const reduce_args *args, cuda_stream stream);

/* The separate kernels. Any kind of reduction of u8 and u16: */
stage_status reduce_integers_launch(const reduce_args *args, cuda_stream stream);
/* The range of f32 or f64: */
stage_status reduce_range_launch(const reduce_args *args, cuda_stream stream);
/* For f32 and f64: writes the sums of all chunks to `sums`. If there are at most PRIM_CHUNK of them, also writes
 * the final sum to *args->first, for a mean divided by `count`. */
stage_status reduce_sum_launch(const reduce_args *args, double *sums, uint64_t count, cuda_stream stream);

/* Statistics of every tile of a view, on the device: prim_tile as stages/primitives.h says. */

typedef struct tile_stats_args {
  prim_view view;
  size_t tile_width, tile_height; /* 1 or more, at most the view's */
  double threshold;
  prim_tile *tiles; /* device: the first `count` tiles, row by row */
  uint64_t count;   /* 1 or more, at most the number of tiles */
  void *scratch;    /* device, 256-byte aligned; null where tile_stats_scratch_bytes is 0 */
  int32_t processors;
} tile_stats_args;

/* Returns the bytes of scratch: large tiles are shared by several blocks or warps, which combine results there. */
size_t tile_stats_scratch_bytes(const tile_stats_args *args);

/* One launch. With scratch memory two launches, or three for tiles of more than 2^20 elements that are not bytes. */
stage_status tile_stats_launch(const tile_stats_args *args, cuda_stream stream);

/* The separate kernels. In each group the last one completes the results that the first left in scratch memory. u8: */
stage_status tile_bytes_launch(const tile_stats_args *args, cuda_stream stream);
stage_status tile_bytes_finish_launch(const tile_stats_args *args, cuda_stream stream);
/* u16, f32, f64: */
stage_status tile_chunks_launch(const tile_stats_args *args, cuda_stream stream);
stage_status tile_chunks_floor_launch(const tile_stats_args *args, cuda_stream stream); /* if needed: between the two */
stage_status tile_chunks_finish_launch(const tile_stats_args *args, cuda_stream stream);
/* f32, small tiles, which tile_chunks_launch skips: */
stage_status tile_floats_launch(const tile_stats_args *args, cuda_stream stream);

/* Histogram of 256 bins and equalisation of 8-bit pictures on the device, as stages/primitives.h says. */

enum {
  HISTOGRAM_BINS = 256,
  /* Pictures with at most this number of aligned 16-byte vectors per multiprocessor are small: one histogram per
   * block. Its time, on noise, compared with one histogram per lane on an H200 (132 multiprocessors): 640 x 480
   * (145 vectors) 2.04 us against 2.44, 1200 x 1000 (568) 2.73 against 2.70, 1920 x 1080 (982) 3.13 against 2.98,
   * 2560 x 1600 4.27 against 3.34. */
  HISTOGRAM_SMALL_VECTORS = 400,
  /* Others up to so many are medium, with half as many vectors in flight as large ones: 1280 x 960 2.70 us against
     2.96, 3840 x 2160 (3927 vectors) 4.29 against 4.37. */
  HISTOGRAM_MEDIUM_VECTORS = 4096,
  HISTOGRAM_TALLY_WARPS = 8,
  /* 4 KiB, of which a warp uses 128 or 256 bytes. With adjacent tallies small pictures of 640 x 480 took 2.46 us,
   * because additions concentrate in one part of the L2. */
  HISTOGRAM_TALLY_WORDS = 512
};

/* Device memory, 256-byte aligned, all zero before its first use; each launch leaves it zero again, so that consecutive
 * launches may share it. */
typedef struct histogram_scratch {
  uint64_t tallies[HISTOGRAM_TALLY_WARPS][HISTOGRAM_TALLY_WORDS]; /* each warp's 32 bins; 32-bit tallies for small
                                                                   * pictures */
} histogram_scratch;

typedef struct histogram_args {
  prim_view view;   /* u8 */
  const void *mask; /* u8 of the same size, or null */
  size_t mask_stride_bytes;
  uint64_t *counts; /* device: [256] */
  histogram_scratch *scratch;
  int32_t processors;
} histogram_args;

stage_status histogram_launch(const histogram_args *args, cuda_stream stream);

typedef struct equalize_args {
  prim_view view;         /* u8 */
  const uint64_t *counts; /* device: [256], its histogram */
  uint8_t *out;           /* device: the picture itself or disjoint memory */
  size_t out_stride_bytes;
  int32_t processors;
} equalize_args;

stage_status equalize_launch(const equalize_args *args, cuda_stream stream);

/* 1-D convolution of rows on the device, as stages/primitives.h says. */

/* Maximum taps passed as launch arguments; more are read from device memory. */
enum { CONVOLVE_INLINE_TAPS = 255 };

typedef struct convolve_args {
  prim_view signal;     /* f32 or f64 */
  const double *taps;   /* host, [tap_count], rounded to the signal's type; read during the call */
  const double *d_taps; /* device, the same taps; may be null if there are at most CONVOLVE_INLINE_TAPS */
  uint32_t tap_count;   /* odd, 1..PRIM_TAPS_MAX */
  prim_ends ends;
  void *out; /* device, disjoint from the signal */
  size_t out_stride_bytes;
} convolve_args;

/* Chooses the kernel by the number of taps. */
stage_status convolve_launch(const convolve_args *args, cuda_stream stream);

/* The first takes at most PRIM_TREE_TAPS_MAX taps, the second more. */
stage_status convolve_tree_launch(const convolve_args *args, cuda_stream stream);
stage_status convolve_long_launch(const convolve_args *args, cuda_stream stream);

#ifdef __cplusplus
}
#endif

#endif
