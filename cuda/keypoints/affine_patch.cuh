/*
 * The patch of a keypoint's affine shape, by a warp, in shared memory.
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_AFFINE_PATCH_CUH
#define HARTSIFT_CUDA_KEYPOINTS_AFFINE_PATCH_CUH

#include "cuda/prim/warp_reduce.cuh"
#include "stages/affine.h"

/* As affine_sample where the sample and its neighbours lie inside. */
static __device__ __forceinline__ float affine_sample_inside(const plane_view *p, float x, float y) {
  const int32_t i = (int32_t)x, j = (int32_t)y, stride = (int32_t)p->stride;
  const float fx = x - (float)i, fy = y - (float)j;
  const float *at = p->data + (size_t)j * p->stride + (size_t)i;
  const float upper = hs_fmaf(fx, at[1] - at[0], at[0]);
  const float lower = hs_fmaf(fx, at[stride + 1] - at[stride], at[stride]);
  return hs_fmaf(fy, lower - upper, upper);
}

/* Whether the whole patch is sampled between samples of the level, with room for every rounding. */
static __device__ __forceinline__ bool affine_patch_inside(const plane_view *level, const patch_map *m, float middle) {
  const float wide = (fabsf(m->a11) + fabsf(m->a12)) * middle + 1.0f;
  const float high = (fabsf(m->a21) + fabsf(m->a22)) * middle + 1.0f;
  return m->x > wide && m->y > high && m->x + wide < (float)(level->width - 1) &&
         m->y + high < (float)(level->height - 1);
}

/* SIDE x SIDE samples in rows of PITCH floats: affine_patch_ref. Lanes lie along the side of the patch that crosses fewer
   rows of the level. All 32 lanes; __syncwarp before others read. */
template <int SIDE, int PITCH>
static __device__ __forceinline__ void affine_patch_fill(float *patch, const plane_view *level, const patch_map *m) {
  const float middle = 0.5f * (float)(SIDE - 1);
  const bool inside = affine_patch_inside(level, m, middle), turned = fabsf(m->a21) > fabsf(m->a22);
  for (int32_t t = (int32_t)(threadIdx.x % WARP_LANES); t < SIDE * SIDE; t += WARP_LANES) {
    const int32_t line = t / SIDE, within = t % SIDE, i = turned ? line : within, j = turned ? within : line;
    const float u = (float)i - middle, v = (float)j - middle;
    const float x = hs_fmaf(m->a11, u, hs_fmaf(m->a12, v, m->x)), y = hs_fmaf(m->a21, u, hs_fmaf(m->a22, v, m->y));
    patch[j * PITCH + i] = inside ? affine_sample_inside(level, x, y) : affine_sample(level, x, y);
  }
}

#endif
