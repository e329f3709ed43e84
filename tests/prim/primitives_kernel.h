/* The kernel of test_cuda_primitives.c: its arguments. */
#ifndef HARTSIFT_TESTS_PRIM_PRIMITIVES_KERNEL_H
#define HARTSIFT_TESTS_PRIM_PRIMITIVES_KERNEL_H

#include "cuda/runtime/launch.h"

enum { ITEMS_MAX = 1024, KEYS = 37, STORED = 40, COPIES_MAX = 32, TILES = 1024 / 32, GROUP = 4 };
typedef struct items {
  int32_t count;
  int32_t key[ITEMS_MAX], vote[ITEMS_MAX];
} items;

typedef struct results {
  uint32_t warp_sum[TILES];
  uint64_t warp_sum64[TILES];
  int32_t warp_min[TILES], warp_max[TILES];
  uint32_t group_sum[ITEMS_MAX];
  uint64_t group_or[ITEMS_MAX];
  int64_t group_max[ITEMS_MAX];
  uint64_t block_first;
  uint32_t block_sum;
  int32_t block_min;
  uint32_t warp_scan[ITEMS_MAX], block_scan[ITEMS_MAX], scan_total, before[TILES];
  uint64_t block_scan64[ITEMS_MAX], scan_total64;
  int32_t warp_hist[KEYS], block_hist[KEYS], copied_hist[3][KEYS];
} results;

#define PRIMITIVES_KERNELS(K) K(primitives_kernel, every_primitive_kernel, const items *, results *)

#endif
