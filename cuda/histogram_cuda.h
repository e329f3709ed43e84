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

enum { HISTOGRAM_BINS = 256 };

/* Device memory, 256-byte aligned, all zero before its first use; launches leave it zero again, so that launches which
   follow one another may share it. */
typedef struct histogram_scratch {
  uint32_t ticket;
  uint32_t unused[63];
  uint64_t sums[HISTOGRAM_BINS];
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
