/*
 * Votes of a feature by a warp: the layout of the bins in shared memory, the samples of a window, and their votes.
 */
#ifndef HARTSIFT_CUDA_KEYPOINTS_DESCRIBE_VOTES_CUH
#define HARTSIFT_CUDA_KEYPOINTS_DESCRIBE_VOTES_CUH

#include "cuda/keypoints/frame_view.h"
#include "cuda/keypoints/window_tile.cuh"
#include "cuda/prim/histograms.cuh"
#include "cuda/prim/shared_copy.cuh"
#include "stages/describe.h"

/* Samples along a side of a window segment: one segment covers a window of radius 39 (sigma 3.7). */
enum { DESCRIBE_TILE = 80 };

typedef window_tile<DESCRIBE_TILE> describe_tile;

/*
 * Layout of the bins: one plane for each direction (0 to 8), with rows of five words. Cell (r, c), numbered from 1,
 * is word r * PITCH + c. Votes outside the patch go to words that are never read. Votes above it go to row 0. Votes
 * left of it go to the first word of each row. Votes right of it go to the first word of the next row. Votes below
 * it go to row 5 or, if that does not fit, to row 0 of the next plane. With four copies, a plane of 32 words makes
 * the bank of a bin depend only on its cell and copy, and lanes that share a copy mostly vote for different cells.
 * With fewer copies, directions are in different banks. COPIES 0 is the warp-level histogram, which needs one copy.
 */
template <int COPIES> struct describe_layout {
  enum {
    PITCH = DESCRIBE_CELLS + 1,
    PLANE = COPIES == 4 ? 32 : 28,
    STORED = (DESCRIBE_BINS * PLANE + (DESCRIBE_CELLS + 2) * PITCH + 1 + 3) / 4 * 4,
    HELD = COPIES > 0 ? COPIES : 1
  };
};

/* One warp's shared memory. */
template <int COPIES> struct __align__(16) describe_shared {
  int32_t votes[describe_layout<COPIES>::STORED * describe_layout<COPIES>::HELD]; /* index: bin * copies + copy */
  describe_tile tile;
};

/* The eight votes of a sample. Also the bin of the first vote plus DESCRIBE_BIAS (wrapped around); this bias is
 * left over from the bits of floats. */
typedef struct described_sample {
  uint32_t index;
  int32_t v[8];
} described_sample;

#define ROUNDING_SHIFT 12582912.0f /* 2^23 + 2^22: added to floats below 2^22 it leaves integers in the low bits */
#define ROUNDED_BIAS   0x4b400000u /* bits of ROUNDING_SHIFT; a multiple of 8 */
#define DESCRIBE_BIAS  (ROUNDED_BIAS * (DESCRIBE_CELLS + 2u))

/* Returns hs_rounded_product plus ROUNDED_BIAS. */
static __device__ __forceinline__ int32_t biased_product(float a, float b) {
  return __float_as_int(hs_fmaf(a, b, ROUNDING_SHIFT));
}

/* Computes the same votes as describe_share. */
static __device__ __forceinline__ void describe_share_biased(float v, float fc, float fd, float fcd, int32_t *votes) {
  const int32_t all = __float_as_int(v + ROUNDING_SHIFT), column = biased_product(v, fc);
  const int32_t direction = biased_product(v, fd), both = biased_product(v, fcd);
  votes[3] = both - (int32_t)ROUNDED_BIAS;
  votes[2] = column - both;
  votes[1] = direction - both;
  votes[0] = all - column - votes[1];
}

/* Whether a lane votes in the lower row of cells first. With atomics, the lanes of every second run do:
 * neighbouring runs often vote for the same cells, and with alternating order the votes of one instruction are in
 * different banks. */
template <int COPIES> static __device__ __forceinline__ bool describe_turned(void) {
  return COPIES > 0 && (threadIdx.x & RUN_LENGTH) != 0;
}

/* Computes describe_votes_of by the same operations. Floors are additions rounded down, which are exact. turned:
 * the votes of the lower row come first. */
template <int COPIES>
static __device__ __forceinline__ void describe_sample(const describe_window *w, float gx, float gy, float weight,
                                                       float row, float column, bool turned, described_sample *out) {
  float magnitude, angle;
  hs_polar(gx, gy, (float)DESCRIBE_BINS, &magnitude, &angle);
  const float direction = w->direction - angle;
  const float r = __fadd_rd(row, ROUNDING_SHIFT), c = __fadd_rd(column, ROUNDING_SHIFT),
              d = __fadd_rd(direction, ROUNDING_SHIFT);
  const float fr = row - (r - ROUNDING_SHIFT), fc = column - (c - ROUNDING_SHIFT),
              fd = direction - (d - ROUNDING_SHIFT), fcd = fc * fd;
  const float v = magnitude * weight;
  const float v1 = v * fr, v0 = v - v1;
  /* Opaque, because the compiler could turn the product into shifts and a mask, which is one more instruction. */
  const uint32_t bin = (uint32_t)opaque_int((int32_t)(__float_as_uint(d) & (DESCRIBE_BINS - 1u)));
  out->index =
      bin * describe_layout<COPIES>::PLANE + (__float_as_uint(r) * describe_layout<COPIES>::PITCH + __float_as_uint(c));
  describe_share_biased(turned ? v1 : v0, fc, fd, fcd, out->v);
  describe_share_biased(turned ? v0 : v1, fc, fd, fcd, out->v + 4);
}

/* Returns the distance from the bin of the first vote to the bin of vote j. */
template <int COPIES> static __device__ __forceinline__ int32_t vote_offset(int32_t j) {
  return (j & 1 ? describe_layout<COPIES>::PLANE : 0) + (j & 4 ? describe_layout<COPIES>::PITCH : 0) + (j & 2 ? 1 : 0);
}

/* Adds a sample's votes. COPIES 0: by the warp-level histogram, which all lanes must call; otherwise by atomics. */
template <int COPIES>
static __device__ __forceinline__ void describe_add(int32_t *votes, uint32_t lane_votes, bool inside,
                                                    const described_sample *sample) {
  if (COPIES > 0) {
    enum { HELD = describe_layout<COPIES>::HELD, ROW = describe_layout<COPIES>::PITCH * HELD * 4 };
    if (!inside) return;
    const uint32_t first = lane_votes + sample->index * (HELD * 4u);
    const uint32_t second = first + (describe_turned<COPIES>() ? 0u - ROW : (uint32_t)ROW);
#pragma unroll
    for (int32_t j = 0; j < 8; j++)
      shared_hist_add<HELD>(j < 4 ? first : second, (uint32_t)vote_offset<COPIES>(j % 4), sample->v[j]);
  } else {
    const int32_t first = inside ? (int32_t)(sample->index - DESCRIBE_BIAS) : 0;
#pragma unroll
    for (int32_t j = 0; j < 8; j++) warp_hist_add(votes, first + vote_offset<COPIES>(j), inside ? sample->v[j] : 0);
  }
}

/* State of the traversal of a feature's window. SOURCE: where neighbours of samples are read, like describe_source. */
template <int COPIES, class SOURCE, class TILE> struct describe_walk {
  int32_t *votes;
  const TILE *tile;
  const describe_window *w;
};

template <int COPIES, class SOURCE, class TILE>
static __device__ __forceinline__ void walk_begin(const describe_walk<COPIES, SOURCE, TILE> &, const window_segment *) {
}

/*
 * Returns the columns of a row that vote, within a segment. The first bounds come from an approximate division and
 * are widened by a thousandth of a cell and a hundredth of a sample. A coefficient of zero gives an infinite bound;
 * if even that is undefined, no bound. Then each end moves inwards until its sample votes. All samples between vote
 * too, because the computed row and column are monotonic along a row of samples: multiply-adds and their rounding
 * are.
 */
template <int COPIES, class SOURCE, class TILE>
static __device__ __forceinline__ window_span walk_span(const describe_walk<COPIES, SOURCE, TILE> &t,
                                                        const window_segment *segment, int32_t row) {
  const describe_window *w = t.w;
  const float half_width = 0.5f * (DESCRIBE_CELLS + 1) + 0.001f, shift = w->x - (float)w->cx, limit = 4096.0f;
  const float per_cosine = __fdividef(1.0f, w->cosine), per_sine = __fdividef(1.0f, w->sine);
  const float dy = (float)(segment->y + row) - w->y;
  const float u = dy * w->sine, v = dy * w->cosine;
  const float u0 = (-half_width - u) * per_cosine, u1 = (half_width - u) * per_cosine;
  const float v0 = (v - half_width) * per_sine, v1 = (v + half_width) * per_sine;
  const float low = fmaxf(fmaxf(fminf(u0, u1), fminf(v0, v1)), -limit);
  const float high = fminf(fminf(fmaxf(u0, u1), fmaxf(v0, v1)), limit);
  const int32_t first_x = max(w->cx + (int32_t)ceilf(fminf(low, limit) + shift - 0.01f), segment->x);
  const int32_t last_x =
      min(w->cx + (int32_t)floorf(fmaxf(high, -limit) + shift + 0.01f), segment->x + segment->columns - 1);
  float x = (float)first_x, end = (float)last_x, ignored_row, ignored_column;
  while (x <= end && !describe_position(w, x - w->x, dy, &ignored_row, &ignored_column)) x += 1.0f;
  while (x <= end && !describe_position(w, end - w->x, dy, &ignored_row, &ignored_column)) end -= 1.0f;
  const window_span span = {(int32_t)x - segment->x, (int32_t)end - (int32_t)x + 1};
  return span;
}

/* Where a lane reads: the address of the segment's samples, minus a row, plus the position of the lane's sample in
 * a run; and the smallest run that has this sample. (Other sources also have the last three fields, for
 * describe_source_set and describe_prefetch.) */
typedef struct describe_source {
  const float *base, *above, *below;
  int32_t stride;
  uint32_t columns, rows; /* shared addresses of the tables of distances and weights */
  uint32_t least;
} describe_source;

/* Sets the source to the first sample of a segment. sub: position of the lane's sample in a run. */
static __device__ __forceinline__ void describe_source_set(describe_source *from, const window_segment *segment,
                                                           int32_t sub) {
  from->stride = opaque_int(segment->stride);
  from->base = opaque_pointer(segment->corner + sub - segment->stride);
  from->above = opaque_pointer(from->base - from->stride);
  from->below = opaque_pointer(from->base + from->stride);
}

/* Position in the segment of the sample whose neighbours the lane has in flight; none unless `inside`. */
typedef struct described_position {
  int32_t row, column; /* the row plus one */
  bool inside;
} described_position;

/* The neighbours of a lane's sample, loaded in one step and used in the next. */
typedef struct described_near {
  float left, right, up, down;
} described_near;

/*
 * Issues the loads of the neighbours of the lane's sample at `list`, one step before they are used (software
 * pipelining). They go into the registers of the step before ("+f"), so that step's gradient must be computed
 * first. The order matters, because a warp has only six scoreboards for loads in flight. If the loads of two steps
 * were in flight, the compiler could give them the same scoreboard, and waiting for the older loads would wait for
 * the newer ones too.
 */
static __device__ __forceinline__ described_position describe_prefetch(const describe_source *from,
                                                                       const uint16_t *list, described_near *near) {
  const uint32_t run = *list;
  described_position position;
  position.row = window_run_row_next(run);
  position.column = window_run_column(run);
  position.inside = run >= from->least;
  const int32_t at = position.row * from->stride + position.column;
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %4, 0;\n\t"
               "@p ld.global.nc.f32 %0, [%5 + -4];\n\t@p ld.global.nc.f32 %1, [%5 + 4];\n\t"
               "@p ld.global.nc.f32 %2, [%6];\n\t@p ld.global.nc.f32 %3, [%7];\n\t}"
               : "+f"(near->left), "+f"(near->right), "+f"(near->up), "+f"(near->down)
               : "r"((int32_t)position.inside), "l"(from->base + at), "l"(from->above + at), "l"(from->below + at));
  return position;
}

/* Computes the gradient of the sample at `position`, prefetches the sample at `list`, and votes meanwhile. */
template <int COPIES, class SOURCE>
static __device__ __forceinline__ described_position describe_step(int32_t *votes, uint32_t lane_votes,
                                                                   const SOURCE *from, const describe_window *w,
                                                                   const described_position *position,
                                                                   const uint16_t *list, described_near *near) {
  const float gx = near->right - near->left, gy = near->down - near->up;
  const described_position next = describe_prefetch(from, list, near);
  described_sample sample;
  if (position->inside) {
    const float2 column = shared_pair(from->columns + 8u * (uint32_t)position->column),
                 row = shared_pair(from->rows + 8u * (uint32_t)position->row);
    float patch_row, patch_column;
    describe_position(w, column.x, row.x, &patch_row, &patch_column);
    describe_sample<COPIES>(w, gx, gy, column.y * row.y, patch_row, patch_column, describe_turned<COPIES>(), &sample);
  }
  describe_add<COPIES>(votes, lane_votes, position->inside, &sample);
  return next;
}

/* Adds the votes of the first `listed` runs. The loop is unrolled by two, so that positions are not copied between
 * registers. */
template <int COPIES, class SOURCE, class TILE>
static __device__ __forceinline__ void walk_vote(const describe_walk<COPIES, SOURCE, TILE> &t,
                                                 const window_segment *segment, int32_t listed) {
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES), sub = lane % RUN_LENGTH;
  enum { HELD = describe_layout<COPIES>::HELD };
  /* The shared address of the lane's copy of bin 0 (or of the row below), minus the offset that DESCRIBE_BIAS adds. */
  const uint32_t lane_votes = shared_hist_copy<HELD>(t.votes, (uint32_t)lane) - DESCRIBE_BIAS * (HELD * 4u) +
                              (describe_turned<COPIES>() ? describe_layout<COPIES>::PITCH * HELD * 4u : 0u);
  SOURCE from;
  describe_source_set(&from, segment, sub);
  from.columns = shared_address(t.tile->column + sub);
  from.rows = shared_address(t.tile->row) - (uint32_t)sizeof(float2);
  from.least = window_run_least(sub);
  const uint16_t *list = t.tile->runs + lane / RUN_LENGTH, *stop = list + listed; /* equal steps for all lanes */
  described_near near = {0.0f, 0.0f, 0.0f, 0.0f};
  described_position even = describe_prefetch(&from, list, &near), odd;
#pragma unroll 1
  while (list < stop) {
    odd = describe_step<COPIES, SOURCE>(t.votes, lane_votes, &from, t.w, &even, list + RUN_GROUPS, &near);
    list += 2 * RUN_GROUPS;
    if (list - RUN_GROUPS >= stop) break;
    even = describe_step<COPIES, SOURCE>(t.votes, lane_votes, &from, t.w, &odd, list, &near);
  }
}

/* Computes this warp's part of the padded histogram of a feature that WARPS warps share. At the end the part is
 * complete for every lane. */
template <int COPIES, int WARPS, class SOURCE, class TILE>
static __device__ __forceinline__ void describe_fill(int32_t *votes, TILE *tile, const plane_view *level,
                                                     const describe_window *w, float scale) {
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES);
  /* Gradients are taken at twice their length and weights at half: the polar form scales exactly, except below 1e-30,
   * where a vote rounds to 0. */
  const window_geometry geometry = {w->x, w->y, w->cx, w->cy, w->radius, w->falloff, 1, 0.5f * scale};
  __syncwarp(); /* all lanes have finished the previous feature */
  shared_hist_clear<describe_layout<COPIES>::STORED * describe_layout<COPIES>::HELD, WARP_LANES>(votes, (uint32_t)lane);
  const describe_walk<COPIES, SOURCE, TILE> walk = {votes, tile, w};
  window_walk<WARPS>(walk, tile, level, &geometry);
}

/* Returns bin i of the histogram without its padding: describe_crop for this layout, but negative values are not
 * yet set to zero. */
template <int COPIES> static __device__ __forceinline__ int32_t describe_inner(const int32_t *votes, int32_t i) {
  const int32_t d = i % DESCRIBE_BINS, cell = i / DESCRIBE_BINS;
  typedef describe_layout<COPIES> layout;
  const int32_t at = d * layout::PLANE + (cell / DESCRIBE_CELLS + 1) * layout::PITCH + cell % DESCRIBE_CELLS + 1;
  uint32_t sum = shared_hist_fold<layout::HELD>(votes, (uint32_t)at);
  if (d < 1) sum += shared_hist_fold<layout::HELD>(votes, (uint32_t)(at + DESCRIBE_BINS * layout::PLANE));
  return (int32_t)sum;
}

/* The bins of a feature, four in each lane of its warp: cropping, clipping, pooling and writing. */

/* A lane's entries of the histogram: 4 lane .. 4 lane + 3, in the order of the output. */
typedef struct lane_bins {
  int32_t h[4];
} lane_bins;

/* Takes the lane's bins from the votes of one warp. Negative values are not yet set to zero. */
template <int COPIES>
static __device__ __forceinline__ lane_bins describe_inner_lane(const int32_t *votes, bool vlfeat_layout) {
  lane_bins bins;
#pragma unroll
  for (int32_t j = 0; j < 4; j++) {
    const int32_t i = 4 * (int32_t)(threadIdx.x % WARP_LANES) + j;
    bins.h[j] = describe_inner<COPIES>(votes, vlfeat_layout ? describe_vlfeat_index(i) : i);
  }
  return bins;
}

static __device__ __forceinline__ void describe_cut_lane(lane_bins *bins) {
#pragma unroll
  for (int32_t j = 0; j < 4; j++) bins->h[j] = max(bins->h[j], 0);
}

/* Clips the bins. Returns the factor that normalises the bins of all lanes to unit norm. */
static __device__ __forceinline__ float describe_clip_lane(lane_bins *bins, bool root) {
  uint64_t squares = 0, clipped_squares = 0;
  uint32_t clipped_sum = 0; /* the sum of all votes stays below 2^31 */
#pragma unroll
  for (int32_t j = 0; j < 4; j++) squares += (uint64_t)((int64_t)bins->h[j] * bins->h[j]);
  const int32_t clip = describe_clip(warp_reduce_sum_u64(squares));
#pragma unroll
  for (int32_t j = 0; j < 4; j++) {
    const int32_t h = min(bins->h[j], clip);
    clipped_squares += (uint64_t)((int64_t)h * h);
    clipped_sum += (uint32_t)h;
    bins->h[j] = h;
  }
  return describe_factor(warp_reduce_sum_u64(clipped_squares), warp_reduce_sum(clipped_sum), root);
}

/* Adds the histogram of one size to the pooled one. */
static __device__ __forceinline__ void describe_pool_lane(lane_bins *pooled, lane_bins one) {
  describe_cut_lane(&one);
  const float factor = describe_clip_lane(&one, false);
#pragma unroll
  for (int32_t j = 0; j < 4; j++) pooled->h[j] += domain_share(one.h[j], factor);
}

/* Clips, normalises and writes the bins. The warp writes complete lines of 128 bytes. */
static __device__ __forceinline__ void describe_write(lane_bins bins, const sift_params *p, size_t n,
                                                      const cuda_outputs *outputs) {
  const float factor = describe_clip_lane(&bins, p->root);
  float v[4];
  int32_t b[4];
#pragma unroll
  for (int32_t j = 0; j < 4; j++) {
    v[j] = describe_value(bins.h[j], factor, p->root);
    b[j] = describe_byte(v[j], p->descriptor_rule);
    if (p->descriptor_rule == RULE_OPENCV) v[j] = (float)b[j];
  }
  const size_t at = n * WARP_LANES + (size_t)(threadIdx.x % WARP_LANES);
  void *descriptors = outputs->descriptors; /* read late, because registers are scarce earlier */
  if (p->descriptor_float)
    ((float4 *)descriptors)[at] = make_float4(v[0], v[1], v[2], v[3]);
  else
    ((uchar4 *)descriptors)[at] = make_uchar4((uint8_t)b[0], (uint8_t)b[1], (uint8_t)b[2], (uint8_t)b[3]);
}

#endif
