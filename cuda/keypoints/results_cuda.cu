/* Results kernel: the lists as public records. */
#include "cuda/keypoints/results_cuda.h"

#include "cuda/runtime/launch.cuh"
#include "cuda/prim/warp_reduce.cuh"

enum { RESULTS_THREADS = 128, RECORD_WORDS = 6, RECORD_QUADS = 48 /* of 32 records */ };
static_assert(sizeof(cuda_feature_record) == 24 && sizeof(cuda_feature_frame) == 16, "layouts are the public ones");

/*
 * Does      features -> records and, with shapes, frames; counts.
 * Launch    resident blocks of 4 warps, a warp 32 features at a time.
 * Shared    768 bytes a warp, so that records leave in 16-byte stores of whole lines.
 * Reads     outputs, features, keypoints, shapes, counts. Writes records, frames, counts: device memory or mapped host
 *           memory.
 * Barriers  warp only, around the staging.
 * Limits    features beyond the list's capacity are only counted.
 * Order     repeatable. Cost: 24 bytes out a feature, 40 with a frame; into host memory bound by the bus.
 */
template <bool GROUP>
__global__ void __launch_bounds__(RESULTS_THREADS)
    results_kernel(const __grid_constant__ cuda_frame_view one, const cuda_outputs *outputs,
                   cuda_frame_counts *all_counts) {
  const cuda_frame_view &v = CUDA_VIEW_OF_BLOCK(GROUP, one);
  /* Each picture of a group has room for its list. */
  cuda_feature_record *records = outputs->records + (GROUP ? (size_t)blockIdx.z * v.features.capacity : 0);
  float4 *frames =
      v.shapes ? (float4 *)outputs->frames + (GROUP ? (size_t)blockIdx.z * v.features.capacity : 0) : nullptr;
  cuda_frame_counts *counts = GROUP ? all_counts + blockIdx.z : all_counts;
  __shared__ __align__(16) uint32_t s_words[RESULTS_THREADS * RECORD_WORDS];
  const uint32_t lane = threadIdx.x % WARP_LANES;
  uint32_t *s_warp = s_words + threadIdx.x / WARP_LANES * WARP_LANES * RECORD_WORDS;
  if (blockIdx.x == 0 && threadIdx.x == 0)
    *(uint4 *)counts = make_uint4(*v.scratch.candidate_count, *v.keypoints.count, *v.oriented.count, *v.features.count);
  const uint32_t count = min(*v.features.count, v.features.capacity);
  for (uint32_t first = blockIdx.x * RESULTS_THREADS + threadIdx.x - lane; first < count;
       first += gridDim.x * RESULTS_THREADS) {
    const uint32_t n = first + lane;
    if (n < count) {
      const uint32_t k = v.features.keypoint[n];
      uint32_t *word = s_warp + lane * RECORD_WORDS;
      word[0] = __float_as_uint(v.keypoints.x[k]);
      word[1] = __float_as_uint(v.keypoints.y[k]);
      word[2] = __float_as_uint(v.keypoints.sigma[k]);
      word[3] = __float_as_uint(v.features.orientation[n]);
      word[4] = __float_as_uint(v.keypoints.response[k]);
      word[5] = (uint32_t)(uint16_t)v.keypoints.octave[k] | (uint32_t)(uint16_t)v.keypoints.level[k] << 16;
      if (frames) {
        float a[4];
        affine_frame_of(&v.shapes[k], v.keypoints.sigma[k], v.features.orientation[n], a);
        frames[n] = make_float4(a[0], a[1], a[2], a[3]);
      }
    }
    __syncwarp();
    uint32_t *out = (uint32_t *)(records + first);
    const uint32_t words = min(count - first, (uint32_t)WARP_LANES) * RECORD_WORDS;
    for (uint32_t i = lane; i < RECORD_QUADS; i += WARP_LANES)
      if (4u * i + 4u <= words)
        ((uint4 *)out)[i] = ((const uint4 *)s_warp)[i];
      else if (4u * i < words)
        ((uint2 *)out)[2u * i] = ((const uint2 *)s_warp)[2u * i]; /* an odd count ends in 8 bytes */
    __syncwarp();
  }
}

stage_status cuda_results_launch(const cuda_frame_view *view, const cuda_outputs *outputs, cuda_frame_counts *counts,
                                 cuda_stream stream) {
  assert(outputs && counts && (uintptr_t)counts % 16u == 0);
  const unsigned resident = launch_resident_blocks((const void *)results_kernel<false>, RESULTS_THREADS, 0);
  const unsigned tiles = (view->features.capacity + RESULTS_THREADS - 1u) / RESULTS_THREADS;
  const unsigned share = cuda_group_share(view, resident);
  const dim3 blocks(tiles < share ? tiles : share, 1, cuda_group_count(view));
  return launch(view->group > 1 ? results_kernel<true> : results_kernel<false>, blocks, RESULTS_THREADS, 0, stream,
                *view, outputs, counts);
}
