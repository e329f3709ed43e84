/*
 * Histogram of 256 bins and equalisation of 8-bit pictures on the device, as stages/primitives.h says.
 */
#ifndef HS_CUDA_HISTOGRAM_CUDA_H
#define HS_CUDA_HISTOGRAM_CUDA_H

#include "cuda/stream.h"
#include "stages/primitives.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  HISTOGRAM_BINS = 256,
  /* Pictures that take at most so many aligned vectors of 16 bytes a multiprocessor are small, counted in a way of
     their own. That against the way of large ones on an H200 (132 multiprocessors): 320 x 240 1.85 us against 3.38,
     640 x 480 1.98 against 3.92, 1280 x 960 (582 vectors) 2.66 against 4.60. */
  HISTOGRAM_SMALL_VECTORS = 600,
  HISTOGRAM_TALLY_WARPS = 8,
  /* 4 KiB, of which a warp uses 128 bytes. With neighbouring tallies the three sizes above took 1.84, 2.46 and 3.54 us:
     additions crowd in one part of the L2. */
  HISTOGRAM_TALLY_WORDS = 1024
};

/* Device memory, 256-byte aligned, all zero before its first use; launches of either way leave it zero again, so that
   launches which follow one another may share it. */
typedef struct histogram_scratch {
  uint32_t ticket;
  uint32_t unused[63];
  uint64_t sums[HISTOGRAM_BINS];                                  /* large pictures */
  uint32_t tallies[HISTOGRAM_TALLY_WARPS][HISTOGRAM_TALLY_WORDS]; /* small ones: a warp's 32 bins each */
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
  uint8_t *out;           /* device: the picture itself or memory apart from it */
  size_t out_stride_bytes;
  int32_t processors;
} equalize_args;

stage_status equalize_launch(const equalize_args *args, cuda_stream stream);

#ifdef __cplusplus
}
#endif
#endif
