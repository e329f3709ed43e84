/*
 * The patch of a keypoint's affine shape, by a warp, in shared memory.
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_AFFINE_PATCH_CUH
#define HARTSIFT_CUDA_KEYPOINTS_AFFINE_PATCH_CUH

#include "cuda/prim/warp_reduce.cuh"
#include "stages/affine.h"

/* SIDE x SIDE samples in rows of PITCH floats: affine_patch_ref. Lanes lie along the side of the patch that crosses fewer
   rows of the level. All 32 lanes; __syncwarp before others read. */
template <int SIDE, int PITCH>
static __device__ __forceinline__ void affine_patch_fill(float *patch, const plane_view *level, const patch_map *m) {
  const float middle = 0.5f * (float)(SIDE - 1);
  const bool turned = fabsf(m->a21) > fabsf(m->a22);
#pragma unroll 4 /* reads of four samples are in flight at once */
  for (int32_t t = (int32_t)(threadIdx.x % WARP_LANES); t < SIDE * SIDE; t += WARP_LANES) {
    const int32_t line = t / SIDE, within = t % SIDE, i = turned ? line : within, j = turned ? within : line;
    const float u = (float)i - middle, v = (float)j - middle;
    const float x = hs_fmaf(m->a11, u, hs_fmaf(m->a12, v, m->x)), y = hs_fmaf(m->a21, u, hs_fmaf(m->a22, v, m->y));
    patch[j * PITCH + i] = affine_sample(level, x, y);
  }
}

#endif
