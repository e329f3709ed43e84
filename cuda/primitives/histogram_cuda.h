/*
 * Histogram of 256 bins and equalisation of 8-bit pictures on the device, as stages/primitives.h says.
 */
#ifndef HARTSIFT_CUDA_PRIMITIVES_HISTOGRAM_CUDA_H
#define HARTSIFT_CUDA_PRIMITIVES_HISTOGRAM_CUDA_H

#include "cuda/runtime/stream.h"
#include "stages/primitives.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  HISTOGRAM_BINS = 256,
  /* Pictures that take at most so many aligned vectors of 16 bytes a multiprocessor are small: a histogram a block.
     That, of noise, against a histogram a lane on an H200 (132 multiprocessors): 640 x 480 (145 vectors) 2.04 us
     against 2.44, 1200 x 1000 (568) 2.73 against 2.70, 1920 x 1080 (982) 3.13 against 2.98, 2560 x 1600 4.27 against
     3.34. */
  HISTOGRAM_SMALL_VECTORS = 400,
  /* Others up to so many are medium, with half as many vectors in flight as large ones: 1280 x 960 2.70 us against
     2.96, 3840 x 2160 (3927 vectors) 4.29 against 4.37. */
  HISTOGRAM_MEDIUM_VECTORS = 4096,
  HISTOGRAM_TALLY_WARPS = 8,
  /* 4 KiB, of which a warp uses 128 or 256 bytes. With neighbouring tallies small pictures of 640 x 480 took 2.46 us:
     additions crowd in one part of the L2. */
  HISTOGRAM_TALLY_WORDS = 512
};

/* Device memory, 256-byte aligned, all zero before its first use; each launch leaves it zero again, so that launches
   which follow one another may share it. */
typedef struct histogram_scratch {
  uint64_t tallies[HISTOGRAM_TALLY_WARPS][HISTOGRAM_TALLY_WORDS]; /* a warp's 32 bins each, of 32 bits if small */
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
