/* Orientation histograms, one warp per keypoint. */
#include "cuda/keypoints/keypoints_kernels.h"

#include "cuda/keypoints/window_tile.cuh"
#include "cuda/prim/histograms.cuh"
#include "cuda/runtime/launch.h"

enum {
  ORIENT_BLOCKS = 6,                     /* blocks per multiprocessor */
  ORIENT_TILE = 36,                      /* samples along a side of a window segment: one segment covers a window of
                                          * radius 17 (sigma 3.8) */
  ORIENT_PITCH = ORIENT_TILE + 2,        /* samples of a segment in shared memory, with one more on each side */
  ORIENT_COPIES = 8,                     /* copies of the histogram, for the atomic variant */
  ORIENT_BIN_MIN = -ORIENT_BINS / 2 - 1, /* bins -19..18 are stored */
  ORIENT_STORED = ORIENT_BINS + 4        /* the bins, rounded up to a multiple of 4 */
};

static_assert((int)AFFINE_ORIENT_SIDE <= (int)ORIENT_PITCH, "a patch lies where a segment's samples do");

/* Shared memory of one warp. Votes below bin 0 have separate bins and are folded at the end, so no vote has to
 * wrap. */
typedef struct __align__(16) orient_shared {
  int32_t votes[ORIENT_STORED * ORIENT_COPIES]; /* index: (bin - ORIENT_BIN_MIN) * copies + copy */
  window_tile<ORIENT_TILE> tile;
  float samples[ORIENT_PITCH * ORIENT_PITCH]; /* samples of the level; the first is above and left of the segment's
                                               * first */
}
orient_shared;

/* One sample's votes: v0 into `bin`, v1 into the next. bin: -19..18 plus ORIENT_BIAS (wrapped around), which is
 * left over from a float's bits. */
typedef struct oriented_sample {
  uint32_t bin;
  int32_t v0, v1;
} oriented_sample;

#define ORIENT_SHIFT 12582912.0f /* 2^23 + 2^22: added to floats below 2^22 it leaves integers in the low bits */
#define ORIENT_BIAS  0x4b400000u

/* Computes orient_vote_of by the same operations, but does not wrap, and rounds an addition down to get the floor. */
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

/* Adds one sample's votes. lane_votes: shared address of the lane's copy of bin 0, minus the offset that
 * ORIENT_BIAS adds. Without atomics, all lanes must call. */
template <bool ATOMIC>
static __device__ __forceinline__ void orient_add(int32_t *votes, uint32_t lane_votes, bool inside,
                                                  const oriented_sample *sample) {
  if (ATOMIC) {
    if (!inside) return;
    shared_hist_add<ORIENT_COPIES>(lane_votes, sample->bin, sample->v0);
    shared_hist_add<ORIENT_COPIES>(lane_votes, sample->bin + 1u, sample->v1);
  } else {
    const int32_t bin = inside ? (int32_t)(sample->bin - ORIENT_BIAS) : 0;
    warp_hist_add(votes, bin, inside ? sample->v0 : 0);
    warp_hist_add(votes, bin + 1, inside ? sample->v1 : 0);
  }
}

/* State of the traversal of a keypoint's window. PATCH: the level is a patch, already in s->samples. */
template <bool ATOMIC, author_rule RULE, bool PATCH> struct orient_walk {
  orient_shared *s;
  const plane_view *level;
  const window_geometry *w;
  float limit;
};

/* Whether a segment holds samples with one-sided differences. Only VLFeat's windows reach the level's edge. */
template <bool ATOMIC, author_rule RULE, bool PATCH>
static __device__ __forceinline__ bool walk_at_edge(const orient_walk<ATOMIC, RULE, PATCH> &t,
                                                    const window_segment *segment) {
  if (RULE != RULE_VLFEAT || PATCH) return false;
  return segment->x == 0 || segment->y == 0 || segment->x + segment->columns == t.level->width ||
         segment->y + segment->rows == t.level->height;
}

/* Adds the votes of the first `listed` runs. EDGE: samples are read from the level, otherwise from s->samples. */
template <bool EDGE, bool ATOMIC, author_rule RULE, bool PATCH>
static __device__ __forceinline__ void vote_of_runs(const orient_walk<ATOMIC, RULE, PATCH> &t,
                                                    const window_segment *segment, int32_t listed) {
  orient_shared *s = t.s;
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES), sub = lane % RUN_LENGTH, group = lane / RUN_LENGTH;
  const uint32_t lane_votes =
      shared_hist_copy<ORIENT_COPIES>(s->votes - ORIENT_BIN_MIN * ORIENT_COPIES, (uint32_t)lane) -
      ORIENT_BIAS * (ORIENT_COPIES * 4u);
  const float2 *columns = s->tile.column + sub;
  const float *samples = s->samples + ORIENT_PITCH + 1 + sub;
  const uint16_t *runs = s->tile.runs + group;
  const uint32_t least = window_run_least(sub);
  for (int32_t first = 0; first < listed; first += RUN_GROUPS) {
    const uint32_t run = runs[first];
    const bool inside = run >= least;
    oriented_sample sample;
    if (inside) {
      const int32_t x = window_run_column(run), y = window_run_row_next(run) - 1;
      float gx, gy;
      if (EDGE) {
        gradient_at_edge(t.level, segment->x + sub + x, segment->y + y, &gx, &gy);
        gx += gx, gy += gy;
      } else {
        const float *p = samples + y * ORIENT_PITCH + x;
        gx = p[1] - p[-1], gy = p[ORIENT_PITCH] - p[-ORIENT_PITCH];
      }
      sample = orient_sample<RULE>(gx, gy, columns[x].y * s->tile.row[y].y);
    }
    orient_add<ATOMIC>(s->votes - ORIENT_BIN_MIN, lane_votes, inside, &sample);
  }
}

template <bool ATOMIC, author_rule RULE, bool PATCH>
static __device__ __forceinline__ void walk_vote(const orient_walk<ATOMIC, RULE, PATCH> &t,
                                                 const window_segment *segment, int32_t listed) {
  if (walk_at_edge(t, segment))
    vote_of_runs<true>(t, segment, listed);
  else
    vote_of_runs<false>(t, segment, listed);
}

/* Returns the columns of a row that vote, within a segment. The first bounds come from an approximate root and are
 * a hundredth of a sample too wide; then each end moves inwards until its sample votes. All samples between vote
 * too, because squares, sums and rounding are monotonic. */
template <bool ATOMIC, author_rule RULE, bool PATCH>
static __device__ __forceinline__ window_span walk_span(const orient_walk<ATOMIC, RULE, PATCH> &t,
                                                        const window_segment *segment, int32_t row) {
  const window_geometry *w = t.w;
  const float limit = t.limit;
  const float dy = (float)(segment->y + row) - w->y, rest = limit - dy * dy, shift = w->x - (float)w->cx;
  window_span span = {0, 0};
  if (!(rest > 0.0f)) return span;
  const float half_width = fminf(rest * rsqrtf(rest), 4096.0f) + 0.01f;
  float x = (float)max(w->cx + (int32_t)ceilf(shift - half_width), segment->x);
  float end = (float)min(w->cx + (int32_t)floorf(shift + half_width), segment->x + segment->columns - 1);
  while (x <= end && !((x - w->x) * (x - w->x) + dy * dy < limit)) x += 1.0f;
  while (x <= end && !((end - w->x) * (end - w->x) + dy * dy < limit)) end -= 1.0f;
  span.first = (int32_t)x - segment->x;
  span.length = (int32_t)end - (int32_t)x + 1;
  return span;
}

/* Copies a segment and one sample on each side to shared memory, so that all loads of a window are in flight at
 * once. At the level's edge, where outer neighbours are missing, samples are read from the level instead. */
template <bool ATOMIC, author_rule RULE, bool PATCH>
static __device__ __forceinline__ void walk_begin(const orient_walk<ATOMIC, RULE, PATCH> &t,
                                                  const window_segment *segment) {
  if (PATCH || walk_at_edge(t, segment)) return;
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES), width = segment->columns + 2;
  const float *from = segment->corner - segment->stride - 1 + lane;
  float *to = t.s->samples + lane;
#pragma unroll 4
  for (int32_t row = 0; row < segment->rows + 2; row++, from += segment->stride, to += ORIENT_PITCH) {
    if (lane < width) copy_4_async(to, from);
    if (lane + WARP_LANES < width) copy_4_async(to + WARP_LANES, from + WARP_LANES);
  }
  copies_commit();
}

/* Returns stored bin b, 0..37, which is bin b + ORIENT_BIN_MIN. */
template <bool ATOMIC> static __device__ __forceinline__ int32_t orient_stored(const orient_shared *s, int32_t b) {
  return (int32_t)shared_hist_fold<(ATOMIC ? ORIENT_COPIES : 1)>(s->votes, (uint32_t)b);
}

/* Computes the keypoint's histogram, and writes it to `histogram` in global memory. */
template <bool ATOMIC, author_rule RULE, bool PATCH>
static __device__ __forceinline__ void orient_fill(orient_shared *s, const plane_view *level, const window_geometry *w,
                                                   float limit, int32_t *histogram) {
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES);
  __syncwarp(); /* all lanes have finished the previous keypoint */
  shared_hist_clear<ORIENT_STORED *(ATOMIC ? ORIENT_COPIES : 1), WARP_LANES>(s->votes, (uint32_t)lane);
  const orient_walk<ATOMIC, RULE, PATCH> walk = {s, level, w, limit};
  window_walk<1>(walk, &s->tile, level, w);
  for (int32_t b = lane; b < ORIENT_BINS; b += WARP_LANES) {
    /* Bins are stored as b and as b - 36; bins 17 and 18 are stored as both. */
    const int32_t above = b - ORIENT_BIN_MIN, below = above - ORIENT_BINS;
    int32_t sum = orient_stored<ATOMIC>(s, below >= 0 ? below : above);
    if (below >= 0 && above < ORIENT_BINS + 2) sum += orient_stored<ATOMIC>(s, above);
    histogram[b] = sum;
  }
}

/* Samples the patch of keypoint n (already drawn as `item`) into s->samples, as a level with the keypoint at its
 * centre. */
static __device__ __forceinline__ plane_view orient_patch(const cuda_frame_view &v, orient_shared *s, uint32_t n,
                                                          const plane_view *level, orient_item *item) {
  const float unit = hs_power_of_two(-item->octave), shift = v.params.grid_shift, middle = AFFINE_ORIENT_SIDE / 2;
  const affine_shape shape = v.shapes[n];
  const patch_map map =
      affine_map_of(sample_of_position(item->x, item->octave, shift), sample_of_position(item->y, item->octave, shift),
                    item->sigma * unit, &shape, AFFINE_DISTANCE);
  __syncwarp(); /* all lanes have finished the previous keypoint */
  affine_patch_fill<AFFINE_ORIENT_SIDE, ORIENT_PITCH>(s->samples, level, &map);
  *item = orient_item{middle, middle, 1.0f / AFFINE_DISTANCE, AFFINE_ORIENT_SIDE / 2, AFFINE_ORIENT_SIDE / 2, 0, 0};
  return plane_view{s->samples, AFFINE_ORIENT_SIDE, AFFINE_ORIENT_SIDE, ORIENT_PITCH};
}

/*
 * Does      the orientation histogram of each keypoint, the first part of orient_ref. ATOMIC: votes by shared
 *           atomics on ORIENT_COPIES interleaved copies, otherwise by the warp-level histogram. RULE: the author's
 *           rule of votes. PATCH: on the patches of shapes, as affine_orient_run.
 * Launch    resident blocks of 4 warps, one warp per keypoint; warps draw keypoints by ticket.
 * Shared    8240 bytes per warp.
 * Reads     keypoints, Gaussian levels (each window once, copied to shared memory). Writes histograms, 144 bytes
 *           per keypoint.
 * Barriers  warp only: tables, list and samples before and after use; votes before folding.
 * Limits    windows of any radius up to WINDOW_RADIUS_MAX, in segments; no keypoints: returns at once.
 * Order     repeatable: votes are integers.
 * Cost      about 64 sigma^2 samples of about 80 operations and 2 votes per keypoint: bound by issue.
 */
template <bool ATOMIC, author_rule RULE, bool PATCH, bool GROUP>
static __device__ __forceinline__ void orient_keypoints(const cuda_frame_view &one) {
  const cuda_frame_view &v = CUDA_VIEW_OF_BLOCK(GROUP, one);
  __shared__ __align__(16) orient_shared s_warps[ORIENT_WARPS];
  const uint32_t lane = threadIdx.x % WARP_LANES, warps = gridDim.x * ORIENT_WARPS;
  const uint32_t count = min(*v.keypoints.count, v.keypoints.capacity);
  uint32_t n = blockIdx.x * ORIENT_WARPS + threadIdx.x / WARP_LANES, following = n + warps;
  orient_item item = orient_item_at(&v.keypoints, n, count);
  while (n < count) {
    /* Tickets are drawn two keypoints ahead, and inputs are read one keypoint ahead, because both have long
     * latency. */
    uint32_t ticket = 0;
    if (lane == 0) ticket = 2 * warps + atomicAdd(&v.scratch.tickets[TICKET_ORIENT], 1u);
    const orient_item next = orient_item_at(&v.keypoints, following, count);
    orient_shared *s = &s_warps[threadIdx.x / WARP_LANES];
    if (PATCH) item.level = affine_finer_level(item.level);
    plane_view level = orient_level_of(v, item);
    if (PATCH) level = orient_patch(v, s, n, &level, &item);
    const orient_window w = orient_window_at(v, item, PATCH ? 0.0f : v.params.grid_shift);
    /* Gradients are taken at twice their length and weights at half: the polar form scales exactly, except below 1e-30,
     * where a vote rounds to 0. */
    const float scale = v.scales->orient[w.radius] * 0.5f;
    const window_geometry geometry = {w.x, w.y, w.cx, w.cy, w.radius, w.falloff, w.margin, scale};
    orient_fill<ATOMIC, RULE, PATCH>(s, &level, &geometry, w.limit, v.scratch.histograms + (size_t)n * ORIENT_BINS);
    n = following;
    item = next;
    following = __shfl_sync(WARP_ALL, ticket, 0);
  }
}

/* Orientation histograms without load balancing, to compare granularities: a thread, a warp or a block per keypoint.
 * Every sample of the window's square is tested, row by row. */

enum {
  PLAIN_THREADS = ORIENT_PLAIN_THREADS,
  BLOCK_THREADS = ORIENT_BLOCK_THREADS,
  BLOCK_STORED = (ORIENT_BINS + 3) / 4 * 4 /* bins, as whole vectors */
};

/* Computes one sample's votes by the rules of orient_ref. False: it is outside the window. */
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
 * Launch    resident blocks of 64 threads, one thread per keypoint, looping.
 * Shared    9 KiB: one histogram per thread, in a separate bank.
 * Reads     keypoints, Gaussian levels. Writes histograms, 144 bytes per keypoint.
 * Barriers  none: a thread reads only what it wrote.
 * Limits    windows of any radius up to WINDOW_RADIUS_MAX; no keypoints: returns at once. Order: repeatable.
 * Cost      81 sigma^2 samples per keypoint; a warp takes as long as its largest window, and its lanes read far
 *           apart.
 */
extern "C" __global__ void __launch_bounds__(PLAIN_THREADS)
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

/* Waits for the SHARE threads of a keypoint: a warp, or the block. */
template <int SHARE> static __device__ __forceinline__ void share_barrier() {
  if (SHARE == WARP_LANES)
    __syncwarp();
  else
    __syncthreads();
}

/*
 * Does      the same as the kernel before.
 * Launch    resident blocks of 128 threads, looping; SHARE threads, a warp or the block, per keypoint, each for every
 *           SHARE-th sample of the square.
 * Shared    144 bytes a keypoint: one histogram, by atomics.
 * Reads     keypoints, Gaussian levels. Writes histograms, 144 bytes per keypoint.
 * Barriers  of the warp or block, before and after the votes, and before the histogram is cleared again.
 * Limits    windows of any radius up to WINDOW_RADIUS_MAX; no keypoints: returns at once. Order: repeatable, integers.
 * Cost      81 sigma^2 samples per keypoint with two votes each, and three barriers.
 */
template <int SHARE> static __device__ __forceinline__ void orient_squares(const cuda_frame_view &v) {
  constexpr uint32_t KEYPOINTS = BLOCK_THREADS / SHARE;
  __shared__ __align__(16) uint32_t s_all[KEYPOINTS][BLOCK_STORED];
  const uint32_t t = threadIdx.x % SHARE, own = threadIdx.x / SHARE;
  uint32_t *s_votes = s_all[own];
  const uint32_t count = min(*v.keypoints.count, v.keypoints.capacity), votes = shared_hist_copy<1>(s_votes, 0);
  for (uint32_t n = blockIdx.x * KEYPOINTS + own; n < count; n += gridDim.x * KEYPOINTS) {
    const orient_item item = orient_item_at(&v.keypoints, n, count);
    const plane_view level = orient_level_of(v, item);
    const orient_window w = orient_window_at(v, item, v.params.grid_shift);
    const plain_square square = plain_square_of(&level, &w);
    const int32_t width = square.right - square.left + 1, height = square.bottom - square.top + 1;
    const float scale = v.scales->orient[w.radius];
    shared_hist_clear<BLOCK_STORED, SHARE>(s_votes, t);
    share_barrier<SHARE>();
    for (int32_t i = (int32_t)t; width > 0 && i < width * height; i += SHARE) {
      orient_vote vote;
      const int32_t x = square.left + i % width, y = square.top + i / width;
      if (!plain_vote(&level, &w, v.params.orientation_rule, scale, x, y, &vote)) continue;
      shared_hist_add<1>(votes, (uint32_t)vote.bin0, vote.v0);
      shared_hist_add<1>(votes, (uint32_t)vote.bin1, vote.v1);
    }
    share_barrier<SHARE>();
    for (uint32_t b = t; b < ORIENT_BINS; b += SHARE)
      v.scratch.histograms[(size_t)n * ORIENT_BINS + b] = (int32_t)s_votes[b];
    share_barrier<SHARE>(); /* the histogram has been read */
  }
}

/* Does      as orient_squares, a warp per keypoint. */
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    orient_warp_per_keypoint_kernel(const __grid_constant__ cuda_frame_view v) {
  orient_squares<WARP_LANES>(v);
}

/* Does      as orient_squares, a block per keypoint. */
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    orient_block_per_keypoint_kernel(const __grid_constant__ cuda_frame_view v) {
  orient_squares<BLOCK_THREADS>(v);
}

#define ORIENT_KERNEL(name, ATOMIC, RULE, PATCH, GROUP)                                                                \
  extern "C" __global__ void __launch_bounds__(ORIENT_WARPS *WARP_LANES, ORIENT_BLOCKS)                                \
      name(const __grid_constant__ cuda_frame_view view) {                                                             \
    orient_keypoints<ATOMIC, RULE, PATCH, GROUP>(view);                                                                \
  }
ORIENT_KERNEL(orient_atomic_lowe_kernel, true, RULE_LOWE, false, false)
ORIENT_KERNEL(orient_atomic_lowe_group_kernel, true, RULE_LOWE, false, true)
ORIENT_KERNEL(orient_atomic_lowe_patch_kernel, true, RULE_LOWE, true, false)
ORIENT_KERNEL(orient_atomic_lowe_patch_group_kernel, true, RULE_LOWE, true, true)
ORIENT_KERNEL(orient_atomic_opencv_kernel, true, RULE_OPENCV, false, false)
ORIENT_KERNEL(orient_atomic_opencv_group_kernel, true, RULE_OPENCV, false, true)
ORIENT_KERNEL(orient_atomic_opencv_patch_kernel, true, RULE_OPENCV, true, false)
ORIENT_KERNEL(orient_atomic_opencv_patch_group_kernel, true, RULE_OPENCV, true, true)
ORIENT_KERNEL(orient_atomic_vlfeat_kernel, true, RULE_VLFEAT, false, false)
ORIENT_KERNEL(orient_atomic_vlfeat_group_kernel, true, RULE_VLFEAT, false, true)
ORIENT_KERNEL(orient_atomic_vlfeat_patch_kernel, true, RULE_VLFEAT, true, false)
ORIENT_KERNEL(orient_atomic_vlfeat_patch_group_kernel, true, RULE_VLFEAT, true, true)
ORIENT_KERNEL(orient_warp_histogram_lowe_kernel, false, RULE_LOWE, false, false)
ORIENT_KERNEL(orient_warp_histogram_lowe_patch_kernel, false, RULE_LOWE, true, false)
ORIENT_KERNEL(orient_warp_histogram_opencv_kernel, false, RULE_OPENCV, false, false)
ORIENT_KERNEL(orient_warp_histogram_opencv_patch_kernel, false, RULE_OPENCV, true, false)
ORIENT_KERNEL(orient_warp_histogram_vlfeat_kernel, false, RULE_VLFEAT, false, false)
ORIENT_KERNEL(orient_warp_histogram_vlfeat_patch_kernel, false, RULE_VLFEAT, true, false)

ORIENT_KERNELS(LAUNCH_CHECK)
