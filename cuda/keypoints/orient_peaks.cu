/*
 * Peaks of the orientation histograms, by a few lanes per keypoint; then the features in order.
 */
#include "cuda/keypoints/keypoints_kernels.h"
#include "cuda/keypoints/work_items.cuh"
#include "cuda/prim/histograms.cuh"
#include "cuda/runtime/launch.h"
#include "stages/affine.h"
#include "stages/orient.h"

enum { PEAK_BINS = ORIENT_BINS / PEAK_LANES };

/* One keypoint's shared memory in the peak kernel. */
typedef struct peak_shared {
  int64_t smooth[PEAK_KEYPOINTS][ORIENT_BINS];
  int32_t histogram[PEAK_KEYPOINTS][ORIENT_BINS];
  float angle[PEAK_KEYPOINTS][ORIENT_BINS];
} peak_shared;

/* Returns the peaks in the lane's bins as bits of the keypoint's 36. Smoothed bins are integers. */
static __device__ __forceinline__ uint64_t own_peaks(const int64_t *h, int32_t first, int64_t largest,
                                                     author_rule rule) {
  uint64_t peaks = 0;
  for (int32_t b = first; b < first + PEAK_BINS; b++)
    if (orient_is_peak(h[orient_wrap_bin(b - 1)], h[b], h[orient_wrap_bin(b + 1)], largest, rule)) peaks |= 1ull << b;
  return peaks;
}

/* Returns which of the lane's peaks are among the `count` highest of the keypoint; lower bins first on ties. */
static __device__ __forceinline__ uint64_t keep_highest(const int64_t *h, uint64_t all, uint64_t own, int32_t count) {
  uint64_t kept = 0;
  for (; own != 0; own &= own - 1) {
    const int32_t b = __ffsll((long long)own) - 1;
    int32_t above = 0;
    for (uint64_t rest = all; rest != 0; rest &= rest - 1) {
      const int32_t other = __ffsll((long long)rest) - 1;
      above += h[other] > h[b] || (h[other] == h[b] && other < b);
    }
    if (above < count) kept |= 1ull << b;
  }
  return kept;
}

/* Writes the angles of the kept peaks in ascending order. Each lane writes the angles of its peaks. */
static __device__ __forceinline__ void write_angles(const float *angle, uint64_t all, uint64_t own, float *out) {
  for (; own != 0; own &= own - 1) {
    const int32_t b = __ffsll((long long)own) - 1;
    int32_t before = 0;
    for (uint64_t rest = all; rest != 0; rest &= rest - 1) {
      const int32_t other = __ffsll((long long)rest) - 1;
      before += angle[other] < angle[b] || (angle[other] == angle[b] && other < b);
    }
    out[before] = angle[b];
  }
}

/* Smooths the lane's bins of histogram `raw` into h, finds and keeps peaks, and writes their angles. Returns their
 * number on each of the keypoint's lanes. shape: null, or the shape whose patch the histogram is from; angles are
 * then converted to the picture. All lanes of the warp must call. */
static __device__ __forceinline__ uint32_t orient_peaks(const int32_t *raw, int64_t *h, float *angle,
                                                        const sift_params *p, const affine_shape *shape, float *out) {
  const author_rule rule = p->orientation_rule;
  const int32_t first = (int32_t)(threadIdx.x % PEAK_LANES) * PEAK_BINS;
  int64_t largest = 0;
  /* Copies the lane's bins and six on either side to the middle of a local histogram, so that no index has to wrap
   * at run time. */
  int32_t near[ORIENT_BINS] = {0};
#pragma unroll
  for (int32_t i = 0; i < PEAK_BINS + 12; i++) near[i + 6] = raw[orient_wrap_bin(first + i - 6)];
#pragma unroll
  for (int32_t i = 0; i < PEAK_BINS; i++) {
    const int64_t smooth = orient_smooth_bin(near, i + 12, rule);
    h[first + i] = smooth;
    largest = smooth > largest ? smooth : largest;
  }
  largest = lanes_reduce_max_i64<PEAK_LANES>(largest);
  __syncwarp();
  uint64_t own = own_peaks(h, first, largest, rule), all = lanes_reduce_or_u64<PEAK_LANES>(own);
  if (__any_sync(WARP_ALL, p->max_orientations > 0 && __popcll(all) > p->max_orientations)) {
    if (__popcll(all) > p->max_orientations) own = keep_highest(h, all, own, p->max_orientations);
    all = lanes_reduce_or_u64<PEAK_LANES>(own);
  }
  for (uint64_t rest = own; rest != 0; rest &= rest - 1) {
    const int32_t b = __ffsll((long long)rest) - 1;
    const float peak = orient_peak_angle(b, h[orient_wrap_bin(b - 1)], h[b], h[orient_wrap_bin(b + 1)], rule);
    angle[b] = shape ? affine_angle_in_image(shape, peak) : peak;
  }
  __syncwarp();
  write_angles(angle, all, own, out);
  return (uint32_t)__popcll(all);
}

/*
 * Does      peaks of each keypoint's histogram, the second part of orient_ref; upright: one peak of angle 0.
 * Launch    blocks of 128 threads, 4 lanes per keypoint, looping.
 * Shared    19 KiB.
 * Reads     histograms, keypoints, shapes. Writes peak_angles, peak_counts; peak_tiles and work_counts by atomics.
 * Barriers  block: histograms before use and after, work counts before they are added; warp: smoothed bins and
 *           angles before other lanes read them.
 * Limits    no keypoints: returns at once. Order: repeatable.
 * Cost      144 bytes and about 2000 lane operations per keypoint: bound by latency.
 */
template <bool GROUP> static __device__ __forceinline__ void find_peaks(const cuda_frame_view &one) {
  const cuda_frame_view &v = CUDA_VIEW_OF_BLOCK(GROUP, one);
  static_assert(LIST_TILE % PEAK_KEYPOINTS == 0, "a block's keypoints lie in one tile of the list");
  __shared__ peak_shared s;
  __shared__ __align__(16) uint32_t s_bins[WORK_BINS];
  const uint32_t count = min(*v.keypoints.count, v.keypoints.capacity), local = threadIdx.x / PEAK_LANES;
  const uint32_t bins = shared_hist_copy<1>(s_bins, 0);
  shared_hist_clear<WORK_BINS, PEAK_THREADS>(s_bins, threadIdx.x); /* a barrier follows before the first vote */
  for (uint32_t first = blockIdx.x * PEAK_KEYPOINTS; first < count; first += gridDim.x * PEAK_KEYPOINTS) {
    const uint32_t n = first + local, here = min(count - first, (uint32_t)PEAK_KEYPOINTS);
    __syncthreads(); /* the previous histograms have been used */
    for (uint32_t i = threadIdx.x; i < PEAK_KEYPOINTS * ORIENT_BINS; i += PEAK_THREADS)
      (&s.histogram[0][0])[i] =
          !v.params.upright && i < here * ORIENT_BINS ? v.scratch.histograms[(size_t)first * ORIENT_BINS + i] : 0;
    __syncthreads();
    float *angles = v.scratch.peak_angles + (size_t)n * ORIENT_PEAKS_MAX;
    const affine_shape *shape = v.shapes ? &v.shapes[n < count ? n : first] : nullptr;
    uint32_t peaks = orient_peaks(s.histogram[local], s.smooth[local], s.angle[local], &v.params, shape, angles);
    const bool owner = n < count && threadIdx.x % PEAK_LANES == 0;
    if (owner && v.params.upright) angles[0] = 0.0f, peaks = 1;
    if (owner) v.scratch.peak_counts[n] = (uint8_t)peaks;
    if (owner && peaks > 0) shared_hist_add<1>(bins, work_order_bin(v, n), (int32_t)peaks);
    const uint32_t of_warp = warp_reduce_sum(owner ? peaks : 0u);
    if (threadIdx.x % WARP_LANES == 0 && of_warp > 0) atomicAdd(&v.scratch.peak_tiles[first / LIST_TILE], of_warp);
  }
  __syncthreads();
  shared_hist_flush<WORK_BINS, PEAK_THREADS>(s_bins, v.scratch.work_counts, threadIdx.x);
}

/*
 * Does      turns peaks into features in keypoint order, the list of orient_ref, and makes their order of work.
 * Launch    blocks of 256 threads, one thread per keypoint, looping over tiles of 256 keypoints.
 * Shared    2.2 KiB.
 * Reads     peak_counts, peak_angles, peak_tiles, work_counts.
 * Writes    oriented, its count (by the block of the last tile), order.
 * Barriers  around the scans, and around the assignment of positions.
 * Limits    features past the capacity are counted, not written; no keypoints: block 0 writes count 0.
 * Order     features are repeatable; `order` varies within equal radii.
 * Cost      about 20 bytes per feature: bound by latency.
 */
template <bool GROUP> static __device__ __forceinline__ void emit_features(const cuda_frame_view &one) {
  const cuda_frame_view &v = CUDA_VIEW_OF_BLOCK(GROUP, one);
  __shared__ work_order_shared s_order;
  const uint32_t count = min(*v.keypoints.count, v.keypoints.capacity);
  if (count == 0 && blockIdx.x == 0 && threadIdx.x == 0) *v.oriented.count = 0;
  if (blockIdx.x * LIST_TILE >= count) return;
  work_order_bases(v.scratch.work_counts, &s_order);
  for (uint32_t tile = blockIdx.x; tile * LIST_TILE < count; tile += gridDim.x) {
    const uint32_t n = tile * LIST_TILE + threadIdx.x,
                   before = compact_before(v.scratch.peak_tiles, tile, s_order.scan);
    const uint32_t mine = n < count ? v.scratch.peak_counts[n] : 0u;
    uint32_t total;
    const uint32_t first = before + block_scan_exclusive(mine, s_order.scan, &total);
    if (count - tile * LIST_TILE <= LIST_TILE && threadIdx.x == 0) *v.oriented.count = before + total;
    for (uint32_t i = 0; i < mine && first + i < v.oriented.capacity; i++) {
      v.oriented.keypoint[first + i] = n;
      v.oriented.orientation[first + i] = v.scratch.peak_angles[(size_t)n * ORIENT_PEAKS_MAX + i];
    }
    work_order_put(v, &s_order, v.scratch.work_cursors, mine > 0 ? work_order_bin(v, n) : 0u, first, mine,
                   v.oriented.capacity);
  }
}

#define PEAK_KERNEL(name, GROUP)                                                                                       \
  extern "C" __global__ void __launch_bounds__(PEAK_THREADS) name(const __grid_constant__ cuda_frame_view view) {      \
    find_peaks<GROUP>(view);                                                                                           \
  }
PEAK_KERNEL(orient_peak_kernel, false)
PEAK_KERNEL(orient_peak_group_kernel, true)

#define EMIT_KERNEL(name, GROUP)                                                                                       \
  extern "C" __global__ void __launch_bounds__(LIST_TILE) name(const __grid_constant__ cuda_frame_view view) {         \
    emit_features<GROUP>(view);                                                                                        \
  }
EMIT_KERNEL(orient_emit_kernel, false)
EMIT_KERNEL(orient_emit_group_kernel, true)

PEAK_KERNELS(LAUNCH_CHECK)
