/* Affine shapes, and descriptors on their patches.
 *
 * Shapes: one warp per keypoint, whose lanes are the columns (or rows) of the patch. Its samples stay in registers. The
 * few keypoints that take many steps are finished by blocks, because a single warp would keep the device waiting at the
 * end. */
#include "cuda/keypoints/keypoints_kernels.h"

#include "cuda/keypoints/describe_votes.cuh"
#include "cuda/keypoints/window_tile.cuh"
#include "cuda/prim/reductions.cuh"
#include "cuda/runtime/launch.h"
#include "stages/affine.h"

enum {
  SHAPE_LINES = 2 * AFFINE_SHAPE_RADIUS + 1, /* rows of the patch with weights */
  SHAPE_MIDDLE = AFFINE_SHAPE_SIDE / 2,
  SHAPE_FIRST = 4 /* steps by one warp; a block makes all further steps of a keypoint */
};
static_assert((int)AFFINE_SHAPE_SIDE <= WARP_LANES, "a lane for each sample of a row");

/* A patch as a warp samples it. A line is a row of the patch; if `turned`, a column, because a row would cross more
 * rows of the level. A lane is at `own` samples from the middle of each line. */
typedef struct shape_lines {
  plane_view level;
  patch_map map;
  bool turned;
  int32_t own;
} shape_lines;

/* Returns the lane's sample of a line, counted from the middle: as affine_patch_ref. */
static __device__ __forceinline__ float shape_sample(const shape_lines *s, int32_t line) {
  const patch_map *m = &s->map;
  const float u = (float)(s->turned ? line : s->own), v = (float)(s->turned ? s->own : line);
  const float x = hs_fmaf(m->a11, u, hs_fmaf(m->a12, v, m->x)), y = hs_fmaf(m->a21, u, hs_fmaf(m->a22, v, m->y));
  return affine_sample(&s->level, x, y);
}

/* Adds the products of the gradient at the lane's sample of a line. before, here, after: the lane's samples of the
 * previous line, of this one, and of the next. */
static __device__ __forceinline__ void shape_add(const shape_lines *s, int32_t line, float before, float here,
                                                 float after, float weight, affine_moments *m) {
  const float along = __shfl_down_sync(WARP_ALL, here, 1) - __shfl_up_sync(WARP_ALL, here, 1), across = after - before;
  weight *= __shfl_sync(WARP_ALL, weight, line + SHAPE_MIDDLE);
  if (s->own * s->own + line * line > AFFINE_SHAPE_DISC) return;
  const float gx = s->turned ? across : along, gy = s->turned ? along : across, wx = gx * weight, wy = gy * weight;
  m->xx += hs_rounded_product(wx, gx);
  m->xy += hs_rounded_product(wx, gy);
  m->yy += hs_rounded_product(wy, gy);
}

/* Computes this warp's part of the moments of affine_moments_ref, which WARPS warps share. Valid on every lane. The
 * lines of a warp are sampled a few at a time, so that their reads are in flight together. */
template <int WARPS>
static __device__ __forceinline__ affine_moments shape_moments(const plane_view *level, const patch_map *map) {
  enum { LINES = (SHAPE_LINES + WARPS - 1) / WARPS, AT_ONCE = LINES % 5 == 0 ? 5 : LINES };
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES), warp = (int32_t)(threadIdx.x / WARP_LANES) % WARPS;
  const shape_lines s = {*level, *map, fabsf(map->a21) > fabsf(map->a22), lane - SHAPE_MIDDLE};
  const float weight = affine_weight(s.own);
  const int32_t first = warp * LINES - AFFINE_SHAPE_RADIUS;
  affine_moments m = {0, 0, 0};
  float before = shape_sample(&s, first - 1), here = shape_sample(&s, first);
#pragma unroll 1
  for (int32_t done = 0; done < LINES; done += AT_ONCE) {
    float after[AT_ONCE];
#pragma unroll
    for (int32_t i = 0; i < AT_ONCE; i++) after[i] = shape_sample(&s, first + done + i + 1);
#pragma unroll
    for (int32_t i = 0; i < AT_ONCE; i++) {
      shape_add(&s, first + done + i, before, here, after[i], weight, &m);
      before = here;
      here = after[i];
    }
  }
  return affine_moments{(int32_t)warp_reduce_sum((uint32_t)m.xx), (int32_t)warp_reduce_sum((uint32_t)m.xy),
                        (int32_t)warp_reduce_sum((uint32_t)m.yy)};
}

/* Returns the level of keypoint n's moments, and the keypoint's position there. The stride is cut to 32 bits to save
 * registers. */
static __device__ __forceinline__ plane_view shape_level(const cuda_frame_view &v, uint32_t n, octave_keypoint *at) {
  const octave_view &o = v.octaves[v.keypoints.octave[n] - v.first_octave];
  *at = keypoint_in_octave(&v.keypoints, n, v.params.grid_shift);
  return plane_view{o.levels + (size_t)affine_finer_level(v.keypoints.level[n]) * o.level_floats, o.width, o.height,
                    (uint32_t)o.stride};
}

/* Runs up to SHAPE_FIRST steps for keypoint n. Returns whether more are needed. */
static __device__ __forceinline__ bool shape_first_steps(const cuda_frame_view &v, uint32_t n, affine_shape *shape) {
  octave_keypoint at;
  const plane_view level = shape_level(v, n, &at);
  *shape = affine_shape{1.0f, 0.0f, 1.0f};
  for (int32_t step = 0; step < SHAPE_FIRST; step++) {
    const patch_map map = affine_map_of(at.x, at.y, at.sigma, shape, AFFINE_SHAPE_DISTANCE);
    const affine_moments m = shape_moments<1>(&level, &map);
    if (!affine_next_shape(shape, &m)) return false;
  }
  return true;
}

/*
 * Does      the first SHAPE_FIRST steps of each keypoint's affine shape, as affine_shape_run. Lists the keypoints
 *           that need more.
 * Launch    resident blocks of 4 warps, one warp per keypoint; warps draw keypoints by ticket.
 * Shared    none.
 * Reads     keypoints, Gaussian levels (4 floats per sample of each step's patch, through L1).
 * Writes    shapes; the list, into the memory of histograms, which orientation fills later; the list's count, by
 *           atomics.
 * Barriers  none; sums of a warp.
 * Limits    patches of any size on the level; no keypoints: returns at once.
 * Order     shapes are repeatable, because moments are integers; the order of the list varies.
 * Cost      per step 729 samples of about 35 operations and 625 products of about 20, on 27 of 32 lanes; some 100
 *           operations for the next shape. Bound by issue.
 */
template <bool GROUP> static __device__ __forceinline__ void shape_keypoints(const cuda_frame_view &one) {
  const cuda_frame_view &v = CUDA_VIEW_OF_BLOCK(GROUP, one);
  const uint32_t lane = threadIdx.x % WARP_LANES, warps = gridDim.x * SHAPE_WARPS;
  const uint32_t count = min(*v.keypoints.count, v.keypoints.capacity);
  uint32_t n = blockIdx.x * SHAPE_WARPS + threadIdx.x / WARP_LANES;
  while (n < count) {
    uint32_t ticket = 0;
    affine_shape shape;
    if (lane == 0) ticket = warps + atomicAdd(&v.scratch.tickets[TICKET_SHAPE], 1u);
    const bool goes_on = shape_first_steps(v, n, &shape);
    if (lane == 0) v.shapes[n] = shape;
    if (lane == 0 && goes_on) v.scratch.histograms[atomicAdd(&v.scratch.tickets[COUNT_LONG_SHAPES], 1u)] = (int32_t)n;
    n = __shfl_sync(WARP_ALL, ticket, 0);
  }
}

/* Makes the remaining steps of keypoint n, by a block. */
static __device__ __forceinline__ affine_shape shape_last_steps(const cuda_frame_view &v, uint32_t n,
                                                                affine_moments s_parts[2][SHAPE_WARPS]) {
  octave_keypoint at;
  const plane_view level = shape_level(v, n, &at);
  affine_shape shape = v.shapes[n];
  for (int32_t step = SHAPE_FIRST; step < AFFINE_STEPS; step++) {
    const patch_map map = affine_map_of(at.x, at.y, at.sigma, &shape, AFFINE_SHAPE_DISTANCE);
    const affine_moments part = shape_moments<SHAPE_WARPS>(&level, &map);
    affine_moments m = {0, 0, 0}, *parts = s_parts[step % 2]; /* two sets of parts alternate, because those of the
                                                               * previous step may still be read */
    if (threadIdx.x % WARP_LANES == 0) parts[threadIdx.x / WARP_LANES] = part;
    __syncthreads();
    for (int i = 0; i < SHAPE_WARPS; i++) m.xx += parts[i].xx, m.xy += parts[i].xy, m.yy += parts[i].yy;
    if (!affine_next_shape(&shape, &m)) break;
  }
  return shape;
}

/*
 * Does      the remaining steps of the shapes of listed keypoints.
 * Launch    resident blocks of 4 warps, one block per keypoint; blocks draw keypoints by ticket.
 * Shared    100 bytes.
 * Reads     shapes, the list and its count; levels as shape_keypoints. Writes shapes.
 * Barriers  block: after the warps have written their parts of the moments; around the ticket.
 * Limits    an empty list: returns at once.
 * Order     repeatable: moments are integers.
 * Cost      as shape_keypoints: bound by the latency of the longest.
 */
template <bool GROUP> static __device__ __forceinline__ void shape_long_keypoints(const cuda_frame_view &one) {
  const cuda_frame_view &v = CUDA_VIEW_OF_BLOCK(GROUP, one);
  __shared__ affine_moments s_parts[2][SHAPE_WARPS];
  __shared__ uint32_t s_next;
  const uint32_t count = v.scratch.tickets[COUNT_LONG_SHAPES];
  uint32_t at = blockIdx.x;
  while (at < count) {
    const uint32_t n = (uint32_t)v.scratch.histograms[at];
    if (threadIdx.x == 0) s_next = gridDim.x + atomicAdd(&v.scratch.tickets[TICKET_LONG_SHAPE], 1u);
    const affine_shape shape = shape_last_steps(v, n, s_parts);
    if (threadIdx.x == 0) v.shapes[n] = shape;
    __syncthreads(); /* the ticket is stored */
    at = s_next;
    __syncthreads(); /* the ticket and the parts have been read */
  }
}

/* Descriptors on the patches of affine shapes: one warp per feature, with the feature's patch in shared memory. */

enum {
  WARPED_SIDE = AFFINE_DESCRIBE_SIDE,
  WARPED_TILE = WARPED_SIDE - 1, /* a window covers 35 of these samples per side */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  WARPED_BLOCKS = 1, /* blocks per multiprocessor: limited by shared memory */
#else
  WARPED_BLOCKS = 5,
#endif
};

/* One warp's shared memory. */
template <int COPIES> struct __align__(16) warped_shared {
  int32_t votes[describe_layout<COPIES>::STORED * describe_layout<COPIES>::HELD]; /* as in describe_shared */
  window_tile<WARPED_TILE> tile;
  float patch[WARPED_SIDE * WARPED_SIDE];
};

/* The samples to read, as in describe_source, for a patch in shared memory. */
typedef struct warped_source {
  uint32_t base; /* shared address of the segment's first sample, minus a row, plus the position of the lane's sample
                  * in a run */
  uint32_t columns, rows, least;
} warped_source;

static __device__ __forceinline__ void describe_source_set(warped_source *from, const window_segment *segment,
                                                           int32_t sub) {
  from->base = shared_address(segment->corner + sub - WARPED_SIDE);
}

/* Prefetches as for a level. */
static __device__ __forceinline__ described_position describe_prefetch(const warped_source *from, const uint16_t *list,
                                                                       described_near *near) {
  const uint32_t run = *list;
  described_position position;
  position.row = window_run_row_next(run);
  position.column = window_run_column(run);
  position.inside = run >= from->least;
  const uint32_t at = from->base + 4u * (uint32_t)(position.row * WARPED_SIDE + position.column);
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %4, 0;\n\t"
               "@p ld.shared.f32 %0, [%5 + -4];\n\t@p ld.shared.f32 %1, [%5 + 4];\n\t"
               "@p ld.shared.f32 %2, [%5 + %6];\n\t@p ld.shared.f32 %3, [%5 + %7];\n\t}"
               : "+f"(near->left), "+f"(near->right), "+f"(near->up), "+f"(near->down)
               : "r"((int32_t)position.inside), "r"(at), "n"(-4 * WARPED_SIDE), "n"(4 * WARPED_SIDE)
               : "memory");
  return position;
}

/* Samples the patch of feature n at one of its sizes, and computes its histogram there. Negative values are not yet
 * set to zero. */
template <int COPIES, bool POOLED>
static __device__ __forceinline__ lane_bins warped_size(const cuda_frame_view &v, warped_shared<COPIES> *s, uint32_t n,
                                                        int32_t size) {
  const uint32_t i = v.features.keypoint[n];
  const affine_shape shape = v.shapes[i];
  const describe_site site = POOLED ? domain_site_of(&v.keypoints, i, &v.params, v.first_octave, v.octave_count, size)
                                    : describe_site_of(&v.keypoints, i, &v.params, v.first_octave);
  const octave_view &o = v.octaves[site.octave_index];
  const plane_view level = {o.levels + (size_t)site.level * o.level_floats, o.width, o.height, o.stride};
  const patch_map map = affine_map_of(site.x, site.y, site.sigma, &shape, AFFINE_DISTANCE);
  __syncwarp(); /* the previous patch has been read */
  affine_patch_fill<WARPED_SIDE, WARPED_SIDE>(s->patch, &level, &map);
  const plane_view patch = {s->patch, WARPED_SIDE, WARPED_SIDE, WARPED_SIDE};
  const float middle = WARPED_SIDE / 2, angle = affine_angle_in_patch(&shape, v.features.orientation[n]);
  const describe_window w = describe_window_of(middle, middle, 1.0f / AFFINE_DISTANCE, angle, v.params.descriptor_rule);
  describe_fill<COPIES, 1, warped_source>(s->votes, &s->tile, &patch, &w, v.scales->describe[w.radius]);
  return describe_inner_lane<COPIES>(s->votes, v.params.vlfeat_layout);
}

template <int COPIES, bool POOLED>
static __device__ __forceinline__ void warped_feature(const cuda_frame_view &v, warped_shared<COPIES> *s, uint32_t n,
                                                      size_t first, const cuda_outputs *outputs) {
  lane_bins bins = {{0, 0, 0, 0}};
  if (!POOLED) {
    bins = warped_size<COPIES, POOLED>(v, s, n, 0);
    describe_cut_lane(&bins);
  }
#pragma unroll 1
  for (int32_t size = 0; POOLED && size < v.params.domain.count; size++)
    describe_pool_lane(&bins, warped_size<COPIES, POOLED>(v, s, n, size));
  describe_write(bins, &v.params, first + n, outputs);
}

/*
 * Does      descriptors of features with shapes, as affine_describe_run with the references. COPIES, POOLED: as
 *           describe_warp_per_feature_kernel.
 * Launch    resident blocks of 4 warps, one warp per feature. Warps draw features by ticket, in the order of the
 *           list, since all patches have the same size.
 * Shared    per warp: 1024 bytes per copy (one copy for the multi-key reduction), 1184 of tables and 5476 of the
 *           patch.
 * Reads     outputs, features, keypoints, shapes, Gaussian levels (4 floats per sample of the patch, through L1).
 * Writes    descriptors: 128 or 512 bytes per feature by one store instruction of the warp.
 * Barriers  warp: patch, tables and list before and after use; votes before folding; folding before cropping.
 * Limits    patches of any size on the level; no features: returns at once.
 * Order     repeatable: votes are integers, and each feature has a separate output address.
 * Cost      per window 1369 samples of about 35 operations and 4 loads, and 576 votes of about 115 operations:
 *           bound by issue.
 */
template <int COPIES, bool POOLED, bool GROUP>
static __device__ __forceinline__ void describe_warped(const cuda_frame_view &one, const cuda_outputs *outputs) {
  const cuda_frame_view &v = CUDA_VIEW_OF_BLOCK(GROUP, one);
  /* Each picture of a group has memory for a full list. */
  const size_t picture = GROUP ? (size_t)blockIdx.z * v.features.capacity : 0;
  __shared__ __align__(16) warped_shared<COPIES> s_warps[WARPED_WARPS];
  const uint32_t lane = threadIdx.x % WARP_LANES, warps = gridDim.x * WARPED_WARPS;
  const uint32_t count = min(*v.features.count, v.features.capacity);
  uint32_t n = blockIdx.x * WARPED_WARPS + threadIdx.x / WARP_LANES;
  while (n < count) {
    uint32_t next = 0;
    if (lane == 0) next = warps + atomicAdd(&v.scratch.tickets[TICKET_DESCRIBE], 1u);
    warped_feature<COPIES, POOLED>(v, &s_warps[threadIdx.x / WARP_LANES], n, picture, outputs);
    n = __shfl_sync(WARP_ALL, next, 0);
  }
}

#define SHAPE_KERNEL(name, GROUP)                                                                                      \
  extern "C" __global__ void __launch_bounds__(SHAPE_WARPS *WARP_LANES, SHAPE_BLOCKS)                                  \
      name(const __grid_constant__ cuda_frame_view view) {                                                             \
    shape_keypoints<GROUP>(view);                                                                                      \
  }
SHAPE_KERNEL(affine_shape_kernel, false)
SHAPE_KERNEL(affine_shape_group_kernel, true)

#define LONG_SHAPE_KERNEL(name, GROUP)                                                                                 \
  extern "C" __global__ void __launch_bounds__(SHAPE_WARPS *WARP_LANES, SHAPE_BLOCKS)                                  \
      name(const __grid_constant__ cuda_frame_view view) {                                                             \
    shape_long_keypoints<GROUP>(view);                                                                                 \
  }
LONG_SHAPE_KERNEL(affine_long_shape_kernel, false)
LONG_SHAPE_KERNEL(affine_long_shape_group_kernel, true)

#define WARPED_KERNEL(name, COPIES, POOLED, GROUP)                                                                     \
  extern "C" __global__ void __launch_bounds__(WARPED_WARPS *WARP_LANES, WARPED_BLOCKS)                                \
      name(const __grid_constant__ cuda_frame_view view, const cuda_outputs *outputs) {                                \
    describe_warped<COPIES, POOLED, GROUP>(view, outputs);                                                             \
  }
WARPED_KERNEL(affine_describe_kernel, 2, false, false)
WARPED_KERNEL(affine_describe_pooled_kernel, 2, true, false)
WARPED_KERNEL(affine_describe_group_kernel, 2, false, true)
WARPED_KERNEL(affine_describe_pooled_group_kernel, 2, true, true)
WARPED_KERNEL(affine_describe_multi_key_kernel, 0, false, false)
WARPED_KERNEL(affine_describe_multi_key_pooled_kernel, 0, true, false)

AFFINE_KERNELS(LAUNCH_CHECK)
