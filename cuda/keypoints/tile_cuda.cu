/* Kernels of tiles: which candidates stay, and the lists for the host. */
#include "cuda/keypoints/tile_cuda.h"

#include "cuda/runtime/launch.cuh"
#include "cuda/keypoints/mask_site.cuh"

enum { TILE_THREADS = 256 };

/* The bits of a word, whose first one is the sample s, that lie in a region. */
static __device__ __forceinline__ uint32_t bits_in(const plane_region &r, const mask_site *s) {
  const int32_t first = max(r.x0 - s->x, 0), end = min(r.x1 - s->x, 32);
  if (s->y < r.y0 || s->y >= r.y1 || first >= end) return 0;
  return (0xffffffffu >> (32 - (end - first))) << first;
}

/*
 * Does      the candidates of a tile without those that lie about it, which its neighbours find; or the seed alone.
 * Launch    ceil(mask_words / 256) blocks of 256 threads, a mask word a thread.
 * Shared    none.
 * Reads     candidate_words. Writes candidate_words, those behind the last row as 0.
 * Barriers  none.
 * Limits    a view of a part; any size.
 * Order     no sums.
 * Cost      8 bytes of traffic for each mask word: bound by memory.
 */
__global__ void __launch_bounds__(TILE_THREADS) tile_candidates_kernel(const __grid_constant__ cuda_frame_view v) {
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

stage_status cuda_tile_candidates_launch(const cuda_frame_view *view, cuda_stream stream) {
  assert(view->part.tiled && view->mask_words > 0);
  const dim3 blocks((view->mask_words + TILE_THREADS - 1u) / TILE_THREADS);
  return launch(tile_candidates_kernel, blocks, TILE_THREADS, 0, stream, *view);
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
 * Does      keypoints, shapes, features, strays and counts of a tile -> memory of the host.
 * Launch    resident blocks of 256 threads, looping over the counts.
 * Shared    none.
 * Reads     the view's lists and counts. Writes lists, a line of 128 bytes (64 of octaves and levels) a warp and array.
 * Barriers  none.
 * Limits    what lies beyond a capacity is only counted.
 * Order     repeatable but for the strays', which come as refinement left them.
 * Cost      36 bytes out a keypoint, 48 with a shape, 8 a feature: bound by the bus.
 */
__global__ void __launch_bounds__(TILE_THREADS)
    tile_lists_kernel(const __grid_constant__ cuda_frame_view v, const __grid_constant__ cuda_tile_lists to) {
  const uint32_t keypoints = *v.keypoints.count, features = *v.features.count, strays = *v.part.stray_count;
  const uint32_t first = blockIdx.x * TILE_THREADS + threadIdx.x, step = gridDim.x * TILE_THREADS;
  if (first == 0) *(uint4 *)to.counts = make_uint4(*v.scratch.candidate_count, keypoints, features, strays);
  for (uint32_t i = first; i < min(keypoints, v.keypoints.capacity); i += step)
    copy_keypoint(to.keypoints, v.keypoints, i);
  for (uint32_t i = first; v.shapes && i < min(keypoints, v.keypoints.capacity); i += step) to.shapes[i] = v.shapes[i];
  for (uint32_t i = first; i < min(features, v.features.capacity); i += step) {
    to.features.keypoint[i] = v.features.keypoint[i];
    to.features.orientation[i] = v.features.orientation[i];
  }
  for (uint32_t i = first; i < min(strays, v.part.stray_capacity); i += step) to.strays[i] = v.part.strays[i];
}

stage_status cuda_tile_lists_launch(const cuda_frame_view *view, const cuda_tile_lists *lists, cuda_stream stream) {
  assert(view->part.tiled && (uintptr_t)lists->counts % 16u == 0);
  const unsigned resident = launch_resident_blocks((const void *)tile_lists_kernel, TILE_THREADS, 0);
  const unsigned tiles = (view->features.capacity + TILE_THREADS - 1u) / TILE_THREADS;
  const dim3 blocks(tiles < resident ? tiles : resident);
  return launch(tile_lists_kernel, blocks, TILE_THREADS, 0, stream, *view, *lists);
}
