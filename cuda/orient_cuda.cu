/*
 * Orientation kernels: histogram and peaks, a warp a keypoint; then the features in order.
 */
#include "cuda/orient_cuda.h"

#include "cuda/launch_shape.h"
#include "cuda/prim/block_hist.cuh"
#include "cuda/prim/shared_add.cuh"
#include "cuda/prim/warp_hist.cuh"
#include "cuda/window_tile.cuh"
#include "cuda/work_order.cuh"

enum {
  ORIENT_WARPS = 4,                /* a block */
  ORIENT_TILE = 48,                /* samples along a tile: a window of radius 23, sigma 5.1 */
  ORIENT_COPIES = 8,               /* of the histogram, for the atomic variant */
  ORIENT_STORED = ORIENT_BINS + 4, /* bins -1..36 and what makes it a multiple of 4 */
  PEAK_LANES = 4,                  /* a keypoint, in the peak kernel */
  PEAK_BINS = ORIENT_BINS / PEAK_LANES,
  PEAK_THREADS = 128,
  PEAK_KEYPOINTS = PEAK_THREADS / PEAK_LANES
};

/* One warp's shared memory. The bins before 0 and after 35 are folded at the end, so that no vote has to wrap. */
typedef struct orient_shared {
  int32_t votes[ORIENT_STORED * ORIENT_COPIES]; /* (bin + 1) * copies + copy */
  window_tile<ORIENT_TILE> tile;
} orient_shared;

/* What a walk over one tile's samples needs: the tile from its corner on. */
typedef struct orient_tile {
  int32_t x, y; /* its first sample */
  int32_t columns, rows;
  float limit; /* of the squared distance */
} orient_tile;

/* One sample's votes: v0 into `bin`, v1 into the next; bin -1..35. */
typedef struct oriented_sample {
  int32_t bin, v0, v1;
} oriented_sample;

/* The same operations as orient_vote_of, without wrapping and with the floor by an addition to 2^23 rounded down. */
template <author_rule RULE>
static __device__ __forceinline__ oriented_sample orient_sample(float gx, float gy, float weight) {
  oriented_sample sample;
  float magnitude, turn;
  hs_polar(gx, gy, &magnitude, &turn);
  const float v = magnitude * weight, position = (float)ORIENT_BINS * turn;
  if (RULE == RULE_OPENCV) {
    const int32_t b = __float2int_rn(position);
    sample.bin = b >= ORIENT_BINS ? b - ORIENT_BINS : b;
    sample.v0 = __float2int_rn(v);
    sample.v1 = 0;
    return sample;
  }
  const float shifted = position - 0.5f, low = __fadd_rd(shifted, 12582912.0f); /* 2^23 + 2^22: from -1 on */
  const float v1 = v * (shifted - (low - 12582912.0f));
  sample.bin = __float_as_int(low) - 0x4b400000;
  sample.v0 = __float2int_rn(v - v1);
  sample.v1 = __float2int_rn(v1);
  return sample;
}

/* Adds one sample's votes; `votes` at the lane's copy of bin 0. Without atomics: called by all lanes. */
template <bool ATOMIC>
static __device__ __forceinline__ void orient_add(int32_t *votes, bool inside, const oriented_sample *sample) {
  if (ATOMIC) {
    if (!inside) return;
    const uint32_t at = shared_address(votes) + (uint32_t)sample->bin * (ORIENT_COPIES * 4u);
    shared_add(at, sample->v0);
    shared_add(at + ORIENT_COPIES * 4u, sample->v1);
  } else {
    warp_hist_add(votes, inside ? sample->bin : 0, inside ? sample->v0 : 0);
    warp_hist_add(votes, inside ? sample->bin + 1 : 0, inside ? sample->v1 : 0);
  }
}

/*
 * Votes of one tile, its weights in place. Lanes take the tile's samples in row order, 32 at a time: a square about a
 * circle wastes a fifth of them, less than spans by row would cost.
 */
template <bool ATOMIC, author_rule RULE>
static __device__ __forceinline__ void orient_walk(orient_shared *s, const plane_view *level, const window_place *w,
                                                   const orient_tile *t) {
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES), total = t->columns * t->rows,
                stride = (int32_t)level->stride;
  const int32_t row_step = WARP_LANES / t->columns, column_step = WARP_LANES - row_step * t->columns;
  int32_t *votes = ATOMIC ? s->votes + ORIENT_COPIES + lane % ORIENT_COPIES : s->votes + 1;
  const float *base = pinned(level->data + (size_t)t->y * level->stride + (size_t)t->x);
  const float *above = pinned(base - stride), *below = pinned(base + stride);
  int32_t row = lane / t->columns, column = lane - row * t->columns;
  for (int32_t first = 0; first < total; first += WARP_LANES) {
    const float dx = (float)(t->x + column) - w->x, dy = (float)(t->y + row) - w->y;
    const bool inside = first + lane < total && dx * dx + dy * dy < t->limit;
    oriented_sample sample;
    if (inside) {
      float gx, gy;
      const int32_t at = row * stride + column;
      if (RULE == RULE_VLFEAT)
        gradient_at_edge(level, t->x + column, t->y + row, &gx, &gy);
      else
        gx = 0.5f * (base[at + 1] - base[at - 1]), gy = 0.5f * (below[at] - above[at]);
      sample = orient_sample<RULE>(gx, gy, s->tile.column_weight[column] * s->tile.row_weight[row]);
    }
    orient_add<ATOMIC>(votes, inside, &sample);
    row += row_step;
    column += column_step;
    const bool wraps = column >= t->columns;
    column -= wraps ? t->columns : 0;
    row += wraps;
  }
}

/* Sum of the copies of stored bin b, 0..37. */
template <bool ATOMIC> static __device__ __forceinline__ int32_t orient_stored(const orient_shared *s, int32_t b) {
  if (!ATOMIC) return s->votes[b];
  const int4 low = ((const int4 *)s->votes)[2 * b], high = ((const int4 *)s->votes)[2 * b + 1];
  return ((low.x + low.y) + (low.z + low.w)) + ((high.x + high.y) + (high.z + high.w));
}

/* The keypoint's histogram, to `histogram` in global memory. */
template <bool ATOMIC, author_rule RULE>
static __device__ __forceinline__ void orient_fill(orient_shared *s, const plane_view *level, const window_place *w,
                                                   float limit, int32_t *histogram) {
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES);
  __syncwarp(); /* the keypoint before is done */
  for (int32_t i = lane; i < ORIENT_STORED * (ATOMIC ? ORIENT_COPIES : 1) / 4; i += WARP_LANES)
    ((int4 *)s->votes)[i] = make_int4(0, 0, 0, 0);
  const int32_t top = window_tile_first(w->radius, w->cy, w->margin),
                left = window_tile_first(w->radius, w->cx, w->margin);
  const int32_t bottom = window_tile_last(top, INT16_MAX, w->radius, w->cy, level->height, w->margin);
  const int32_t right = window_tile_last(left, INT16_MAX, w->radius, w->cx, level->width, w->margin);
  for (int32_t row = top; row <= bottom; row += ORIENT_TILE)
    for (int32_t column = left; column <= right; column += ORIENT_TILE) {
      const orient_tile tile = {w->cx + column, w->cy + row, min((int32_t)ORIENT_TILE, right - column + 1),
                                min((int32_t)ORIENT_TILE, bottom - row + 1), limit};
      __syncwarp(); /* the tile before is read */
      window_tile_weights(&s->tile, w, column, tile.columns, row, tile.rows);
      __syncwarp();
      orient_walk<ATOMIC, RULE>(s, level, w, &tile);
    }
  __syncwarp();
  for (int32_t b = lane; b < ORIENT_BINS; b += WARP_LANES) {
    int32_t sum = orient_stored<ATOMIC>(s, b + 1);
    if (b == 0) sum += orient_stored<ATOMIC>(s, ORIENT_BINS + 1);
    if (b == ORIENT_BINS - 1) sum += orient_stored<ATOMIC>(s, 0);
    histogram[b] = sum;
  }
}

/*
 * Does      the orientation histogram of each keypoint, first part of orient_ref. ATOMIC: votes by shared atomics on
 *           ORIENT_COPIES interleaved copies; otherwise by the warp-level histogram. RULE: whose votes.
 * Launch    resident blocks of 4 warps, a warp a keypoint; warps draw keypoints by ticket.
 * Shared    1856 bytes a warp.
 * Reads     keypoints, Gaussian levels. Writes histograms, 144 bytes a keypoint.
 * Barriers  warp only: tables before use, votes before folding.
 * Limits    windows of any radius up to WINDOW_RADIUS_MAX, in tiles; no keypoints: returns at once.
 * Order     repeatable: votes are integers.
 * Cost      about 64 sigma^2 samples of about 75 operations and 2 votes a keypoint: bound by issue.
 */
template <bool ATOMIC, author_rule RULE>
__global__ void __launch_bounds__(ORIENT_WARPS *WARP_LANES, 8)
    orient_warp_per_keypoint_kernel(const __grid_constant__ cuda_frame_view v) {
  __shared__ __align__(16) orient_shared s_warps[ORIENT_WARPS];
  const uint32_t lane = threadIdx.x % WARP_LANES, warps = gridDim.x * ORIENT_WARPS;
  const uint32_t count = min(*v.keypoints.count, v.keypoints.capacity);
  uint32_t n = blockIdx.x * ORIENT_WARPS + threadIdx.x / WARP_LANES;
  while (n < count) {
    uint32_t next = 0;
    if (lane == 0) next = warps + atomicAdd(&v.scratch.tickets[0], 1u);
    const keypoint_list &k = v.keypoints;
    const int32_t octave = k.octave[n];
    const octave_view &o = v.octaves[octave - v.first_octave];
    const plane_view level = {o.levels + (size_t)k.level[n] * o.level_floats, o.width, o.height, o.stride};
    const float unit = hs_power_of_two(-octave);
    const orient_window w = orient_window_of(k.x[n] * unit, k.y[n] * unit, k.sigma[n] * unit, k.column[n], k.row[n],
                                             v.params.orientation_rule);
    const window_place place = {w.x, w.y, w.cx, w.cy, w.radius, w.falloff, w.margin, v.scales->orient[w.radius]};
    orient_fill<ATOMIC, RULE>(&s_warps[threadIdx.x / WARP_LANES], &level, &place, w.limit,
                              v.scratch.histograms + (size_t)n * ORIENT_BINS);
    n = __shfl_sync(WARP_ALL, next, 0);
  }
}

/* One keypoint's part of the peak kernel's shared memory. */
typedef struct peak_shared {
  int64_t smooth[PEAK_KEYPOINTS][ORIENT_BINS];
  int32_t histogram[PEAK_KEYPOINTS][ORIENT_BINS];
  float angle[PEAK_KEYPOINTS][ORIENT_BINS];
} peak_shared;

/* The peaks in the lane's own bins, as bits of the keypoint's 36. Smoothed bins are whole. */
static __device__ __forceinline__ uint64_t own_peaks(const int64_t *h, int32_t first, int64_t largest,
                                                     author_rule rule) {
  uint64_t peaks = 0;
  for (int32_t b = first; b < first + PEAK_BINS; b++)
    if (orient_is_peak(h[orient_wrap_bin(b - 1)], h[b], h[orient_wrap_bin(b + 1)], largest, rule)) peaks |= 1ull << b;
  return peaks;
}

/* All of a keypoint's bits, on each of its lanes. */
static __device__ __forceinline__ uint64_t join_peaks(uint64_t own) {
  for (int32_t d = 1; d < PEAK_LANES; d <<= 1) own |= __shfl_xor_sync(WARP_ALL, own, d);
  return own;
}

/* Which of the lane's own peaks are among the `most` highest of all; lower bins first on ties. */
static __device__ __forceinline__ uint64_t keep_highest(const int64_t *h, uint64_t all, uint64_t own, int32_t most) {
  uint64_t kept = 0;
  for (; own != 0; own &= own - 1) {
    const int32_t b = __ffsll((long long)own) - 1;
    int32_t above = 0;
    for (uint64_t rest = all; rest != 0; rest &= rest - 1) {
      const int32_t other = __ffsll((long long)rest) - 1;
      above += h[other] > h[b] || (h[other] == h[b] && other < b);
    }
    if (above < most) kept |= 1ull << b;
  }
  return kept;
}

/* The kept peaks' angles in ascending order, by the lanes that own them. */
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

/* Smooths the lane's own bins of histogram `raw` into h, finds and keeps peaks, writes their angles; returns their
   number on each of the keypoint's lanes. All lanes of the warp. */
static __device__ __forceinline__ uint32_t orient_peaks(const int32_t *raw, int64_t *h, float *angle,
                                                        const sift_params *p, float *out) {
  const author_rule rule = p->orientation_rule;
  const int32_t first = (int32_t)(threadIdx.x % PEAK_LANES) * PEAK_BINS;
  int64_t largest = 0;
  /* The lane's bins and six to either side stand in the middle of a histogram of their own, so that no index has to
     wrap at run time. */
  int32_t near[ORIENT_BINS] = {0};
#pragma unroll
  for (int32_t i = 0; i < PEAK_BINS + 12; i++) near[i + 6] = raw[orient_wrap_bin(first + i - 6)];
#pragma unroll
  for (int32_t i = 0; i < PEAK_BINS; i++) {
    const int64_t smooth = orient_smooth_bin(near, i + 12, rule);
    h[first + i] = smooth;
    largest = smooth > largest ? smooth : largest;
  }
  for (int32_t d = 1; d < PEAK_LANES; d <<= 1) {
    const int64_t other = __shfl_xor_sync(WARP_ALL, largest, d);
    largest = other > largest ? other : largest;
  }
  __syncwarp();
  uint64_t own = own_peaks(h, first, largest, rule), all = join_peaks(own);
  if (__any_sync(WARP_ALL, p->max_orientations > 0 && __popcll(all) > p->max_orientations)) {
    if (__popcll(all) > p->max_orientations) own = keep_highest(h, all, own, p->max_orientations);
    all = join_peaks(own);
  }
  for (uint64_t rest = own; rest != 0; rest &= rest - 1) {
    const int32_t b = __ffsll((long long)rest) - 1;
    angle[b] = orient_peak_angle(b, h[orient_wrap_bin(b - 1)], h[b], h[orient_wrap_bin(b + 1)], rule);
  }
  __syncwarp();
  write_angles(angle, all, own, out);
  return (uint32_t)__popcll(all);
}

/*
 * Does      peaks of each keypoint's histogram, second part of orient_ref; upright: one of angle 0.
 * Launch    blocks of 128 threads, 4 lanes a keypoint, looping.
 * Shared    19 KiB.
 * Reads     histograms, keypoints. Writes peak_angles, peak_counts; peak_tiles and work_counts by atomics.
 * Barriers  block: histograms before use and after, counts of work before they are added; warp: smoothed bins and angles
 *           before other lanes read them.
 * Limits    no keypoints: returns at once. Order: repeatable.
 * Cost      144 bytes and about 2000 lane operations a keypoint: bound by latency.
 */
__global__ void __launch_bounds__(PEAK_THREADS) orient_peak_kernel(const __grid_constant__ cuda_frame_view v) {
  static_assert(LIST_TILE % PEAK_KEYPOINTS == 0, "a block's keypoints lie in one tile of the list");
  __shared__ peak_shared s;
  __shared__ uint32_t s_bins[WORK_BINS];
  const uint32_t count = min(*v.keypoints.count, v.keypoints.capacity), local = threadIdx.x / PEAK_LANES;
  block_hist_clear(s_bins, WORK_BINS);
  for (uint32_t first = blockIdx.x * PEAK_KEYPOINTS; first < count; first += gridDim.x * PEAK_KEYPOINTS) {
    const uint32_t n = first + local, here = min(count - first, (uint32_t)PEAK_KEYPOINTS);
    __syncthreads(); /* the histograms before are used */
    for (uint32_t i = threadIdx.x; i < PEAK_KEYPOINTS * ORIENT_BINS; i += PEAK_THREADS)
      (&s.histogram[0][0])[i] =
          !v.params.upright && i < here * ORIENT_BINS ? v.scratch.histograms[(size_t)first * ORIENT_BINS + i] : 0;
    __syncthreads();
    float *angles = v.scratch.peak_angles + (size_t)n * ORIENT_PEAKS_MAX;
    uint32_t peaks = orient_peaks(s.histogram[local], s.smooth[local], s.angle[local], &v.params, angles);
    const bool owner = n < count && threadIdx.x % PEAK_LANES == 0;
    if (owner && v.params.upright) angles[0] = 0.0f, peaks = 1;
    if (owner) v.scratch.peak_counts[n] = (uint8_t)peaks;
    if (owner && peaks > 0) block_hist_add(s_bins, work_order_bin(v, n), peaks);
    const uint32_t of_warp = warp_reduce_sum(owner ? peaks : 0u);
    if (threadIdx.x % WARP_LANES == 0 && of_warp > 0) atomicAdd(&v.scratch.peak_tiles[first / LIST_TILE], of_warp);
  }
  block_hist_flush(s_bins, WORK_BINS, v.scratch.work_counts);
}

/*
 * Does      peaks -> features in keypoint order, and their order of work: the list of orient_ref.
 * Launch    blocks of 256 threads, a thread a keypoint, looping over tiles of 256 keypoints.
 * Shared    2.2 KiB.
 * Reads     peak_counts, peak_angles, peak_tiles, work_counts.
 * Writes    oriented, its count (block of the last tile), order.
 * Barriers  of the scans and of the places.
 * Limits    past the capacity features are counted, not written; no keypoints: block 0 writes count 0.
 * Order     features repeatable; `order` only within equal radii.
 * Cost      about 20 bytes a feature: bound by latency.
 */
__global__ void __launch_bounds__(LIST_TILE) orient_emit_kernel(const __grid_constant__ cuda_frame_view v) {
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

template <bool ATOMIC, author_rule RULE>
static stage_status launch_histograms(const cuda_frame_view *view, cudaStream_t stream) {
  const int threads = ORIENT_WARPS * WARP_LANES;
  const unsigned blocks =
      launch_resident_blocks((const void *)orient_warp_per_keypoint_kernel<ATOMIC, RULE>, threads, 0);
  orient_warp_per_keypoint_kernel<ATOMIC, RULE><<<blocks, threads, 0, stream>>>(*view);
  return launch_status();
}

template <bool ATOMIC> static stage_status launch_by_rule(const cuda_frame_view *view, cudaStream_t stream) {
  if (view->params.orientation_rule == RULE_VLFEAT) return launch_histograms<ATOMIC, RULE_VLFEAT>(view, stream);
  if (view->params.orientation_rule == RULE_OPENCV) return launch_histograms<ATOMIC, RULE_OPENCV>(view, stream);
  return launch_histograms<ATOMIC, RULE_LOWE>(view, stream);
}

/* Blocks for `tiles` tiles, as many as are resident at most. */
static unsigned tiled_blocks(const void *kernel, int threads, unsigned tiles) {
  const unsigned resident = launch_resident_blocks(kernel, threads, 0);
  return tiles < resident ? tiles : resident;
}

stage_status cuda_orient_launch(const cuda_frame_view *view, cuda_orient_variant variant, cuda_stream stream) {
  assert(view->octave_count >= 1 && view->keypoints.capacity > 0 && view->oriented.capacity > 0 && view->scales);
  const uint32_t room = view->keypoints.capacity;
  stage_status st = STAGE_OK;
  if (!view->params.upright)
    st = variant == CUDA_ORIENT_ATOMIC ? launch_by_rule<true>(view, stream) : launch_by_rule<false>(view, stream);
  if (st != STAGE_OK) return st;
  orient_peak_kernel<<<tiled_blocks((const void *)orient_peak_kernel, PEAK_THREADS,
                                    (room + PEAK_KEYPOINTS - 1u) / PEAK_KEYPOINTS),
                       PEAK_THREADS, 0, stream>>>(*view);
  if (launch_status() != STAGE_OK) return STAGE_DEVICE;
  orient_emit_kernel<<<tiled_blocks((const void *)orient_emit_kernel, LIST_TILE, (room + LIST_TILE - 1u) / LIST_TILE),
                       LIST_TILE, 0, stream>>>(*view);
  return launch_status();
}
