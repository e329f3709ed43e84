/*
 * Affine shapes: a warp a keypoint, whose lanes share the window of each step.
 */
#include "cuda/device/launch.cuh"
#include "cuda/keypoints/affine_cuda.h"
#include "cuda/prim/warp_reduce.cuh"
#include "stages/affine.h"

#ifndef SHAPE_COLUMNS_TRIED
#  define SHAPE_COLUMNS_TRIED 8
#endif
#ifndef SHAPE_BLOCKS_TRIED
#  define SHAPE_BLOCKS_TRIED 10
#endif
enum {
  SHAPE_WARPS = 4,                        /* a block */
  SHAPE_BLOCKS = SHAPE_BLOCKS_TRIED,      /* a multiprocessor */
  SHAPE_COLUMNS = SHAPE_COLUMNS_TRIED,    /* lanes along a row of the window */
  SHAPE_ROWS = WARP_LANES / SHAPE_COLUMNS /* rows at a time */
};

/* The moments of the gradients under a window, valid on every lane: affine_moments_ref. */
static __device__ __forceinline__ affine_moments shape_moments(const plane_view *level, const affine_window *w) {
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES), stride = (int32_t)level->stride;
  affine_moments m = {0, 0, 0};
  for (int32_t j = lane / SHAPE_COLUMNS - w->rows; j <= w->rows; j += SHAPE_ROWS) {
    const int32_t line = w->cy + w->step * j;
    if (line < 1 || line > level->height - 2) continue;
    const affine_row r = affine_row_of(w, w->y + (float)(w->step * j));
    const float *row = level->data + (size_t)line * level->stride;
    for (int32_t i = r.first + lane % SHAPE_COLUMNS; i <= r.last; i += SHAPE_COLUMNS) {
      const int32_t column = w->cx + w->step * i;
      const float dx = w->x + (float)(w->step * i), exponent = hs_fmaf(hs_fmaf(w->xx, dx, r.slope), dx, r.level);
      if (column < 1 || column > level->width - 2 || !(exponent > w->lowest)) continue;
      const float *p = row + column;
      const float gx = p[1] - p[-1], gy = p[stride] - p[-stride];
      const float weight = hs_exp2(exponent), wx = gx * weight, wy = gy * weight;
      m.xx += hs_rounded_product(wx, gx);
      m.xy += hs_rounded_product(wx, gy);
      m.yy += hs_rounded_product(wy, gy);
    }
  }
  m.xx = (int32_t)warp_reduce_sum((uint32_t)m.xx);
  m.xy = (int32_t)warp_reduce_sum((uint32_t)m.xy);
  m.yy = (int32_t)warp_reduce_sum((uint32_t)m.yy);
  return m;
}

/* The shape of keypoint n, on every lane. */
static __device__ __forceinline__ affine_shape shape_of(const cuda_frame_view &v, uint32_t n) {
  const octave_keypoint at = keypoint_in_octave(&v.keypoints, n, v.params.grid_shift);
  const octave_view &o = v.octaves[v.keypoints.octave[n] - v.first_octave];
  const plane_view level = {o.levels + (size_t)v.keypoints.level[n] * o.level_floats, o.width, o.height, o.stride};
  affine_shape shape = {1.0f, 0.0f, 1.0f};
  for (int32_t step = 0; step < AFFINE_STEPS; step++) {
    const affine_window w = affine_window_of(at.x, at.y, at.sigma, &shape);
    const affine_moments m = shape_moments(&level, &w);
    if (!affine_next_shape(&shape, &m)) break;
  }
  return shape;
}

/*
 * Does      the affine shape of each keypoint, as affine_shape_run.
 * Launch    resident blocks of 4 warps, a warp a keypoint; warps draw keypoints by ticket.
 * Shared    none.
 * Reads     keypoints, Gaussian levels (4 floats a sample of each step's window, through L1). Writes shapes.
 * Barriers  none; sums of a warp.
 * Limits    windows of any size; no keypoints: returns at once.
 * Order     repeatable: moments are integers.
 * Cost      up to 10 windows of 80 to 700 samples, as many times that as the shape is longer than wide, of about 45
 *           operations: bound by issue, and at the end by the latency of the last long shapes.
 */
template <bool GROUP>
__global__ void __launch_bounds__(SHAPE_WARPS *WARP_LANES, SHAPE_BLOCKS)
    affine_shape_kernel(const __grid_constant__ cuda_frame_view one) {
  const cuda_frame_view &v = CUDA_VIEW_OF_BLOCK(GROUP, one);
  const uint32_t lane = threadIdx.x % WARP_LANES, warps = gridDim.x * SHAPE_WARPS;
  const uint32_t count = min(*v.keypoints.count, v.keypoints.capacity);
  uint32_t n = blockIdx.x * SHAPE_WARPS + threadIdx.x / WARP_LANES;
  while (n < count) {
    uint32_t ticket = 0;
    if (lane == 0) ticket = warps + atomicAdd(&v.scratch.tickets[2], 1u);
    const affine_shape shape = shape_of(v, n);
    if (lane == 0) v.shapes[n] = shape;
    n = __shfl_sync(WARP_ALL, ticket, 0);
  }
}

template <bool GROUP> static stage_status launch_shapes(const cuda_frame_view *view, cudaStream_t stream) {
  const int threads = SHAPE_WARPS * WARP_LANES;
  const unsigned resident = launch_resident_blocks((const void *)affine_shape_kernel<GROUP>, threads, 0);
  const dim3 blocks(cuda_group_share(view, resident), 1, cuda_group_count(view));
  return launch(affine_shape_kernel<GROUP>, blocks, threads, 0, stream, *view);
}

stage_status cuda_affine_shape_launch(const cuda_frame_view *view, cuda_stream stream) {
  assert(view->shapes && view->keypoints.capacity > 0 && view->octave_count >= 1);
  return view->group > 1 ? launch_shapes<true>(view, stream) : launch_shapes<false>(view, stream);
}
