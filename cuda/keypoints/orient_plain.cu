/*
 * Orientation histograms without a balance of work, to compare granularities with: a thread a keypoint, or a block. Every
 * sample of the window's square is tested, in rows.
 */
#include "cuda/runtime/launch.cuh"
#include "cuda/keypoints/orient_item.cuh"
#include "cuda/keypoints/orient_steps.h"
#include "cuda/prim/shared_hist.cuh"

enum {
  PLAIN_THREADS = 64,                      /* a block of a thread a keypoint */
  BLOCK_THREADS = 128,                     /* a block that is a keypoint's */
  BLOCK_STORED = (ORIENT_BINS + 3) / 4 * 4 /* bins, as whole vectors */
};

/* One sample's votes, as orient_ref takes them; none outside of the window. */
static __device__ __forceinline__ bool plain_vote(const plane_view *level, const orient_window *w, author_rule rule,
                                                  float scale, int32_t x, int32_t y, orient_vote *vote) {
  const float dx = (float)x - w->x, dy = (float)y - w->y;
  if (!(dx * dx + dy * dy < w->limit)) return false;
  float gx, gy;
  if (rule == RULE_VLFEAT)
    gradient_at_edge(level, x, y, &gx, &gy);
  else
    gradient_at(level, x, y, &gx, &gy);
  *vote = orient_vote_of(gx, gy, window_weight(dx, w->falloff) * (window_weight(dy, w->falloff) * scale), rule);
  return true;
}

/* The part of the window's square within the level. */
typedef struct plain_square {
  int32_t left, top, right, bottom;
} plain_square;

static __device__ __forceinline__ plain_square plain_square_of(const plane_view *level, const orient_window *w) {
  const plain_square square = {max(w->cx - w->radius, w->margin), max(w->cy - w->radius, w->margin),
                               min(w->cx + w->radius, level->width - 1 - w->margin),
                               min(w->cy + w->radius, level->height - 1 - w->margin)};
  return square;
}

/*
 * Does      the orientation histogram of each keypoint, first part of orient_ref.
 * Launch    resident blocks of 64 threads, a thread a keypoint, looping.
 * Shared    9 KiB: a histogram a thread, in a bank of its own.
 * Reads     keypoints, Gaussian levels. Writes histograms, 144 bytes a keypoint.
 * Barriers  none: a thread reads what it wrote.
 * Limits    windows of any radius up to WINDOW_RADIUS_MAX; no keypoints: returns at once. Order: repeatable.
 * Cost      81 sigma^2 samples a keypoint; a warp takes as long as its largest window, and its lanes read far apart.
 */
__global__ void __launch_bounds__(PLAIN_THREADS)
    orient_thread_per_keypoint_kernel(const __grid_constant__ cuda_frame_view v) {
  __shared__ int32_t s_votes[ORIENT_BINS][PLAIN_THREADS];
  const uint32_t count = min(*v.keypoints.count, v.keypoints.capacity), step = gridDim.x * PLAIN_THREADS;
  for (uint32_t n = blockIdx.x * PLAIN_THREADS + threadIdx.x; n < count; n += step) {
    const orient_item item = orient_item_at(&v.keypoints, n, count);
    const plane_view level = orient_level_of(v, item);
    const orient_window w = orient_window_at(v, item, v.params.grid_shift);
    const plain_square square = plain_square_of(&level, &w);
    const float scale = v.scales->orient[w.radius];
    for (int32_t b = 0; b < ORIENT_BINS; b++) s_votes[b][threadIdx.x] = 0;
    for (int32_t y = square.top; y <= square.bottom; y++)
      for (int32_t x = square.left; x <= square.right; x++) {
        orient_vote vote;
        if (!plain_vote(&level, &w, v.params.orientation_rule, scale, x, y, &vote)) continue;
        s_votes[vote.bin0][threadIdx.x] += vote.v0;
        s_votes[vote.bin1][threadIdx.x] += vote.v1;
      }
    int32_t *histogram = v.scratch.histograms + (size_t)n * ORIENT_BINS;
    for (int32_t b = 0; b < ORIENT_BINS; b++) histogram[b] = s_votes[b][threadIdx.x];
  }
}

/*
 * Does      the same.
 * Launch    resident blocks of 128 threads, a block a keypoint, looping; a thread a sample of the square.
 * Shared    144 bytes: one histogram, by atomics.
 * Reads     keypoints, Gaussian levels. Writes histograms, 144 bytes a keypoint.
 * Barriers  before and after the votes, and before the histogram is cleared again.
 * Limits    windows of any radius up to WINDOW_RADIUS_MAX; no keypoints: returns at once. Order: repeatable, integers.
 * Cost      81 sigma^2 samples a keypoint, two votes each, and three barriers.
 */
__global__ void __launch_bounds__(BLOCK_THREADS)
    orient_block_per_keypoint_kernel(const __grid_constant__ cuda_frame_view v) {
  __shared__ __align__(16) uint32_t s_votes[BLOCK_STORED];
  const uint32_t count = min(*v.keypoints.count, v.keypoints.capacity), votes = shared_hist_copy<1>(s_votes, 0);
  for (uint32_t n = blockIdx.x; n < count; n += gridDim.x) {
    const orient_item item = orient_item_at(&v.keypoints, n, count);
    const plane_view level = orient_level_of(v, item);
    const orient_window w = orient_window_at(v, item, v.params.grid_shift);
    const plain_square square = plain_square_of(&level, &w);
    const int32_t width = square.right - square.left + 1, height = square.bottom - square.top + 1;
    const float scale = v.scales->orient[w.radius];
    shared_hist_clear<BLOCK_STORED, BLOCK_THREADS>(s_votes, threadIdx.x);
    __syncthreads();
    for (int32_t i = (int32_t)threadIdx.x; width > 0 && i < width * height; i += BLOCK_THREADS) {
      orient_vote vote;
      const int32_t x = square.left + i % width, y = square.top + i / width;
      if (!plain_vote(&level, &w, v.params.orientation_rule, scale, x, y, &vote)) continue;
      shared_hist_add<1>(votes, (uint32_t)vote.bin0, vote.v0);
      shared_hist_add<1>(votes, (uint32_t)vote.bin1, vote.v1);
    }
    __syncthreads();
    if (threadIdx.x < ORIENT_BINS)
      v.scratch.histograms[(size_t)n * ORIENT_BINS + threadIdx.x] = (int32_t)s_votes[threadIdx.x];
    __syncthreads(); /* the histogram is read */
  }
}

stage_status cuda_orient_plain_launch(const cuda_frame_view *view, cuda_orient_variant variant, cuda_stream stream) {
  const bool thread = variant == CUDA_ORIENT_THREAD;
  void (*const kernel)(cuda_frame_view) = thread ? orient_thread_per_keypoint_kernel : orient_block_per_keypoint_kernel;
  const int threads = thread ? PLAIN_THREADS : BLOCK_THREADS;
  return launch(kernel, launch_resident_blocks((const void *)kernel, threads, 0), threads, 0, stream, *view);
}
