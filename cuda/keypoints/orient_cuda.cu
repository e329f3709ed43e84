/*
 * Orientation kernels: histogram and peaks, a warp a keypoint; then the features in order.
 */
#include "cuda/keypoints/orient_cuda.h"

#include "cuda/device/launch.cuh"
#include "cuda/keypoints/affine_patch.cuh"
#include "cuda/keypoints/window_tile.cuh"
#include "cuda/keypoints/work_order.cuh"
#include "cuda/prim/async_copy.cuh"
#include "cuda/prim/block_hist.cuh"
#include "cuda/prim/shared_memory.cuh"
#include "cuda/prim/warp_hist.cuh"

enum {
  ORIENT_WARPS = 4,                      /* a block */
  ORIENT_BLOCKS = 6,                     /* a multiprocessor */
  ORIENT_TILE = 36,                      /* samples along a segment of the window: all of one of radius 17, sigma 3.8 */
  ORIENT_PITCH = ORIENT_TILE + 2,        /* of the segment's samples in shared memory, with one more to each side */
  ORIENT_COPIES = 8,                     /* of the histogram, for the atomic variant */
  ORIENT_BIN_MIN = -ORIENT_BINS / 2 - 1, /* bins -19..18 are stored */
  ORIENT_STORED = ORIENT_BINS + 4,       /* these and what makes it a multiple of 4 */
  PEAK_LANES = 4,                        /* a keypoint, in the peak kernel */
  PEAK_BINS = ORIENT_BINS / PEAK_LANES,
  PEAK_THREADS = 128,
  PEAK_KEYPOINTS = PEAK_THREADS / PEAK_LANES
};
static_assert((int)AFFINE_ORIENT_SIDE <= (int)ORIENT_PITCH, "a patch lies where a segment's samples do");

/* One warp's shared memory. What lies below bin 0 is folded at the end, so that no vote has to wrap. */
typedef struct __align__(16) orient_shared {
  int32_t votes[ORIENT_STORED * ORIENT_COPIES]; /* (bin - ORIENT_BIN_MIN) * copies + copy */
  window_tile<ORIENT_TILE> tile;
  float samples[ORIENT_PITCH * ORIENT_PITCH]; /* of the level, from one above and left of the segment */
}
orient_shared;

/* One sample's votes: v0 into `bin`, v1 into the next; bin -19..18, plus ORIENT_BIAS (wrapped around), which a float's
   bits leave in it. */
typedef struct oriented_sample {
  uint32_t bin;
  int32_t v0, v1;
} oriented_sample;

#define ORIENT_SHIFT 12582912.0f /* 2^23 + 2^22: added to floats below 2^22 leaves whole numbers in the low bits */
#define ORIENT_BIAS  0x4b400000u

/* The same operations as orient_vote_of, without wrapping and with the floor by an addition rounded down. */
template <author_rule RULE>
static __device__ __forceinline__ oriented_sample orient_sample(float gx, float gy, float weight) {
  oriented_sample sample;
  float magnitude, position;
  hs_polar(gx, gy, (float)ORIENT_BINS, &magnitude, &position);
  const float v = magnitude * weight;
  const int32_t all = __float_as_int(v + ORIENT_SHIFT);
  if (RULE == RULE_OPENCV) {
    sample.bin = __float_as_uint(position + ORIENT_SHIFT);
    sample.v0 = all - (int32_t)ORIENT_BIAS;
    sample.v1 = 0;
    return sample;
  }
  const float shifted = position - 0.5f, low = __fadd_rd(shifted, ORIENT_SHIFT);
  const int32_t next = __float_as_int(hs_fmaf(v, shifted - (low - ORIENT_SHIFT), ORIENT_SHIFT));
  sample.bin = __float_as_uint(low);
  sample.v0 = all - next;
  sample.v1 = next - (int32_t)ORIENT_BIAS;
  return sample;
}

/* Adds one sample's votes; lane_votes: the shared address of the lane's copy of bin 0, less what ORIENT_BIAS adds.
   Without atomics: called by all lanes. */
template <bool ATOMIC>
static __device__ __forceinline__ void orient_add(int32_t *votes, uint32_t lane_votes, bool inside,
                                                  const oriented_sample *sample) {
  if (ATOMIC) {
    if (!inside) return;
    const uint32_t at = lane_votes + sample->bin * (ORIENT_COPIES * 4u);
    shared_add(at, sample->v0);
    shared_add(at + ORIENT_COPIES * 4u, sample->v1);
  } else {
    const int32_t bin = inside ? (int32_t)(sample->bin - ORIENT_BIAS) : 0;
    warp_hist_add(votes, bin, inside ? sample->v0 : 0);
    warp_hist_add(votes, bin + 1, inside ? sample->v1 : 0);
  }
}

/* Votes of the first `listed` runs. Each step takes RUN_GROUPS of them, RUN_LENGTH lanes a run. */
template <bool ATOMIC, author_rule RULE>
static __device__ __forceinline__ void orient_runs(orient_shared *s, const plane_view *level,
                                                   const window_segment *segment, int32_t listed) {
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES), sub = lane % RUN_LENGTH, group = lane / RUN_LENGTH;
  const uint32_t lane_votes = shared_address(s->votes - ORIENT_BIN_MIN * ORIENT_COPIES + lane % ORIENT_COPIES) -
                              ORIENT_BIAS * (ORIENT_COPIES * 4u);
  const float2 *columns = s->tile.column + sub;
  const float *samples = s->samples + ORIENT_PITCH + 1 + sub;
  const uint16_t *runs = s->tile.runs + group;
  for (int32_t first = 0; first < listed; first += RUN_GROUPS) {
    const uint32_t run = runs[first];
    const bool inside = first + group < listed && window_run_reaches(run, (uint32_t)sub);
    oriented_sample sample;
    if (inside) {
      const int32_t x = window_run_column(run), y = window_run_row(run);
      float gx, gy;
      if (RULE == RULE_VLFEAT) {
        gradient_at_edge(level, segment->x + sub + x, segment->y + y, &gx, &gy);
      } else {
        const float *p = samples + y * ORIENT_PITCH + x;
        gx = p[1] - p[-1], gy = p[ORIENT_PITCH] - p[-ORIENT_PITCH];
      }
      sample = orient_sample<RULE>(gx, gy, columns[x].y * s->tile.row[y].y);
    }
    orient_add<ATOMIC>(s->votes - ORIENT_BIN_MIN, lane_votes, inside, &sample);
  }
}

/* The columns of a row that vote, within a segment's: first bounds by a rough root, a hundredth of a sample too wide,
   then each end moves in until its sample votes. What lies between votes too: squares, sums and rounding never turn
   back. */
static __device__ __forceinline__ window_span orient_span(const window_geometry *w, float limit,
                                                          const window_segment *segment, int32_t row) {
  const float dy = (float)(segment->y + row) - w->y, rest = limit - dy * dy, shift = w->x - (float)w->cx;
  window_span span = {0, 0};
  if (!(rest > 0.0f)) return span;
  const float reach = fminf(rest * rsqrtf(rest), 4096.0f) + 0.01f;
  float x = (float)max(w->cx + (int32_t)ceilf(shift - reach), segment->x);
  float end = (float)min(w->cx + (int32_t)floorf(shift + reach), segment->x + segment->columns - 1);
  while (x <= end && !((x - w->x) * (x - w->x) + dy * dy < limit)) x += 1.0f;
  while (x <= end && !((end - w->x) * (end - w->x) + dy * dy < limit)) end -= 1.0f;
  span.first = (int32_t)x - segment->x;
  span.length = (int32_t)end - (int32_t)x + 1;
  return span;
}

/* Copies a segment and one sample to each side of it to shared memory: all reads of a window are in flight at once. */
static __device__ __forceinline__ void orient_fetch(orient_shared *s, const window_segment *segment) {
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES), width = segment->columns + 2;
  const float *from = segment->corner - segment->stride - 1 + lane;
  float *to = s->samples + lane;
#pragma unroll 4
  for (int32_t row = 0; row < segment->rows + 2; row++, from += segment->stride, to += ORIENT_PITCH) {
    if (lane < width) copy_4_async(to, from);
    if (lane + WARP_LANES < width) copy_4_async(to + WARP_LANES, from + WARP_LANES);
  }
  copies_commit();
}

/* Votes of one segment of the window, whose weights are in shared memory. */
template <bool ATOMIC, author_rule RULE>
static __device__ __forceinline__ void orient_segment(orient_shared *s, const plane_view *level,
                                                      const window_geometry *w, float limit,
                                                      const window_segment *segment) {
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES);
  int32_t listed = 0;
  for (int32_t first = 0;; first += WARP_LANES) {
    window_span span = {0, 0};
    if (first + lane < segment->rows) span = orient_span(w, limit, segment, first + lane);
    const int32_t runs = window_runs_of(span), before = (int32_t)warp_scan_exclusive((uint32_t)runs);
    const int32_t more = __shfl_sync(WARP_ALL, before + runs, WARP_LANES - 1);
    if (first >= segment->rows || listed + more > s->tile.RUNS) {
      copies_wait();
      __syncwarp(); /* the list, the weights and the samples are whole */
      orient_runs<ATOMIC, RULE>(s, level, segment, listed);
      __syncwarp(); /* and read */
      if (first >= segment->rows) return;
      listed = 0;
    }
    window_list_runs(s->tile.runs + listed + before, span, first + lane);
    listed += more;
  }
}

/* Sum of the copies of stored bin b, 0..37: bin b + ORIENT_BIN_MIN. */
template <bool ATOMIC> static __device__ __forceinline__ int32_t orient_stored(const orient_shared *s, int32_t b) {
  if (!ATOMIC) return s->votes[b];
  const int4 low = ((const int4 *)s->votes)[2 * b], high = ((const int4 *)s->votes)[2 * b + 1];
  return ((low.x + low.y) + (low.z + low.w)) + ((high.x + high.y) + (high.z + high.w));
}

/* The keypoint's histogram, to `histogram` in global memory. PATCH: the level is a patch, and lies in s->samples already. */
template <bool ATOMIC, author_rule RULE, bool PATCH>
static __device__ __forceinline__ void orient_fill(orient_shared *s, const plane_view *level, const window_geometry *w,
                                                   float limit, int32_t *histogram) {
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES);
  __syncwarp(); /* the keypoint before is done */
  for (int32_t i = lane; i < ORIENT_STORED * (ATOMIC ? ORIENT_COPIES : 1) / 4; i += WARP_LANES)
    ((int4 *)s->votes)[i] = make_int4(0, 0, 0, 0);
  const int32_t top = window_tile_first(w->radius, w->cy, w->margin),
                left = window_tile_first(w->radius, w->cx, w->margin);
  const int32_t bottom = window_tile_last(w->radius, w->cy, level->height, w->margin);
  const int32_t right = window_tile_last(w->radius, w->cx, level->width, w->margin);
  for (int32_t row = top; row <= bottom; row += ORIENT_TILE)
    for (int32_t column = left; column <= right; column += ORIENT_TILE) {
      const int32_t x = w->cx + column, y = w->cy + row, stride = (int32_t)level->stride;
      const window_segment segment = {x,
                                      y,
                                      min((int32_t)ORIENT_TILE, right - column + 1),
                                      min((int32_t)ORIENT_TILE, bottom - row + 1),
                                      stride,
                                      level->data + (size_t)y * level->stride + (size_t)x};
      if (RULE != RULE_VLFEAT && !PATCH) orient_fetch(s, &segment); /* VLFeat's windows reach the level's edge */
      window_tile_weights(&s->tile, w, &segment);
      orient_segment<ATOMIC, RULE>(s, level, w, limit, &segment);
    }
  __syncwarp();
  for (int32_t b = lane; b < ORIENT_BINS; b += WARP_LANES) {
    const int32_t above = b - ORIENT_BIN_MIN,
                  below = above - ORIENT_BINS; /* stored as b and as b - 36; 17 and 18 as both */
    int32_t sum = orient_stored<ATOMIC>(s, below >= 0 ? below : above);
    if (below >= 0 && above < ORIENT_BINS + 2) sum += orient_stored<ATOMIC>(s, above);
    histogram[b] = sum;
  }
}

/* What orientation reads of a keypoint. */
typedef struct orient_item {
  float x, y, sigma;
  int32_t column, row, octave, level;
} orient_item;

/* Keypoint n of `count`; of no meaning from there on. */
static __device__ __forceinline__ orient_item orient_item_at(const keypoint_list *k, uint32_t n, uint32_t count) {
  orient_item item = {0.0f, 0.0f, 0.0f, 0, 0, 0, 0};
  if (n >= count) return item;
  item.x = k->x[n], item.y = k->y[n], item.sigma = k->sigma[n];
  item.column = k->column[n], item.row = k->row[n], item.octave = k->octave[n], item.level = k->level[n];
  return item;
}

/* The patch of keypoint n, which `item` is, as a level of its own whose keypoint is in the middle: in s->samples. */
static __device__ __forceinline__ plane_view orient_patch(const cuda_frame_view &v, orient_shared *s, uint32_t n,
                                                          const plane_view *level, orient_item *item) {
  const float unit = hs_power_of_two(-item->octave), shift = v.params.grid_shift, middle = AFFINE_ORIENT_SIDE / 2;
  const affine_shape shape = v.shapes[n];
  const patch_map map = affine_map_of(sample_of_place(item->x, item->octave, shift),
                                      sample_of_place(item->y, item->octave, shift), item->sigma * unit, &shape);
  __syncwarp(); /* the keypoint before is done */
  affine_patch_fill<AFFINE_ORIENT_SIDE, ORIENT_PITCH>(s->samples, level, &map);
  *item = orient_item{middle, middle, 1.0f / AFFINE_DISTANCE, AFFINE_ORIENT_SIDE / 2, AFFINE_ORIENT_SIDE / 2, 0, 0};
  return plane_view{s->samples, AFFINE_ORIENT_SIDE, AFFINE_ORIENT_SIDE, ORIENT_PITCH};
}

/*
 * Does      the orientation histogram of each keypoint, first part of orient_ref. ATOMIC: votes by shared atomics on
 *           ORIENT_COPIES interleaved copies; otherwise by the warp-level histogram. RULE: whose votes. PATCH: on the
 *           patches of shapes, as affine_orient_run.
 * Launch    resident blocks of 4 warps, a warp a keypoint; warps draw keypoints by ticket.
 * Shared    8224 bytes a warp.
 * Reads     keypoints, Gaussian levels (each window once, copied to shared memory). Writes histograms, 144 bytes a
 *           keypoint.
 * Barriers  warp only: tables, list and samples before use and after, votes before folding.
 * Limits    windows of any radius up to WINDOW_RADIUS_MAX, in segments; no keypoints: returns at once.
 * Order     repeatable: votes are integers.
 * Cost      about 64 sigma^2 samples of about 80 operations and 2 votes a keypoint: bound by issue.
 */
template <bool ATOMIC, author_rule RULE, bool PATCH, bool GROUP>
__global__ void __launch_bounds__(ORIENT_WARPS *WARP_LANES, ORIENT_BLOCKS)
    orient_warp_per_keypoint_kernel(const __grid_constant__ cuda_frame_view one) {
  const cuda_frame_view &v = CUDA_VIEW_OF_BLOCK(GROUP, one);
  __shared__ __align__(16) orient_shared s_warps[ORIENT_WARPS];
  const uint32_t lane = threadIdx.x % WARP_LANES, warps = gridDim.x * ORIENT_WARPS;
  const uint32_t count = min(*v.keypoints.count, v.keypoints.capacity);
  uint32_t n = blockIdx.x * ORIENT_WARPS + threadIdx.x / WARP_LANES, following = n + warps;
  orient_item item = orient_item_at(&v.keypoints, n, count);
  while (n < count) {
    /* Tickets are drawn two keypoints ahead and what the next one is read one ahead: both take long to come. */
    uint32_t ticket = 0;
    if (lane == 0) ticket = 2 * warps + atomicAdd(&v.scratch.tickets[TICKET_ORIENT], 1u);
    const orient_item next = orient_item_at(&v.keypoints, following, count);
    const octave_view &o = v.octaves[item.octave - v.first_octave];
    plane_view level = {o.levels + (size_t)item.level * o.level_floats, o.width, o.height, o.stride};
    orient_shared *s = &s_warps[threadIdx.x / WARP_LANES];
    if (PATCH) level = orient_patch(v, s, n, &level, &item);
    const float unit = hs_power_of_two(-item.octave), shift = PATCH ? 0.0f : v.params.grid_shift;
    const orient_window w =
        orient_window_of(sample_of_place(item.x, item.octave, shift), sample_of_place(item.y, item.octave, shift),
                         item.sigma * unit, item.column, item.row, v.params.orientation_rule);
    /* Gradients are taken at twice their length and weights at half: for the polar form scales exactly, except below
       1e-30, where a vote rounds to nothing. VLFeat's one-sided differences at the edge are whole. */
    const float scale = v.scales->orient[w.radius] * (RULE == RULE_VLFEAT ? 1.0f : 0.5f);
    const window_geometry geometry = {w.x, w.y, w.cx, w.cy, w.radius, w.falloff, w.margin, scale};
    orient_fill<ATOMIC, RULE, PATCH>(s, &level, &geometry, w.limit, v.scratch.histograms + (size_t)n * ORIENT_BINS);
    n = following;
    item = next;
    following = __shfl_sync(WARP_ALL, ticket, 0);
  }
}

/* One keypoint's shared memory in the peak kernel. */
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

/* Which of the lane's own peaks are among the `count` highest of all; lower bins first on ties. */
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
   number on each of the keypoint's lanes. shape: of a patch, whose angles become the picture's; null: they are. All lanes
   of the warp. */
static __device__ __forceinline__ uint32_t orient_peaks(const int32_t *raw, int64_t *h, float *angle,
                                                        const sift_params *p, const affine_shape *shape, float *out) {
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
    const float peak = orient_peak_angle(b, h[orient_wrap_bin(b - 1)], h[b], h[orient_wrap_bin(b + 1)], rule);
    angle[b] = shape ? affine_angle_in_image(shape, peak) : peak;
  }
  __syncwarp();
  write_angles(angle, all, own, out);
  return (uint32_t)__popcll(all);
}

/*
 * Does      peaks of each keypoint's histogram, second part of orient_ref; upright: one of angle 0.
 * Launch    blocks of 128 threads, 4 lanes a keypoint, looping.
 * Shared    19 KiB.
 * Reads     histograms, keypoints, shapes. Writes peak_angles, peak_counts; peak_tiles and work_counts by atomics.
 * Barriers  block: histograms before use and after, counts of work before they are added; warp: smoothed bins and
 *           angles before other lanes read them.
 * Limits    no keypoints: returns at once. Order: repeatable.
 * Cost      144 bytes and about 2000 lane operations a keypoint: bound by latency.
 */
template <bool GROUP>
__global__ void __launch_bounds__(PEAK_THREADS) orient_peak_kernel(const __grid_constant__ cuda_frame_view one) {
  const cuda_frame_view &v = CUDA_VIEW_OF_BLOCK(GROUP, one);
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
    const affine_shape *shape = v.shapes ? &v.shapes[n < count ? n : first] : nullptr;
    uint32_t peaks = orient_peaks(s.histogram[local], s.smooth[local], s.angle[local], &v.params, shape, angles);
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
 * Barriers  of the scans and of the positions.
 * Limits    past the capacity features are counted, not written; no keypoints: block 0 writes count 0.
 * Order     features repeatable; `order` only within equal radii.
 * Cost      about 20 bytes a feature: bound by latency.
 */
template <bool GROUP>
__global__ void __launch_bounds__(LIST_TILE) orient_emit_kernel(const __grid_constant__ cuda_frame_view one) {
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

template <bool ATOMIC, author_rule RULE, bool PATCH, bool GROUP>
static stage_status launch_histograms(const cuda_frame_view *view, cudaStream_t stream) {
  const int threads = ORIENT_WARPS * WARP_LANES;
  const unsigned resident =
      launch_resident_blocks((const void *)orient_warp_per_keypoint_kernel<ATOMIC, RULE, PATCH, GROUP>, threads, 0);
  const dim3 blocks(cuda_group_share(view, resident), 1, cuda_group_count(view));
  return launch(orient_warp_per_keypoint_kernel<ATOMIC, RULE, PATCH, GROUP>, blocks, threads, 0, stream, *view);
}

template <bool ATOMIC, author_rule RULE, bool GROUP>
static stage_status launch_by_shape(const cuda_frame_view *view, cudaStream_t stream) {
  return view->shapes ? launch_histograms<ATOMIC, RULE, true, GROUP>(view, stream)
                      : launch_histograms<ATOMIC, RULE, false, GROUP>(view, stream);
}

template <bool ATOMIC, bool GROUP>
static stage_status launch_by_rule(const cuda_frame_view *view, cudaStream_t stream) {
  if (view->params.orientation_rule == RULE_VLFEAT) return launch_by_shape<ATOMIC, RULE_VLFEAT, GROUP>(view, stream);
  if (view->params.orientation_rule == RULE_OPENCV) return launch_by_shape<ATOMIC, RULE_OPENCV, GROUP>(view, stream);
  return launch_by_shape<ATOMIC, RULE_LOWE, GROUP>(view, stream);
}

/* Blocks for `tiles` tiles of each picture, as many as are resident at most. */
static dim3 tiled_blocks(const cuda_frame_view *view, const void *kernel, int threads, unsigned tiles) {
  const unsigned share = cuda_group_share(view, launch_resident_blocks(kernel, threads, 0));
  return dim3(tiles < share ? tiles : share, 1, cuda_group_count(view));
}

/* Histograms to features. */
template <bool GROUP> static stage_status launch_peaks(const cuda_frame_view *view, cudaStream_t stream) {
  const uint32_t room = view->keypoints.capacity;
  const dim3 peaks = tiled_blocks(view, (const void *)orient_peak_kernel<GROUP>, PEAK_THREADS,
                                  (room + PEAK_KEYPOINTS - 1u) / PEAK_KEYPOINTS),
             lists = tiled_blocks(view, (const void *)orient_emit_kernel<GROUP>, LIST_TILE,
                                  (room + LIST_TILE - 1u) / LIST_TILE);
  const stage_status st = launch(orient_peak_kernel<GROUP>, peaks, PEAK_THREADS, 0, stream, *view);
  return st == STAGE_OK ? launch(orient_emit_kernel<GROUP>, lists, LIST_TILE, 0, stream, *view) : st;
}

stage_status cuda_orient_launch(const cuda_frame_view *view, cuda_orient_variant variant, cuda_stream stream) {
  assert(view->octave_count >= 1 && view->keypoints.capacity > 0 && view->oriented.capacity > 0 && view->scales);
  const bool atomic = variant == CUDA_ORIENT_ATOMIC, group = view->group > 1;
  assert(atomic || !group);
  stage_status st = STAGE_OK;
  if (!view->params.upright && atomic)
    st = group ? launch_by_rule<true, true>(view, stream) : launch_by_rule<true, false>(view, stream);
  if (!view->params.upright && !atomic) st = launch_by_rule<false, false>(view, stream);
  if (st != STAGE_OK) return st;
  return group ? launch_peaks<true>(view, stream) : launch_peaks<false>(view, stream);
}
