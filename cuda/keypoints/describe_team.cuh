/*
 * Two warps that share a feature, for frames of few features: with a warp each, most warps would have one feature or two,
 * and the device would wait for the last ones.
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_DESCRIBE_TEAM_CUH
#define HARTSIFT_CUDA_KEYPOINTS_DESCRIBE_TEAM_CUH

#include "cuda/prim/warp_reduce.cuh"

enum {
  TEAM_WARPS = 2,
  TEAM_ROUNDS = 3 /* features a warp, below which teams pay */
};

/* Waits for both warps of a team; a block has two teams. The barriers' numbers are constants, because a block where they
   are not is given all sixteen, and then fewer blocks are resident. */
static __device__ __forceinline__ void team_meet(void) {
  if (threadIdx.x < TEAM_WARPS * WARP_LANES)
    asm volatile("bar.sync 1, %0;" ::"n"(TEAM_WARPS * WARP_LANES) : "memory");
  else
    asm volatile("bar.sync 2, %0;" ::"n"(TEAM_WARPS * WARP_LANES) : "memory");
}

#endif
