/* Kernels for tiles, and the results kernel. */
#include "cuda/keypoints/keypoints_kernels.h"
#include "cuda/keypoints/work_items.cuh"
#include "cuda/prim/reductions.cuh"
#include "cuda/runtime/launch.h"

/* Kernels for tiles: the candidates to keep, and the lists for the host. */

/* Returns the bits of a mask word whose samples are in a region. s: the word's first sample. */
static __device__ __forceinline__ uint32_t bits_in(const plane_region &r, const mask_site *s) {
  const int32_t first = max(r.x0 - s->x, 0), end = min(r.x1 - s->x, 32);
  if (s->y < r.y0 || s->y >= r.y1 || first >= end) return 0;
  return (0xffffffffu >> (32 - (end - first))) << first;
}

/*
 * Does      keeps only the candidates inside a tile, because neighbouring tiles find the others; with a seed, keeps
 *           only the seed.
 * Launch    ceil(mask_words / 256) blocks of 256 threads, a mask word a thread.
 * Shared    none.
 * Reads     candidate_words. Writes candidate_words, with 0 after the last row.
 * Barriers  none.
 * Limits    a view of a part; any size.
 * Order     no sums.
 * Cost      8 bytes of traffic for each mask word: bound by memory.
 */
extern "C" __global__ void __launch_bounds__(TILE_THREADS)
    tile_candidates_kernel(const __grid_constant__ cuda_frame_view v) {
  const uint32_t word = blockIdx.x * TILE_THREADS + threadIdx.x;
  if (word >= v.mask_words) return;
  mask_site s;
  uint32_t bits = mask_site_of(v, word, 0, &s) ? bits_in(v.part.search, &s) : 0u;
  if (v.part.seed.level > 0) {
    if (s.level != v.part.seed.level) bits = 0;
  } else {
    bits &= v.candidate_words[word];
  }
  v.candidate_words[word] = bits;
}

static __device__ __forceinline__ void copy_keypoint(const keypoint_list &to, const keypoint_list &from, uint32_t i) {
  to.x[i] = from.x[i];
  to.y[i] = from.y[i];
  to.sigma[i] = from.sigma[i];
  to.response[i] = from.response[i];
  to.column[i] = from.column[i];
  to.row[i] = from.row[i];
  to.octave[i] = from.octave[i];
  to.level[i] = from.level[i];
}

/*
 * Does      copies keypoints, shapes, features, escaped candidates and counts of a tile to host memory.
 * Launch    resident blocks of 256 threads, looping over the counts.
 * Shared    none.
 * Reads     the view's lists and counts. Writes lists; one warp writes a line of 128 bytes of an array (64 of
 *           octaves and levels).
 * Barriers  none.
 * Limits    entries beyond a capacity are only counted.
 * Order     repeatable, except for escaped candidates, which keep refinement's order.
 * Cost      36 bytes written per keypoint, 48 with a shape, 8 per feature: bound by the bus.
 */
extern "C" __global__ void __launch_bounds__(TILE_THREADS)
    tile_lists_kernel(const __grid_constant__ cuda_frame_view v, const __grid_constant__ cuda_tile_lists to) {
  const uint32_t keypoints = *v.keypoints.count, features = *v.features.count, escaped = *v.part.escaped_count;
  const uint32_t first = blockIdx.x * TILE_THREADS + threadIdx.x, step = gridDim.x * TILE_THREADS;
  if (first == 0) *(uint4 *)to.counts = make_uint4(*v.scratch.candidate_count, keypoints, features, escaped);
  for (uint32_t i = first; i < min(keypoints, v.keypoints.capacity); i += step)
    copy_keypoint(to.keypoints, v.keypoints, i);
  for (uint32_t i = first; v.shapes && i < min(keypoints, v.keypoints.capacity); i += step) to.shapes[i] = v.shapes[i];
  for (uint32_t i = first; i < min(features, v.features.capacity); i += step) {
    to.features.keypoint[i] = v.features.keypoint[i];
    to.features.orientation[i] = v.features.orientation[i];
  }
  for (uint32_t i = first; i < min(escaped, v.part.escaped_capacity); i += step) to.escaped[i] = v.part.escaped[i];
}

/* Results kernel: the lists as public records. */

enum { RECORD_WORDS = 6, RECORD_QUADS = 48 /* sizes for 32 records */ };
static_assert(sizeof(cuda_feature_record) == 24 && sizeof(cuda_feature_frame) == 16, "layouts are the public ones");

/*
 * Does      writes features as records and, with shapes, as frames; also the counts.
 * Launch    resident blocks of 4 warps; a warp takes 32 features at a time.
 * Shared    768 bytes per warp, so that records are written in 16-byte stores of complete lines.
 * Reads     outputs, features, keypoints, shapes, counts. Writes records, frames, counts: device memory or mapped host
 *           memory.
 * Barriers  warp only, around the staging.
 * Limits    features beyond the list's capacity are only counted.
 * Order     repeatable. Cost: 24 bytes written per feature, 40 with a frame; bound by the bus if written to host
 *           memory.
 */
template <bool GROUP>
static __device__ __forceinline__ void write_results(const cuda_frame_view &one, const cuda_outputs *outputs,
                                                     cuda_frame_counts *all_counts) {
  const cuda_frame_view &v = CUDA_VIEW_OF_BLOCK(GROUP, one);
  /* Each picture of a group has memory for a full list. */
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
        ((uint2 *)out)[2u * i] = ((const uint2 *)s_warp)[2u * i]; /* an odd number of records ends in 8 bytes */
    __syncwarp();
  }
}

#define RESULTS_KERNEL(name, GROUP)                                                                                    \
  extern "C" __global__ void __launch_bounds__(RESULTS_THREADS)                                                        \
      name(const __grid_constant__ cuda_frame_view view, const cuda_outputs *outputs, cuda_frame_counts *counts) {     \
    write_results<GROUP>(view, outputs, counts);                                                                       \
  }
RESULTS_KERNEL(results_kernel, false)
RESULTS_KERNEL(results_group_kernel, true)

FRAME_KERNELS(LAUNCH_CHECK)
