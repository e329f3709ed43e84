/*
 * How large a grid of resident blocks is: for kernels that loop over a count which only the device knows.
 */
#ifndef HS_CUDA_LAUNCH_SHAPE_H
#define HS_CUDA_LAUNCH_SHAPE_H

#include "stages/base.h"

/* Blocks of `threads` that the current device holds at once; at least 1. Legal during stream capture. */
static inline unsigned launch_resident_blocks(const void *kernel, int threads, size_t dynamic_shared_bytes) {
  int device = 0, processors = 0, blocks = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return 1;
  if (cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) != cudaSuccess) return 1;
  if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, dynamic_shared_bytes) != cudaSuccess)
    return 1;
  return processors * blocks > 0 ? (unsigned)(processors * blocks) : 1u;
}

/* The status of the launch just made. */
static inline stage_status launch_status(void) {
  return cudaPeekAtLastError() == cudaSuccess ? STAGE_OK : STAGE_DEVICE;
}

#endif
