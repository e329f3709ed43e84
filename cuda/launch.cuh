/*
 * What launchers of the pyramid share: grids and shared-memory limits.
 */
#ifndef HARTSIFT_CUDA_LAUNCH_CUH
#define HARTSIFT_CUDA_LAUNCH_CUH

#include "cuda/launch_shape.h"

enum { GRID_Y_MAX = 65535 };

static inline int32_t launch_parts(int32_t n, int32_t part) { return n / part + (n % part != 0); }

/* A grid over columns and rows; more rows than the hardware's grid can have are left to a loop in the kernel. */
static inline dim3 launch_grid_2d(int32_t columns, int32_t columns_a_block, int32_t rows, int32_t rows_a_block) {
  const int32_t y = launch_parts(rows, rows_a_block);
  return dim3((unsigned)launch_parts(columns, columns_a_block), (unsigned)(y < GRID_Y_MAX ? y : GRID_Y_MAX));
}

/* A plane of another picture of a group; null stays null. */
template <class T> static __device__ __forceinline__ T *group_shifted(T *plane, size_t bytes) {
  return plane ? reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(plane) + bytes) : plane;
}

/* Lets a kernel have that much dynamic shared memory. */
static inline stage_status launch_prepare(const void *kernel, int32_t shared_bytes) {
  const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  return error == cudaSuccess ? STAGE_OK : STAGE_DEVICE;
}

/* Multiprocessors of the current device; 1 when that cannot be told. */
static inline int32_t launch_multiprocessors(void) {
  int device = 0, count = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return 1;
  if (cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) != cudaSuccess) return 1;
  return count > 0 ? count : 1;
}

#endif
