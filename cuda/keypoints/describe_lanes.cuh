/*
 * A feature's bins, four to each lane of its warp: cropping, clipping, pooling and writing.
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_DESCRIBE_LANES_CUH
#define HARTSIFT_CUDA_KEYPOINTS_DESCRIBE_LANES_CUH

#include "cuda/keypoints/describe_votes.cuh"
#include "cuda/keypoints/frame_view.h"

/* A lane's entries of the histogram, 4 lane .. 4 lane + 3 in the order of the output. */
typedef struct lane_bins {
  int32_t h[4];
} lane_bins;

/* Of one warp's votes, not yet cut off at zero. */
template <int COPIES>
static __device__ __forceinline__ lane_bins describe_inner_lane(const int32_t *votes, bool vlfeat_layout) {
  lane_bins bins;
#pragma unroll
  for (int32_t j = 0; j < 4; j++) {
    const int32_t i = 4 * (int32_t)(threadIdx.x % WARP_LANES) + j;
    bins.h[j] = describe_inner<COPIES>(votes, vlfeat_layout ? describe_vlfeat_index(i) : i);
  }
  return bins;
}

static __device__ __forceinline__ void describe_cut_lane(lane_bins *bins) {
#pragma unroll
  for (int32_t j = 0; j < 4; j++) bins->h[j] = max(bins->h[j], 0);
}

/* Clips the bins; returns what brings those of all lanes to unit norm. */
static __device__ __forceinline__ float describe_clip_lane(lane_bins *bins, bool root) {
  uint64_t squares = 0, clipped_squares = 0;
  uint32_t clipped_sum = 0; /* all votes together stay below 2^31 */
#pragma unroll
  for (int32_t j = 0; j < 4; j++) squares += (uint64_t)((int64_t)bins->h[j] * bins->h[j]);
  const int32_t clip = describe_clip(warp_reduce_sum_u64(squares));
#pragma unroll
  for (int32_t j = 0; j < 4; j++) {
    const int32_t h = min(bins->h[j], clip);
    clipped_squares += (uint64_t)((int64_t)h * h);
    clipped_sum += (uint32_t)h;
    bins->h[j] = h;
  }
  return describe_factor(warp_reduce_sum_u64(clipped_squares), warp_reduce_sum(clipped_sum), root);
}

/* Adds the histogram of one size to the pooled one. */
static __device__ __forceinline__ void describe_pool_lane(lane_bins *pooled, lane_bins one) {
  describe_cut_lane(&one);
  const float factor = describe_clip_lane(&one, false);
#pragma unroll
  for (int32_t j = 0; j < 4; j++) pooled->h[j] += domain_share(one.h[j], factor);
}

/* Clips and normalises; the warp writes whole lines of 128 bytes. */
static __device__ __forceinline__ void describe_write(lane_bins bins, const sift_params *p, size_t n,
                                                      const cuda_outputs *outputs) {
  const float factor = describe_clip_lane(&bins, p->root);
  float v[4];
  int32_t b[4];
#pragma unroll
  for (int32_t j = 0; j < 4; j++) {
    v[j] = describe_value(bins.h[j], factor, p->root);
    b[j] = describe_byte(v[j], p->descriptor_rule);
    if (p->descriptor_rule == RULE_OPENCV) v[j] = (float)b[j];
  }
  const size_t at = n * WARP_LANES + (size_t)(threadIdx.x % WARP_LANES);
  void *descriptors = outputs->descriptors; /* read here, because registers are scarce before */
  if (p->descriptor_float)
    ((float4 *)descriptors)[at] = make_float4(v[0], v[1], v[2], v[3]);
  else
    ((uchar4 *)descriptors)[at] = make_uchar4((uint8_t)b[0], (uint8_t)b[1], (uint8_t)b[2], (uint8_t)b[3]);
}

#endif
