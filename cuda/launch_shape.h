/*
 * Launches of kernels, and how large a grid of resident blocks is: for kernels that loop over a count which only the
 * device knows.
 */
#ifndef HARTSIFT_CUDA_LAUNCH_SHAPE_H
#define HARTSIFT_CUDA_LAUNCH_SHAPE_H

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

/* Launches a kernel; the status is the launch's own. After <<<>>> there would only be the thread's last error to ask for,
   and that may be an application's, which shares the runtime in a static build, or one of long ago. Arguments are
   converted to the kernel's parameters as in a call. */
template <class... PARAMETERS, class... ARGUMENTS>
static inline stage_status launch(void (*kernel)(PARAMETERS...), dim3 grid, dim3 block, size_t shared_bytes,
                                  cudaStream_t stream, const ARGUMENTS &...arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, arguments...) == cudaSuccess ? STAGE_OK : STAGE_DEVICE;
}

#endif
