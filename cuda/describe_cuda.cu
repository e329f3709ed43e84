/*
 * Descriptor kernels: a warp a feature, largest windows first.
 */
#include "cuda/describe_cuda.h"

#include "cuda/launch_shape.h"
#include "cuda/prim/block_hist.cuh"
#include "cuda/prim/shared_add.cuh"
#include "cuda/prim/warp_hist.cuh"
#include "cuda/window_tile.cuh"
#include "cuda/work_order.cuh"

enum {
  DESCRIBE_WARPS = 4, /* a block */
  DESCRIBE_TILE = 96, /* samples along a tile: a window of radius 47, sigma 4.4 */
  DESCRIBE_GROUP_BITS = 3,
  DESCRIBE_GROUP = 1 << DESCRIBE_GROUP_BITS /* lanes along a row */
};

/*
 * Where the bins of the padded histogram lie: direction by direction, a plane of 6 x 6 cells each; with 4 copies planes
 * are a multiple of 32 words apart. So the bank of a vote follows from its cell, not from its direction, and lanes far
 * apart in the patch seldom meet in one.
 */
enum { DESCRIBE_PLANE = 40, DESCRIBE_STORED = DESCRIBE_PADDED_BINS * DESCRIBE_PLANE };

/* One warp's shared memory. */
template <int COPIES> struct describe_shared {
  int32_t votes[DESCRIBE_STORED * COPIES]; /* (direction * plane + cell) * copies + copy */
  window_tile<DESCRIBE_TILE> tile;
};

/* A sample's eight votes, and the bin of the first plus DESCRIBE_BIAS (wrapped around), which floats' bits leave in. */
typedef struct described_sample {
  uint32_t index;
  int32_t v[8];
} described_sample;

#define TWO_TO_23      8388608.0f /* floats from here to 2^24 are the whole numbers */
#define TWO_TO_23_BITS 0x4b000000u
#define DESCRIBE_BIAS  (TWO_TO_23_BITS * (DESCRIBE_PLANE + DESCRIBE_PADDED_CELLS + 1u))

/*
 * Half the patch's side in cells, as far as it matters. describe_place lets in what lies strictly between 0 and 5 after
 * adding 2.5: from -2.5 + 2^-22 to 2.5 - 2^-21, for the float between this and 2.5 rounds to 5. Below -2.5 + 2^-21 a
 * sample votes into the padding and, with less than a quarter, into the patch, which rounds to nothing.
 */
#define DESCRIBE_REACH 2.49999976f

/* The same operations as describe_votes_of, its floors by additions to 2^23 rounded down, which are exact from 0 on. */
static __device__ __forceinline__ void describe_sample(const describe_window *w, float gx, float gy, float weight,
                                                       float row, float column, described_sample *out) {
  float magnitude, turn;
  hs_polar(gx, gy, &magnitude, &turn);
  float direction = w->turn - turn;
  direction = direction < 0.0f ? direction + 1.0f : direction;
  direction = direction * (float)DESCRIBE_BINS;
  const float r = __fadd_rd(row, TWO_TO_23), c = __fadd_rd(column, TWO_TO_23), d = __fadd_rd(direction, TWO_TO_23);
  const float fr = row - (r - TWO_TO_23), fc = column - (c - TWO_TO_23), fd = direction - (d - TWO_TO_23);
  const float v = magnitude * weight;
  const float v1 = v * fr, v0 = v - v1;
  const float v11 = v1 * fc, v10 = v1 - v11, v01 = v0 * fc, v00 = v0 - v01;
  const float v111 = v11 * fd, v101 = v10 * fd, v011 = v01 * fd, v001 = v00 * fd;
  out->index = __float_as_uint(d) * DESCRIBE_PLANE + (__float_as_uint(r) * DESCRIBE_PADDED_CELLS + __float_as_uint(c));
  out->v[0] = __float2int_rn(v00 - v001);
  out->v[1] = __float2int_rn(v001);
  out->v[2] = __float2int_rn(v01 - v011);
  out->v[3] = __float2int_rn(v011);
  out->v[4] = __float2int_rn(v10 - v101);
  out->v[5] = __float2int_rn(v101);
  out->v[6] = __float2int_rn(v11 - v111);
  out->v[7] = __float2int_rn(v111);
}

/* Bin of vote j from the first one's. */
static __device__ __forceinline__ int32_t vote_offset(int32_t j) {
  return (j & 1 ? DESCRIBE_PLANE : 0) + (j & 4 ? DESCRIBE_PADDED_CELLS : 0) + (j & 2 ? 1 : 0);
}

/* The copy of the histogram a lane adds to: lanes that share one are far apart in the patch, so they seldom meet in a
   bin. In a row those are half or a quarter of it apart; the row of the next pair of groups takes them shifted. */
template <int COPIES> static __device__ __forceinline__ int32_t vote_copy(void) {
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES), pair = lane / DESCRIBE_GROUP / 2;
  return (lane + pair * (COPIES / 2)) % COPIES;
}

/* Adds a sample's votes. COPIES 0: by the warp-level histogram, called by all lanes; else by atomics. */
template <int COPIES>
static __device__ __forceinline__ void describe_add(int32_t *votes, uint32_t lane_votes, bool inside,
                                                    const described_sample *sample) {
  if (COPIES > 0) {
    if (!inside) return;
    const uint32_t at = lane_votes + sample->index * (COPIES * 4u);
#pragma unroll
    for (int32_t j = 0; j < 8; j++) shared_add(at + (uint32_t)(vote_offset(j) * COPIES * 4), sample->v[j]);
  } else {
    const int32_t first = inside ? (int32_t)(sample->index - DESCRIBE_BIAS) : 0;
#pragma unroll
    for (int32_t j = 0; j < 8; j++) warp_hist_add(votes, first + vote_offset(j), inside ? sample->v[j] : 0);
  }
}

/*
 * The columns of each row that can lie inside the turned square |u|, |v| < 2.5 cells; a superset, widened by a
 * thousandth of a cell and a hundredth of a sample, each sample is tested again. Along a row u and v are linear in dx;
 * a coefficient of zero gives an infinite bound or, where even that is undefined, none.
 */
static __device__ __forceinline__ void describe_spans(window_tile<DESCRIBE_TILE> *tile, const describe_window *w,
                                                      int32_t first_row, int32_t rows, int32_t first_column,
                                                      int32_t last_column) {
  const float reach = 0.5f * (DESCRIBE_CELLS + 1) + 0.001f, shift = w->x - (float)w->cx, limit = 4096.0f;
  const float per_cosine = 1.0f / w->cosine, per_sine = 1.0f / w->sine;
  for (int32_t i = (int32_t)(threadIdx.x % WARP_LANES); i < rows; i += WARP_LANES) {
    const float dy = (float)(w->cy + first_row + i) - w->y;
    const float u = dy * w->sine, v = dy * w->cosine;
    const float u0 = (-reach - u) * per_cosine, u1 = (reach - u) * per_cosine;
    const float v0 = (v - reach) * per_sine, v1 = (v + reach) * per_sine;
    const float low = fmaxf(fmaxf(fminf(u0, u1), fminf(v0, v1)), -limit);
    const float high = fminf(fminf(fmaxf(u0, u1), fmaxf(v0, v1)), limit);
    const int32_t first = (int32_t)ceilf(fminf(low, limit) + shift - 0.01f),
                  last = (int32_t)floorf(fmaxf(high, -limit) + shift + 0.01f);
    tile->span[i] = make_short2((short)max(first, first_column), (short)min(last, last_column));
  }
}

/* One lane's run of samples along a row. */
typedef struct describe_run {
  const float *p; /* the first sample */
  int32_t stride; /* floats from row to row */
  int32_t length; /* of this lane's run; may be 0 */
  float x, dy;    /* of the first sample: column, and distance from the centre's row */
  float row_weight;
  const float *weight; /* of the first sample's column */
} describe_run;

/* Votes of a run; `steps`: the longest run among the lanes. The samples of the next step are read ahead. lane_votes:
   the shared address of the lane's copy of bin 0, less what DESCRIBE_BIAS adds. */
template <int COPIES>
static __device__ __forceinline__ void describe_row(int32_t *votes, uint32_t lane_votes, const describe_window *w,
                                                    const describe_run *run, int32_t steps) {
  const float *p = run->p, *above = pinned(p - run->stride), *below = pinned(p + run->stride);
  float x = run->x, left = 0.0f, centre = 0.0f, right = 0.0f, up = 0.0f, down = 0.0f;
  if (run->length > 0) left = p[-1], centre = p[0], right = p[1], up = above[0], down = below[0];
#pragma unroll 2
  for (int32_t step = 0; step < steps; step++) {
    float next_right = right, next_up = up, next_down = down;
    if (step + 1 < run->length) next_right = p[step + 2], next_up = above[step + 1], next_down = below[step + 1];
    const float dx = x - w->x;
    const float u = hs_fmaf(run->dy, w->sine, dx * w->cosine), v = hs_fmaf(run->dy, w->cosine, -(dx * w->sine));
    const bool inside = step < run->length && fabsf(u) < DESCRIBE_REACH && fabsf(v) < DESCRIBE_REACH;
    described_sample sample;
    if (inside)
      describe_sample(w, 0.5f * (right - left), 0.5f * (down - up), run->weight[step] * run->row_weight, v + 2.5f,
                      u + 2.5f, &sample);
    describe_add<COPIES>(votes, lane_votes, inside, &sample);
    left = centre, centre = right, right = next_right, up = next_up, down = next_down;
    x += 1.0f;
  }
}

/* Votes of one tile, its tables in place. The lanes of a group share a row in equal runs. */
template <int COPIES>
static __device__ __forceinline__ void describe_walk(int32_t *votes, const window_tile<DESCRIBE_TILE> *tile,
                                                     const plane_view *level, const describe_window *w,
                                                     int32_t first_row, int32_t rows, int32_t first_column) {
  const int32_t turns = window_tile_turns<DESCRIBE_GROUP>(rows), sub = (int32_t)(threadIdx.x % DESCRIBE_GROUP);
  const int32_t stride = (int32_t)level->stride, y = w->cy + first_row;
  const float *base = pinned(level->data + (size_t)y * level->stride + (size_t)w->cx);
  const uint32_t lane_votes =
      shared_address(votes + vote_copy<(COPIES > 1 ? COPIES : 1)>()) - DESCRIBE_BIAS * (COPIES * 4u);
  for (int32_t turn = 0; turn < turns; turn++) {
    const int32_t r = window_tile_row<DESCRIBE_GROUP>(turn, rows), row = max(r, 0);
    const short2 span = tile->span[row];
    const int32_t share = r < 0 ? 0 : max((span.y - span.x + DESCRIBE_GROUP) >> DESCRIBE_GROUP_BITS, 0);
    const int32_t at = span.x + sub * share;
    const describe_run run = {base + (row * stride + at),
                              stride,
                              min(share, span.y - at + 1),
                              (float)(w->cx + at),
                              (float)(y + row) - w->y,
                              tile->row_weight[row],
                              tile->column_weight + (at - first_column)};
    describe_row<COPIES>(votes, lane_votes, w, &run, warp_reduce_max(share));
  }
}

/* The padded histogram of one feature, complete for every lane at the end. */
template <int COPIES>
static __device__ __forceinline__ void describe_fill(int32_t *votes, window_tile<DESCRIBE_TILE> *tile,
                                                     const plane_view *level, const describe_window *w, float scale) {
  enum { STORED = COPIES > 1 ? COPIES : 1 };
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES);
  const window_place place = {w->x, w->y, w->cx, w->cy, w->radius, w->falloff, 1, scale};
  __syncwarp(); /* the feature before is done */
  for (int32_t i = lane; i < DESCRIBE_STORED * STORED / 4; i += WARP_LANES) ((int4 *)votes)[i] = make_int4(0, 0, 0, 0);
  const int32_t top = window_tile_first(w->radius, w->cy, 1), left = window_tile_first(w->radius, w->cx, 1);
  const int32_t bottom = window_tile_last(top, INT16_MAX, w->radius, w->cy, level->height, 1);
  const int32_t right = window_tile_last(left, INT16_MAX, w->radius, w->cx, level->width, 1);
  for (int32_t row = top; row <= bottom; row += DESCRIBE_TILE)
    for (int32_t column = left; column <= right; column += DESCRIBE_TILE) {
      const int32_t rows = min((int32_t)DESCRIBE_TILE, bottom - row + 1),
                    columns = min((int32_t)DESCRIBE_TILE, right - column + 1);
      __syncwarp(); /* the tile before is read */
      window_tile_weights(tile, &place, column, columns, row, rows);
      describe_spans(tile, w, row, rows, column, column + columns - 1);
      __syncwarp();
      describe_walk<COPIES>(votes, tile, level, w, row, rows, column);
    }
  __syncwarp();
}

/* Sum of the copies of one stored bin. */
template <int COPIES> static __device__ __forceinline__ int32_t describe_stored(const int32_t *votes, int32_t bin) {
  int32_t sum = 0;
#pragma unroll
  for (int32_t c = 0; c < COPIES; c++) sum += votes[bin * COPIES + c];
  return sum;
}

/* Bin i of the cropped histogram: as describe_crop, from this layout. */
template <int COPIES> static __device__ __forceinline__ int32_t describe_cropped(const int32_t *votes, int32_t i) {
  const int32_t d = i % DESCRIBE_BINS, cell = i / DESCRIBE_BINS;
  const int32_t at =
      d * DESCRIBE_PLANE + (cell / DESCRIBE_CELLS + 1) * DESCRIBE_PADDED_CELLS + cell % DESCRIBE_CELLS + 1;
  const int32_t sum = describe_stored<COPIES>(votes, at);
  return d < 2 ? sum + describe_stored<COPIES>(votes, at + DESCRIBE_BINS * DESCRIBE_PLANE) : sum;
}

/* Crops, clips and normalises; a lane writes entries 4 lane .. 4 lane + 3, the warp whole lines of 128 bytes. */
template <int COPIES>
static __device__ __forceinline__ void describe_write(const int32_t *votes, const sift_params *p, uint32_t n,
                                                      void *descriptors) {
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES);
  int32_t h[4];
  uint64_t squares = 0, clipped_squares = 0;
  uint32_t clipped_sum = 0; /* all votes together stay below 2^31 */
#pragma unroll
  for (int32_t j = 0; j < 4; j++) {
    const int32_t i = 4 * lane + j;
    h[j] = describe_cropped<COPIES>(votes, p->vlfeat_layout ? describe_vlfeat_index(i) : i);
    squares += (uint64_t)((int64_t)h[j] * h[j]);
  }
  const int32_t clip = describe_clip(warp_reduce_sum_u64(squares));
#pragma unroll
  for (int32_t j = 0; j < 4; j++) {
    h[j] = h[j] > clip ? clip : h[j];
    clipped_squares += (uint64_t)((int64_t)h[j] * h[j]);
    clipped_sum += (uint32_t)h[j];
  }
  const float divisor = describe_divisor(warp_reduce_sum_u64(clipped_squares), warp_reduce_sum(clipped_sum), p->root);
  float v[4];
  int32_t b[4];
#pragma unroll
  for (int32_t j = 0; j < 4; j++) {
    v[j] = describe_value(h[j], divisor, p->root);
    b[j] = describe_byte(v[j], p->descriptor_rule);
    if (p->descriptor_rule == RULE_OPENCV) v[j] = (float)b[j];
  }
  const size_t at = (size_t)n * WARP_LANES + (size_t)lane;
  if (p->descriptor_float)
    ((float4 *)descriptors)[at] = make_float4(v[0], v[1], v[2], v[3]);
  else
    ((uchar4 *)descriptors)[at] = make_uchar4((uint8_t)b[0], (uint8_t)b[1], (uint8_t)b[2], (uint8_t)b[3]);
}

/* One feature by one warp. */
template <int COPIES>
static __device__ __forceinline__ void describe_feature(const cuda_frame_view &v, int32_t *votes,
                                                        window_tile<DESCRIBE_TILE> *tile, uint32_t n,
                                                        void *descriptors) {
  const keypoint_list &k = v.keypoints;
  const uint32_t i = v.features.keypoint[n];
  const int32_t octave = k.octave[i];
  const octave_view &o = v.octaves[octave - v.first_octave];
  const plane_view level = {o.levels + (size_t)k.level[i] * o.level_floats, o.width, o.height, o.stride};
  const float unit = hs_power_of_two(-octave);
  const describe_window w = describe_window_of(k.x[i] * unit, k.y[i] * unit, k.sigma[i] * unit,
                                               v.features.orientation[n], v.params.descriptor_rule);
  describe_fill<COPIES>(votes, tile, &level, &w, v.scales->describe[w.radius]);
  describe_write<(COPIES > 1 ? COPIES : 1)>(votes, &v.params, n, descriptors);
}

/*
 * Does      descriptors, as describe_ref. COPIES: of the histogram for atomics, 0: multi-key reduction without atomics.
 * Launch    resident blocks of 4 warps, a warp a feature; warps draw features by ticket in the order of work.
 * Shared    1600 bytes a copy and 1152 of tables, a warp.
 * Reads     order, features, keypoints, Gaussian levels (each window 4 floats a sample, through L1).
 * Writes    descriptors: 128 or 512 bytes a feature by one store instruction of the warp.
 * Barriers  warp only: tables before use, votes before folding, folding before cropping.
 * Limits    windows of any radius up to WINDOW_RADIUS_MAX, in tiles; no features: returns at once.
 * Order     repeatable: votes are integers, each feature's output has its own place.
 * Cost      225 sigma^2 samples of about 110 operations and 8 votes a feature: bound by issue, then by shared atomics.
 */
template <int COPIES>
__global__ void __launch_bounds__(DESCRIBE_WARPS *WARP_LANES, 6)
    describe_warp_per_feature_kernel(const __grid_constant__ cuda_frame_view v, void *descriptors) {
  __shared__ __align__(16) describe_shared<(COPIES > 1 ? COPIES : 1)> s_warps[DESCRIBE_WARPS];
  describe_shared<(COPIES > 1 ? COPIES : 1)> *s = &s_warps[threadIdx.x / WARP_LANES];
  const uint32_t lane = threadIdx.x % WARP_LANES, warps = gridDim.x * DESCRIBE_WARPS;
  const uint32_t total = *v.features.count, count = min(total, v.features.capacity);
  const bool ordered = total == count; /* else places beyond the capacity are lost: the list is taken as it stands */
  uint32_t at = blockIdx.x * DESCRIBE_WARPS + threadIdx.x / WARP_LANES;
  while (at < count) {
    uint32_t next = 0;
    if (lane == 0) next = warps + atomicAdd(&v.scratch.tickets[1], 1u);
    describe_feature<COPIES>(v, s->votes, &s->tile, ordered ? v.scratch.order[at] : at, descriptors);
    at = __shfl_sync(WARP_ALL, next, 0);
  }
}

/*
 * Does      counts the features of each work bin.
 * Launch    blocks of 256 threads, a thread a feature, looping.
 * Shared    1 KiB. Barriers: of the block's histogram.
 * Reads     features, keypoints. Writes work_counts + WORK_BINS by atomics.
 * Limits    no features: adds nothing. Order: repeatable. Cost: 14 bytes a feature, bound by latency.
 */
__global__ void __launch_bounds__(WORK_BINS) work_count_kernel(const __grid_constant__ cuda_frame_view v) {
  __shared__ uint32_t s_bins[WORK_BINS];
  const uint32_t count = min(*v.features.count, v.features.capacity);
  block_hist_clear(s_bins, WORK_BINS);
  for (uint32_t n = blockIdx.x * WORK_BINS + threadIdx.x; n < count; n += gridDim.x * WORK_BINS)
    block_hist_add(s_bins, work_order_bin(v, v.features.keypoint[n]), 1u);
  block_hist_flush(s_bins, WORK_BINS, v.scratch.work_counts + WORK_BINS);
}

/*
 * Does      gives each feature its place in `order`.
 * Launch    blocks of 256 threads, a thread a feature, looping.
 * Shared    2.2 KiB. Barriers: of the scan and of the places.
 * Reads     features, keypoints, work_counts + WORK_BINS. Writes order; work_cursors + WORK_BINS by atomics.
 * Limits    no features: writes nothing. Order: varies within equal radii. Cost: 18 bytes a feature, bound by latency.
 */
__global__ void __launch_bounds__(WORK_BINS) work_place_kernel(const __grid_constant__ cuda_frame_view v) {
  __shared__ work_order_shared s_order;
  const uint32_t count = min(*v.features.count, v.features.capacity);
  work_order_bases(v.scratch.work_counts + WORK_BINS, &s_order);
  for (uint32_t first = blockIdx.x * WORK_BINS; first < count; first += gridDim.x * WORK_BINS) {
    const uint32_t n = first + threadIdx.x, bin = n < count ? work_order_bin(v, v.features.keypoint[n]) : 0u;
    work_order_put(v, &s_order, v.scratch.work_cursors + WORK_BINS, bin, n, n < count, v.features.capacity);
  }
}

stage_status cuda_work_order_launch(const cuda_frame_view *view, cuda_stream stream) {
  assert(view->features.capacity > 0);
  const unsigned tiles = (view->features.capacity + WORK_BINS - 1u) / WORK_BINS;
  const unsigned resident = launch_resident_blocks((const void *)work_place_kernel, WORK_BINS, 0);
  const unsigned blocks = tiles < resident ? tiles : resident;
  work_count_kernel<<<blocks, WORK_BINS, 0, stream>>>(*view);
  if (launch_status() != STAGE_OK) return STAGE_DEVICE;
  work_place_kernel<<<blocks, WORK_BINS, 0, stream>>>(*view);
  return launch_status();
}

template <int COPIES>
static stage_status launch_describe(const cuda_frame_view *view, void *descriptors, cudaStream_t stream) {
  const int threads = DESCRIBE_WARPS * WARP_LANES;
  const unsigned blocks = launch_resident_blocks((const void *)describe_warp_per_feature_kernel<COPIES>, threads, 0);
  describe_warp_per_feature_kernel<COPIES><<<blocks, threads, 0, stream>>>(*view, descriptors);
  return launch_status();
}

stage_status cuda_describe_launch(const cuda_frame_view *view, cuda_describe_variant variant, void *descriptors,
                                  cuda_stream stream) {
  assert(view->features.capacity > 0 && view->scales && (uintptr_t)descriptors % 128u == 0);
  if (variant == CUDA_DESCRIBE_ATOMIC4) return launch_describe<4>(view, descriptors, stream);
  if (variant == CUDA_DESCRIBE_ATOMIC2) return launch_describe<2>(view, descriptors, stream);
  return launch_describe<0>(view, descriptors, stream);
}
