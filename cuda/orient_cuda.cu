/*
 * Orientation kernels: histogram and peaks, a warp a keypoint; then the features in order.
 */
#include "cuda/orient_cuda.h"

#include "cuda/launch_shape.h"
#include "cuda/prim/warp_hist.cuh"
#include "cuda/window_tile.cuh"
#include "cuda/work_order.cuh"

enum {
  ORIENT_WARPS = 4,   /* a block */
  ORIENT_TILE = 48,   /* samples along a tile: a window of radius 23, sigma 5.1 */
  ORIENT_GROUP = 8,   /* lanes along a row */
  ORIENT_COPIES = 8,  /* of the histogram, for the atomic variant */
  ORIENT_STORED = 40  /* bins, to a multiple of 4 */
};

/* One warp's shared memory. */
typedef struct orient_shared {
  int32_t votes[ORIENT_STORED * ORIENT_COPIES]; /* bin * copies + copy */
  int32_t histogram[ORIENT_STORED];
  int64_t smooth[ORIENT_STORED];
  float angle[ORIENT_STORED];
  window_tile<ORIENT_TILE> tile;
} orient_shared;

/* The span of each row inside the circle; a superset, each sample is tested again. */
static __device__ __forceinline__ void orient_spans(orient_shared *s, const window_place *w, float limit, int32_t first_row, int32_t rows,
                                                    int32_t first_column, int32_t last_column) {
  for (int32_t i = (int32_t)(threadIdx.x % WARP_LANES); i < rows; i += WARP_LANES) {
    const float dy = (float)(w->cy + first_row + i) - w->y;
    const float half = fminf(sqrtf(fmaxf(limit - dy * dy, 0.0f)) + 1.01f, 4096.0f);
    const int32_t first = max(first_column, (int32_t)floorf(-half)), last = min(last_column, (int32_t)ceilf(half));
    s->tile.span[i] = make_short2((short)first, (short)last);
  }
}

/* Adds one sample's votes. */
template <bool ATOMIC>
static __device__ __forceinline__ void orient_add(orient_shared *s, bool inside, const orient_vote *vote) {
  if (ATOMIC) {
    if (!inside) return;
    int32_t *copy = s->votes + threadIdx.x % ORIENT_COPIES;
    atomicAdd(copy + vote->bin0 * ORIENT_COPIES, vote->v0);
    atomicAdd(copy + vote->bin1 * ORIENT_COPIES, vote->v1);
  } else {
    warp_hist_add(s->histogram, inside ? vote->bin0 : 0, inside ? vote->v0 : 0);
    warp_hist_add(s->histogram, inside ? vote->bin1 : 0, inside ? vote->v1 : 0);
  }
}

/* Votes of one tile, its tables in place. */
template <bool ATOMIC>
static __device__ __forceinline__ void orient_walk(orient_shared *s, const plane_view *level, const window_place *w, float limit,
                                                   author_rule rule, int32_t first_row, int32_t rows, int32_t first_column) {
  const int32_t turns = window_tile_turns<ORIENT_GROUP>(rows);
  for (int32_t turn = 0; turn < turns; turn++) {
    const int32_t r = window_tile_row<ORIENT_GROUP>(turn, rows);
    const short2 span = r >= 0 ? s->tile.span[r] : make_short2(0, -1);
    const float row_weight = r >= 0 ? s->tile.row_weight[r] : 0.0f;
    const int32_t y = w->cy + first_row + max(r, 0);
    const float dy = (float)y - w->y, dy2 = dy * dy;
    const int32_t steps = warp_reduce_max((span.y - span.x + ORIENT_GROUP) / ORIENT_GROUP);
    int32_t at = span.x + (int32_t)(threadIdx.x % ORIENT_GROUP);
    for (int32_t step = 0; step < steps; step++, at += ORIENT_GROUP) {
      const int32_t x = w->cx + at;
      const float dx = (float)x - w->x;
      const bool inside = at <= span.y && dx * dx + dy2 < limit;
      orient_vote vote = {0, 0, 0, 0};
      if (inside) {
        float gx, gy;
        if (w->margin == 0) gradient_at_edge(level, x, y, &gx, &gy);
        else gradient_at(level, x, y, &gx, &gy);
        vote = orient_vote_of(gx, gy, s->tile.column_weight[at - first_column] * row_weight, rule);
      }
      orient_add<ATOMIC>(s, inside, &vote);
    }
  }
}

/* Sums the copies of each bin. */
static __device__ __forceinline__ void orient_fold(orient_shared *s) {
  for (int32_t b = (int32_t)(threadIdx.x % WARP_LANES); b < ORIENT_BINS; b += WARP_LANES) {
    int32_t sum = 0;
    for (int32_t c = 0; c < ORIENT_COPIES; c++) sum += s->votes[b * ORIENT_COPIES + c];
    s->histogram[b] = sum;
  }
  __syncwarp();
}

/* The keypoint's histogram, complete on every lane's view of shared memory. */
template <bool ATOMIC>
static __device__ __forceinline__ void orient_fill(orient_shared *s, const plane_view *level, const window_place *w, float limit,
                                                   author_rule rule) {
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES);
  __syncwarp(); /* the keypoint before is done */
  for (int32_t i = lane; i < ORIENT_STORED * (ATOMIC ? ORIENT_COPIES : 1); i += WARP_LANES) (ATOMIC ? s->votes : s->histogram)[i] = 0;
  const int32_t top = window_tile_first(w->radius, w->cy, w->margin), left = window_tile_first(w->radius, w->cx, w->margin);
  const int32_t bottom = window_tile_last(top, INT16_MAX, w->radius, w->cy, level->height, w->margin);
  const int32_t right = window_tile_last(left, INT16_MAX, w->radius, w->cx, level->width, w->margin);
  for (int32_t row = top; row <= bottom; row += ORIENT_TILE)
    for (int32_t column = left; column <= right; column += ORIENT_TILE) {
      const int32_t rows = min((int32_t)ORIENT_TILE, bottom - row + 1), columns = min((int32_t)ORIENT_TILE, right - column + 1);
      __syncwarp(); /* the tile before is read */
      window_tile_weights(&s->tile, w, column, columns, row, rows);
      orient_spans(s, w, limit, row, rows, column, column + columns - 1);
      __syncwarp();
      orient_walk<ATOMIC>(s, level, w, limit, rule, row, rows, column);
    }
  __syncwarp();
  if (ATOMIC) orient_fold(s);
}

/* Which of the peaks at most `most` keep: the highest, lower bins first on ties. Lanes hold bins lane and lane + 32. */
static __device__ __forceinline__ uint64_t keep_highest(const orient_shared *s, uint64_t peaks, int32_t most) {
  if (most <= 0 || __popcll(peaks) <= most) return peaks;
  bool keep[2];
  for (int32_t half = 0; half < 2; half++) {
    const int32_t b = (int32_t)(threadIdx.x % WARP_LANES) + 32 * half;
    keep[half] = false;
    if (b >= ORIENT_BINS || !(peaks >> b & 1u)) continue;
    int32_t above = 0;
    for (uint64_t rest = peaks; rest != 0; rest &= rest - 1) {
      const int32_t other = __ffsll((long long)rest) - 1;
      above += s->smooth[other] > s->smooth[b] || (s->smooth[other] == s->smooth[b] && other < b);
    }
    keep[half] = above < most;
  }
  const uint64_t low = __ballot_sync(WARP_ALL, keep[0]), high = __ballot_sync(WARP_ALL, keep[1]);
  return low | high << 32;
}

/* Peaks of the histogram, by angle, to `angles`; returns their number on every lane. */
static __device__ __forceinline__ uint32_t orient_peaks(orient_shared *s, const sift_params *p, float *angles) {
  const author_rule rule = p->orientation_rule;
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES);
  int64_t largest = 0;
  for (int32_t b = lane; b < ORIENT_BINS; b += WARP_LANES) {
    s->smooth[b] = orient_smooth_bin(s->histogram, b, rule);
    largest = s->smooth[b] > largest ? s->smooth[b] : largest;
  }
  largest = warp_reduce_max_i64(largest);
  __syncwarp();
  bool peak[2];
  for (int32_t half = 0; half < 2; half++) {
    const int32_t b = lane + 32 * half;
    peak[half] = b < ORIENT_BINS && orient_is_peak(s->smooth[orient_wrap_bin(b - 1)], s->smooth[b], s->smooth[orient_wrap_bin(b + 1)],
                                                   largest, rule);
  }
  const uint64_t low = __ballot_sync(WARP_ALL, peak[0]), high = __ballot_sync(WARP_ALL, peak[1]);
  const uint64_t kept = keep_highest(s, low | high << 32, p->max_orientations);
  for (int32_t b = lane; b < ORIENT_BINS; b += WARP_LANES)
    if (kept >> b & 1u)
      s->angle[b] = orient_peak_angle(b, s->smooth[orient_wrap_bin(b - 1)], s->smooth[b], s->smooth[orient_wrap_bin(b + 1)], rule);
  __syncwarp();
  for (int32_t b = lane; b < ORIENT_BINS; b += WARP_LANES) {
    if (!(kept >> b & 1u)) continue;
    int32_t before = 0;
    for (uint64_t rest = kept; rest != 0; rest &= rest - 1) {
      const int32_t other = __ffsll((long long)rest) - 1;
      before += s->angle[other] < s->angle[b] || (s->angle[other] == s->angle[b] && other < b);
    }
    angles[before] = s->angle[b];
  }
  return (uint32_t)__popcll(kept);
}

/* One keypoint by one warp: its peaks; returns their number on every lane. */
template <bool ATOMIC>
static __device__ __forceinline__ uint32_t orient_keypoint(const cuda_frame_view &v, orient_shared *s, uint32_t n) {
  const keypoint_list &k = v.keypoints;
  const int32_t octave = k.octave[n];
  const octave_view &o = v.octaves[octave - v.first_octave];
  const plane_view level = {o.levels + (size_t)k.level[n] * o.level_floats, o.width, o.height, o.stride};
  const float unit = hs_power_of_two(-octave);
  const orient_window w =
      orient_window_of(k.x[n] * unit, k.y[n] * unit, k.sigma[n] * unit, k.column[n], k.row[n], v.params.orientation_rule);
  const window_place place = {w.x, w.y, w.cx, w.cy, w.radius, w.falloff, w.margin, v.scales->orient[w.radius]};
  orient_fill<ATOMIC>(s, &level, &place, w.limit, v.params.orientation_rule);
  return orient_peaks(s, &v.params, v.scratch.peak_angles + (size_t)n * ORIENT_PEAKS_MAX);
}

/*
 * Does      orientation histogram and peaks of each keypoint: orient_ref but for the list. ATOMIC: votes by shared-memory
 *           atomics on ORIENT_COPIES interleaved copies; otherwise by the warp-level histogram.
 * Launch    resident blocks of 4 warps, a warp a keypoint; warps draw keypoints by ticket.
 * Shared    orient_shared a warp.
 * Reads     keypoints, Gaussian levels. Writes peak_angles, peak_counts, peak_tiles and work_counts (atomics).
 * Barriers  warp only: tables before use, votes before folding, smoothing before peaks.
 * Limits    windows of any radius up to WINDOW_RADIUS_MAX, in tiles; no keypoints: returns at once.
 * Order     repeatable: votes are integers.
 * Cost      about (9 sigma)^2 * 0.79 samples of about 70 operations: bound by arithmetic.
 */
template <bool ATOMIC>
__global__ void __launch_bounds__(ORIENT_WARPS * WARP_LANES) orient_warp_per_keypoint_kernel(const __grid_constant__ cuda_frame_view v) {
  __shared__ orient_shared s_warps[ORIENT_WARPS];
  orient_shared *s = &s_warps[threadIdx.x / WARP_LANES];
  const uint32_t lane = threadIdx.x % WARP_LANES, warps = gridDim.x * ORIENT_WARPS;
  const uint32_t count = min(*v.keypoints.count, v.keypoints.capacity);
  uint32_t n = blockIdx.x * ORIENT_WARPS + threadIdx.x / WARP_LANES;
  while (n < count) {
    uint32_t next = 0;
    if (lane == 0) next = warps + atomicAdd(&v.scratch.tickets[0], 1u);
    const uint32_t peaks = v.params.upright ? 1u : orient_keypoint<ATOMIC>(v, s, n);
    if (lane == 0) {
      if (v.params.upright) v.scratch.peak_angles[(size_t)n * ORIENT_PEAKS_MAX] = 0.0f;
      v.scratch.peak_counts[n] = (uint8_t)peaks;
      if (peaks > 0) {
        atomicAdd(&v.scratch.peak_tiles[n / LIST_TILE], peaks);
        atomicAdd(&v.scratch.work_counts[work_order_bin(v, n)], peaks);
      }
    }
    n = __shfl_sync(WARP_ALL, next, 0);
  }
}

/*
 * Does      peaks -> features in keypoint order, and their order of work: the list of orient_ref.
 * Launch    blocks of 256 threads, a thread a keypoint, looping over tiles of 256 keypoints.
 * Shared    2.1 KiB.
 * Reads     peak_counts, peak_angles, peak_tiles, work_counts. Writes oriented, its count (block of the last tile), order.
 * Barriers  of the scans.
 * Limits    past the capacity features are counted, not written; no keypoints: block 0 writes count 0.
 * Order     features repeatable; `order` only within equal radii.
 * Cost      about 20 bytes a feature: bound by latency.
 */
__global__ void __launch_bounds__(LIST_TILE) orient_emit_kernel(const __grid_constant__ cuda_frame_view v) {
  __shared__ uint32_t s_scan[WARP_LANES], s_bases[WORK_BINS];
  const uint32_t count = min(*v.keypoints.count, v.keypoints.capacity);
  if (count == 0 && blockIdx.x == 0 && threadIdx.x == 0) *v.oriented.count = 0;
  if (blockIdx.x * LIST_TILE >= count) return;
  work_order_bases(v.scratch.work_counts, s_bases, s_scan);
  for (uint32_t tile = blockIdx.x; tile * LIST_TILE < count; tile += gridDim.x) {
    const uint32_t n = tile * LIST_TILE + threadIdx.x, before = compact_before(v.scratch.peak_tiles, tile, s_scan);
    const uint32_t mine = n < count ? v.scratch.peak_counts[n] : 0u;
    uint32_t total;
    const uint32_t first = before + block_scan_exclusive(mine, s_scan, &total);
    if (count - tile * LIST_TILE <= LIST_TILE && threadIdx.x == 0) *v.oriented.count = before + total;
    for (uint32_t i = 0; i < mine && first + i < v.oriented.capacity; i++) {
      v.oriented.keypoint[first + i] = n;
      v.oriented.orientation[first + i] = v.scratch.peak_angles[(size_t)n * ORIENT_PEAKS_MAX + i];
    }
    if (mine > 0) work_order_put(v, s_bases, v.scratch.work_cursors, work_order_bin(v, n), first, mine, v.oriented.capacity);
  }
}

template <bool ATOMIC>
static stage_status launch_peaks(const cuda_frame_view *view, cudaStream_t stream) {
  const int threads = ORIENT_WARPS * WARP_LANES;
  const unsigned blocks = launch_resident_blocks((const void *)orient_warp_per_keypoint_kernel<ATOMIC>, threads, 0);
  orient_warp_per_keypoint_kernel<ATOMIC><<<blocks, threads, 0, stream>>>(*view);
  return launch_status();
}

stage_status cuda_orient_launch(const cuda_frame_view *view, cuda_orient_variant variant, cuda_stream stream) {
  assert(view->octave_count >= 1 && view->keypoints.capacity > 0 && view->oriented.capacity > 0 && view->scales);
  const stage_status st = variant == CUDA_ORIENT_ATOMIC ? launch_peaks<true>(view, stream) : launch_peaks<false>(view, stream);
  if (st != STAGE_OK) return st;
  const unsigned tiles = (view->keypoints.capacity + LIST_TILE - 1u) / LIST_TILE;
  const unsigned resident = launch_resident_blocks((const void *)orient_emit_kernel, LIST_TILE, 0);
  orient_emit_kernel<<<tiles < resident ? tiles : resident, LIST_TILE, 0, stream>>>(*view);
  return launch_status();
}
