/*
 * Descriptors on the patches of affine shapes: a warp a feature, whose patch lies in shared memory.
 */
#include "cuda/runtime/launch.cuh"
#include "cuda/keypoints/affine_cuda.h"
#include "cuda/keypoints/affine_patch.cuh"
#include "cuda/keypoints/describe_lanes.cuh"

enum {
  WARPED_SIDE = AFFINE_DESCRIBE_SIDE,
  WARPED_TILE = WARPED_SIDE - 1, /* of which a window takes 35 samples a side */
  WARPED_WARPS = 4,              /* a block */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  WARPED_BLOCKS = 1, /* a multiprocessor: what shared memory holds */
#else
  WARPED_BLOCKS = 5,
#endif
};

/* One warp's shared memory. */
template <int COPIES> struct __align__(16) warped_shared {
  int32_t votes[describe_layout<COPIES>::STORED * describe_layout<COPIES>::HELD]; /* as describe_shared */
  window_tile<WARPED_TILE> tile;
  float patch[WARPED_SIDE * WARPED_SIDE];
};

/* As describe_source, of a patch in shared memory. */
typedef struct warped_source {
  uint32_t base; /* shared address of the segment's first sample, less a row and the lane's sample of a run added */
  uint32_t columns, rows, least;
} warped_source;

static __device__ __forceinline__ void describe_source_set(warped_source *from, const window_segment *segment,
                                                           int32_t sub) {
  from->base = shared_address(segment->corner + sub - WARPED_SIDE);
}

/* As that of a level. */
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

/* The patch of feature n in one of its sizes, and its histogram there; not yet cut off at zero. */
template <int COPIES, bool POOLED>
static __device__ __forceinline__ lane_bins warped_size(const cuda_frame_view &v, warped_shared<COPIES> *s, uint32_t n,
                                                        int32_t size) {
  const uint32_t i = v.features.keypoint[n];
  const affine_shape shape = v.shapes[i];
  const describe_site site = POOLED ? domain_site_of(&v.keypoints, i, &v.params, v.first_octave, v.octave_count, size)
                                    : describe_site_of(&v.keypoints, i, &v.params, v.first_octave);
  const octave_view &o = v.octaves[site.octave_index];
  const plane_view level = {o.levels + (size_t)site.level * o.level_floats, o.width, o.height, o.stride};
  const patch_map map = affine_map_of(site.x, site.y, site.sigma, &shape);
  __syncwarp(); /* the patch before is read */
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
 * Launch    resident blocks of 4 warps, a warp a feature; warps draw features by ticket, in the order of the list: all
 *           patches are of one size.
 * Shared    1024 bytes a copy (one for the multi-key reduction), 1184 of tables and 5476 of the patch, a warp.
 * Reads     outputs, features, keypoints, shapes, Gaussian levels (4 floats a sample of the patch, through L1).
 * Writes    descriptors: 128 or 512 bytes a feature by one store instruction of the warp.
 * Barriers  warp: patch, tables and list before use and after, votes before folding, folding before cropping.
 * Limits    patches of any size on the level; no features: returns at once.
 * Order     repeatable: votes are integers, each feature's output has its own address.
 * Cost      1369 samples of about 35 operations and 4 loads, 576 votes of about 115 operations, a window: bound by
 *           issue.
 */
template <int COPIES, bool POOLED, bool GROUP>
__global__ void __launch_bounds__(WARPED_WARPS *WARP_LANES, WARPED_BLOCKS)
    affine_describe_kernel(const __grid_constant__ cuda_frame_view one, const cuda_outputs *outputs) {
  const cuda_frame_view &v = CUDA_VIEW_OF_BLOCK(GROUP, one);
  /* Behind the room of the pictures before. */
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

template <int COPIES, bool POOLED, bool GROUP>
static stage_status launch_warped(const cuda_frame_view *view, const cuda_outputs *outputs, cudaStream_t stream) {
  const int threads = WARPED_WARPS * WARP_LANES;
  const unsigned resident =
      launch_resident_blocks((const void *)affine_describe_kernel<COPIES, POOLED, GROUP>, threads, 0);
  const dim3 blocks(cuda_group_share(view, resident), 1, cuda_group_count(view));
  return launch(affine_describe_kernel<COPIES, POOLED, GROUP>, blocks, threads, 0, stream, *view, outputs);
}

template <bool POOLED>
static stage_status launch_variant(const cuda_frame_view *view, cuda_describe_variant variant,
                                   const cuda_outputs *outputs, cudaStream_t stream) {
  if (view->group > 1) return launch_warped<2, POOLED, true>(view, outputs, stream);
  if (variant == CUDA_DESCRIBE_MULTI_KEY) return launch_warped<0, POOLED, false>(view, outputs, stream);
  return launch_warped<2, POOLED, false>(view, outputs, stream); /* more would take the patches' lines out of L1 */
}

stage_status cuda_affine_describe_launch(const cuda_frame_view *view, cuda_describe_variant variant,
                                         const cuda_outputs *outputs, cuda_stream stream) {
  assert(view->shapes && view->features.capacity > 0 && view->scales && outputs);
  assert(variant == CUDA_DESCRIBE_ATOMIC4 || view->group <= 1);
  return view->params.domain.count > 0 ? launch_variant<true>(view, variant, outputs, stream)
                                       : launch_variant<false>(view, variant, outputs, stream);
}
