/* Descriptor kernels: one warp per feature, or two if features are few. The largest windows come first. */
#include "cuda/keypoints/keypoints_kernels.h"

#include "cuda/keypoints/describe_votes.cuh"
#include "cuda/keypoints/work_items.cuh"
#include "cuda/prim/histograms.cuh"
#include "cuda/prim/reductions.cuh"
#include "cuda/runtime/launch.h"

/* In frames of few features, two warps share a feature. With one warp per feature, most warps would have one or two
 * features, and the device would wait for the last ones. */

enum {
  TEAM_WARPS = 2,
  TEAM_ROUNDS = 3 /* fewer features per warp than this: teams are faster */
};

/* Synchronises the two warps of a team; a block has two teams. Barrier numbers are constants: with variable numbers
 * a block would be assigned all sixteen barriers, and fewer blocks would be resident. */
static __device__ __forceinline__ void team_meet(void) {
  if (threadIdx.x < TEAM_WARPS * WARP_LANES)
    asm volatile("bar.sync 1, %0;" ::"n"(TEAM_WARPS * WARP_LANES) : "memory");
  else
    asm volatile("bar.sync 2, %0;" ::"n"(TEAM_WARPS * WARP_LANES) : "memory");
}

enum {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  DESCRIBE_BLOCKS = 2, /* blocks per multiprocessor: limited by shared memory */
#else
  DESCRIBE_BLOCKS = 6,
#endif
};

/* Computes the histogram of feature n at one of its sizes, by one of its WARPS warps. Negative values are not yet
 * set to zero. */
template <int COPIES, bool POOLED, int WARPS>
static __device__ __forceinline__ lane_bins describe_size(const cuda_frame_view &v, int32_t *votes, describe_tile *tile,
                                                          uint32_t n, int32_t size) {
  const uint32_t i = v.features.keypoint[n];
  const describe_site site = POOLED ? domain_site_of(&v.keypoints, i, &v.params, v.first_octave, v.octave_count, size)
                                    : describe_site_of(&v.keypoints, i, &v.params, v.first_octave);
  const octave_view &o = v.octaves[site.octave_index];
  const plane_view level = {o.levels + (size_t)site.level * o.level_floats, o.width, o.height, o.stride};
  const describe_window w =
      describe_window_of(site.x, site.y, site.sigma, v.features.orientation[n], v.params.descriptor_rule);
  describe_fill<COPIES, WARPS, describe_source>(votes, tile, &level, &w, v.scales->describe[w.radius]);
  return describe_inner_lane<COPIES>(votes, v.params.vlfeat_layout);
}

/* Describes one feature by one warp. first: start of this picture's descriptors. */
template <int COPIES, bool POOLED>
static __device__ __forceinline__ void describe_feature(const cuda_frame_view &v, int32_t *votes, describe_tile *tile,
                                                        uint32_t n, size_t first, const cuda_outputs *outputs) {
  lane_bins bins;
  if (!POOLED) {
    bins = describe_size<COPIES, POOLED, 1>(v, votes, tile, n, 0);
    describe_cut_lane(&bins);
  } else {
    bins = lane_bins{{0, 0, 0, 0}};
#pragma unroll 1
    for (int32_t size = 0; size < v.params.domain.count; size++)
      describe_pool_lane(&bins, describe_size<COPIES, POOLED, 1>(v, votes, tile, n, size));
  }
  describe_write(bins, &v.params, first + n, outputs);
}

/* Returns the feature at position `at` of the order of work: the largest windows come first. Float descriptors load
 * the bus to the host as much as the multiprocessors, so then the smallest windows are interleaved with the
 * largest. Without `order`: returns the list's order. */
static __device__ __forceinline__ uint32_t describe_number(const cuda_frame_view &v, uint32_t at, uint32_t count,
                                                           bool ordered) {
  if (!ordered) return at;
  if (v.params.descriptor_float) at = at & 1u ? count - 1u - at / 2u : at / 2u;
  return v.scratch.order[at];
}

/* Describes all features, one team per feature. Each warp of a team has separate votes; the first warp adds the
 * other's votes to its votes. */
template <int COPIES>
static __device__ __forceinline__ void describe_by_teams(const cuda_frame_view &v, describe_shared<COPIES> *s_warps,
                                                         uint32_t count, bool ordered, const cuda_outputs *outputs) {
  enum { TEAMS = DESCRIBE_WARPS / TEAM_WARPS };
  static_assert(TEAMS == 2 && describe_layout<COPIES>::STORED * COPIES >= 4 * WARP_LANES,
                "as team_meet; room for the inner bins");
  __shared__ uint32_t s_next[TEAMS];
  const uint32_t lane = threadIdx.x % WARP_LANES, warp = threadIdx.x / WARP_LANES, team = warp / TEAM_WARPS;
  describe_shared<COPIES> *s = &s_warps[warp];
  const bool first = warp % TEAM_WARPS == 0;
  uint32_t at = blockIdx.x * TEAMS + team;
  while (at < count) {
    if (first && lane == 0) s_next[team] = gridDim.x * TEAMS + atomicAdd(&v.scratch.tickets[TICKET_DESCRIBE], 1u);
    const uint32_t n = describe_number(v, at, count, ordered);
    lane_bins bins = describe_size<COPIES, false, TEAM_WARPS>(v, s->votes, &s->tile, n, 0);
    __syncwarp(); /* the votes have been read */
    if (!first) ((int4 *)s->votes)[lane] = make_int4(bins.h[0], bins.h[1], bins.h[2], bins.h[3]);
    team_meet();
    at = s_next[team];
    const int4 other = first ? ((const int4 *)s[1].votes)[lane] : make_int4(0, 0, 0, 0);
    team_meet(); /* the bins and the next number have been read */
    if (!first) continue;
    bins = lane_bins{{bins.h[0] + other.x, bins.h[1] + other.y, bins.h[2] + other.z, bins.h[3] + other.w}};
    describe_cut_lane(&bins);
    describe_write(bins, &v.params, n, outputs);
  }
}

/*
 * Does      descriptors, as describe_ref. COPIES: number of histogram copies for atomics; 0: multi-key reduction
 *           without atomics. POOLED: over the domain sizes of the view, one after another.
 * Launch    resident blocks of 4 warps, one warp per feature; two warps per feature if a warp would have few
 *           features. Warps draw features by ticket in the order of work.
 * Shared    per warp: for the copies 1152 bytes each if there are four, otherwise 1024 each (one for the multi-key
 *           reduction); and 2592 of tables.
 * Reads     outputs, order, features, keypoints, Gaussian levels (4 floats per sample, through L1, loaded one step
 *           ahead).
 * Writes    descriptors: 128 or 512 bytes per feature by one store instruction of the warp.
 * Barriers  warp: tables and list before and after use; votes before folding; folding before cropping. Two warps
 *           that share a feature also synchronise when the second half is complete, and when it has been read.
 * Limits    windows of any radius up to WINDOW_RADIUS_MAX, in segments; no features: returns at once.
 * Order     repeatable: votes are integers, and each feature has a separate output address.
 * Cost      per window 225 sigma^2 samples of about 120 operations and 8 votes: bound by shared atomics and, nearly
 *           as much, by issue.
 */
template <int COPIES, bool POOLED, bool GROUP>
static __device__ __forceinline__ void describe_features(const cuda_frame_view &one, const cuda_outputs *outputs) {
  const cuda_frame_view &v = CUDA_VIEW_OF_BLOCK(GROUP, one);
  /* Each picture of a group has memory for a full list. */
  const size_t picture = GROUP ? (size_t)blockIdx.z * v.features.capacity : 0;
  __shared__ __align__(16) describe_shared<COPIES> s_warps[DESCRIBE_WARPS];
  describe_shared<COPIES> *s = &s_warps[threadIdx.x / WARP_LANES];
  const uint32_t lane = threadIdx.x % WARP_LANES, warps = gridDim.x * DESCRIBE_WARPS;
  const uint32_t total = *v.features.count, count = min(total, v.features.capacity);
  const bool ordered = total == count; /* otherwise `order` lacks some features, and they are taken in the list's
                                        * order */
  if constexpr (COPIES > 1 && !POOLED && !GROUP)
    if (count < TEAM_ROUNDS * warps) return describe_by_teams<COPIES>(v, s_warps, count, ordered, outputs);
  uint32_t at = blockIdx.x * DESCRIBE_WARPS + threadIdx.x / WARP_LANES;
  while (at < count) {
    uint32_t next = 0;
    if (lane == 0) next = warps + atomicAdd(&v.scratch.tickets[TICKET_DESCRIBE], 1u);
    describe_feature<COPIES, POOLED>(v, s->votes, &s->tile, describe_number(v, at, count, ordered), picture, outputs);
    at = __shfl_sync(WARP_ALL, next, 0);
  }
}

/*
 * Does      counts the features in each work bin.
 * Launch    blocks of 256 threads, one thread per feature, looping.
 * Shared    1 KiB. Barriers: around the use of the block's histogram.
 * Reads     features, keypoints. Writes work_counts + WORK_BINS by atomics.
 * Limits    no features: adds nothing. Order: repeatable. Cost: 14 bytes per feature, bound by latency.
 */
extern "C" __global__ void __launch_bounds__(WORK_BINS) work_count_kernel(const __grid_constant__ cuda_frame_view v) {
  __shared__ __align__(16) uint32_t s_bins[WORK_BINS];
  const uint32_t count = min(*v.features.count, v.features.capacity), bins = shared_hist_copy<1>(s_bins, 0);
  shared_hist_clear<WORK_BINS, WORK_BINS>(s_bins, threadIdx.x);
  __syncthreads();
  for (uint32_t n = blockIdx.x * WORK_BINS + threadIdx.x; n < count; n += gridDim.x * WORK_BINS)
    shared_hist_add<1>(bins, work_order_bin(v, v.features.keypoint[n]), 1);
  __syncthreads();
  shared_hist_flush<WORK_BINS, WORK_BINS>(s_bins, v.scratch.work_counts + WORK_BINS, threadIdx.x);
}

/*
 * Does      writes each feature's number to its position in `order`: the scatter of a counting sort.
 * Launch    blocks of 256 threads, one thread per feature, looping.
 * Shared    2.2 KiB. Barriers: of the scan and of the positions.
 * Reads     features, keypoints, work_counts + WORK_BINS. Writes order; work_cursors + WORK_BINS by atomics.
 * Limits    no features: writes nothing. Order: varies within equal radii. Cost: 18 bytes per feature, bound by
 *           latency.
 */
extern "C" __global__ void __launch_bounds__(WORK_BINS) work_scatter_kernel(const __grid_constant__ cuda_frame_view v) {
  __shared__ work_order_shared s_order;
  const uint32_t count = min(*v.features.count, v.features.capacity);
  work_order_bases(v.scratch.work_counts + WORK_BINS, &s_order);
  for (uint32_t first = blockIdx.x * WORK_BINS; first < count; first += gridDim.x * WORK_BINS) {
    const uint32_t n = first + threadIdx.x, bin = n < count ? work_order_bin(v, v.features.keypoint[n]) : 0u;
    work_order_put(v, &s_order, v.scratch.work_cursors + WORK_BINS, bin, n, n < count, v.features.capacity);
  }
}

#define DESCRIBE_KERNEL(name, COPIES, POOLED, GROUP)                                                                   \
  extern "C" __global__ void __launch_bounds__(DESCRIBE_WARPS *WARP_LANES, DESCRIBE_BLOCKS)                            \
      name(const __grid_constant__ cuda_frame_view view, const cuda_outputs *outputs) {                                \
    describe_features<COPIES, POOLED, GROUP>(view, outputs);                                                           \
  }
DESCRIBE_KERNEL(describe_atomic4_kernel, 4, false, false)
DESCRIBE_KERNEL(describe_atomic4_pooled_kernel, 4, true, false)
DESCRIBE_KERNEL(describe_atomic4_group_kernel, 4, false, true)
DESCRIBE_KERNEL(describe_atomic4_pooled_group_kernel, 4, true, true)
DESCRIBE_KERNEL(describe_atomic2_kernel, 2, false, false)
DESCRIBE_KERNEL(describe_atomic2_pooled_kernel, 2, true, false)
DESCRIBE_KERNEL(describe_multi_key_kernel, 0, false, false)
DESCRIBE_KERNEL(describe_multi_key_pooled_kernel, 0, true, false)

DESCRIBE_KERNELS(LAUNCH_CHECK)
