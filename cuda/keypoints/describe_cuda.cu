/*
 * Descriptor kernels: a warp a feature, or two where features are few, largest windows first.
 */
#include "cuda/keypoints/describe_cuda.h"

#include "cuda/device/launch.cuh"
#include "cuda/keypoints/describe_team.cuh"
#include "cuda/keypoints/window_tile.cuh"
#include "cuda/keypoints/work_order.cuh"
#include "cuda/prim/block_hist.cuh"
#include "cuda/prim/opaque.cuh"
#include "cuda/prim/shared_memory.cuh"
#include "cuda/prim/warp_hist.cuh"

enum {
  DESCRIBE_WARPS = 4, /* a block */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  DESCRIBE_BLOCKS = 2, /* a multiprocessor: what shared memory holds */
#else
  DESCRIBE_BLOCKS = 6,
#endif
  DESCRIBE_TILE = 80 /* samples along a segment of the window: all of one of radius 39, sigma 3.7 */
};

typedef window_tile<DESCRIBE_TILE> describe_tile;

/*
 * Where the bins lie: direction by direction (0 to 8), a plane of 5 rows of 5 cells each and three more words. Padded
 * cell (r, c) of direction d is at d * plane + r * pitch + c. The first row and the first cell of each row take what
 * votes above and left of the patch; what votes right of it goes to the first cell of the next row, what votes below it
 * to the three words and the first row of the next plane. None of these is read. With the three words, cells next to
 * each other in any direction lie in different banks.
 */
enum {
  DESCRIBE_PITCH = DESCRIBE_CELLS + 1,
  DESCRIBE_PLANE = (DESCRIBE_CELLS + 1) * DESCRIBE_PITCH + 3,
  DESCRIBE_STORED = ((DESCRIBE_BINS + 1) * DESCRIBE_PLANE + 2 * DESCRIBE_PITCH + 1 + 3) / 4 * 4
};

/* One warp's shared memory. */
template <int COPIES> struct __align__(16) describe_shared {
  int32_t votes[DESCRIBE_STORED * COPIES]; /* (direction * plane + cell) * copies + copy */
  describe_tile tile;
};

/* A sample's eight votes, and the bin of the first plus DESCRIBE_BIAS (wrapped around), which floats' bits leave in. */
typedef struct described_sample {
  uint32_t index;
  int32_t v[8];
} described_sample;

#define ROUNDING_SHIFT 12582912.0f /* 2^23 + 2^22: added to floats below 2^22 leaves whole numbers in the low bits */
#define ROUNDED_BIAS   0x4b400000u /* and these bits, a multiple of 8 */
#define DESCRIBE_BIAS  (ROUNDED_BIAS * (DESCRIBE_PITCH + 1u))

/* As hs_rounded_product, ROUNDED_BIAS still added. */
static __device__ __forceinline__ int32_t biased_product(float a, float b) {
  return __float_as_int(hs_fmaf(a, b, ROUNDING_SHIFT));
}

/* As describe_share. */
static __device__ __forceinline__ void describe_share_biased(float v, float fc, float fd, float fcd, int32_t *votes) {
  const int32_t all = __float_as_int(v + ROUNDING_SHIFT), column = biased_product(v, fc);
  const int32_t direction = biased_product(v, fd), both = biased_product(v, fcd);
  votes[3] = both - (int32_t)ROUNDED_BIAS;
  votes[2] = column - both;
  votes[1] = direction - both;
  votes[0] = all - column - votes[1];
}

/* The same operations as describe_votes_of, its floors by additions rounded down, which are exact. */
static __device__ __forceinline__ void describe_sample(const describe_window *w, float gx, float gy, float weight,
                                                       float row, float column, described_sample *out) {
  float magnitude, angle;
  hs_polar(gx, gy, (float)DESCRIBE_BINS, &magnitude, &angle);
  const float direction = w->direction - angle;
  const float r = __fadd_rd(row, ROUNDING_SHIFT), c = __fadd_rd(column, ROUNDING_SHIFT),
              d = __fadd_rd(direction, ROUNDING_SHIFT);
  const float fr = row - (r - ROUNDING_SHIFT), fc = column - (c - ROUNDING_SHIFT),
              fd = direction - (d - ROUNDING_SHIFT), fcd = fc * fd;
  const float v = magnitude * weight;
  const float v1 = v * fr, v0 = v - v1;
  out->index = (__float_as_uint(d) & (DESCRIBE_BINS - 1u)) * DESCRIBE_PLANE +
               (__float_as_uint(r) * DESCRIBE_PITCH + __float_as_uint(c));
  describe_share_biased(v0, fc, fd, fcd, out->v);
  describe_share_biased(v1, fc, fd, fcd, out->v + 4);
}

/* Bin of vote j from the first one's. */
static __device__ __forceinline__ int32_t vote_offset(int32_t j) {
  return (j & 1 ? DESCRIBE_PLANE : 0) + (j & 4 ? DESCRIBE_PITCH : 0) + (j & 2 ? 1 : 0);
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
 * The columns of a row that vote, within a segment's. First bounds by rough division, widened by a thousandth of a cell
 * and a hundredth of a sample; a coefficient of zero gives an infinite bound or, where even that is undefined, none.
 * Then each end moves in until its sample votes. What lies between votes too: row and column as computed never turn
 * back along a row of samples, because multiply-adds and their rounding do not.
 */
static __device__ __forceinline__ window_span describe_span(const describe_window *w, const window_segment *segment,
                                                            int32_t row) {
  const float reach = 0.5f * (DESCRIBE_CELLS + 1) + 0.001f, shift = w->x - (float)w->cx, limit = 4096.0f;
  const float per_cosine = __fdividef(1.0f, w->cosine), per_sine = __fdividef(1.0f, w->sine);
  const float dy = (float)(segment->y + row) - w->y;
  const float u = dy * w->sine, v = dy * w->cosine;
  const float u0 = (-reach - u) * per_cosine, u1 = (reach - u) * per_cosine;
  const float v0 = (v - reach) * per_sine, v1 = (v + reach) * per_sine;
  const float low = fmaxf(fmaxf(fminf(u0, u1), fminf(v0, v1)), -limit);
  const float high = fminf(fminf(fmaxf(u0, u1), fmaxf(v0, v1)), limit);
  const int32_t first_x = max(w->cx + (int32_t)ceilf(fminf(low, limit) + shift - 0.01f), segment->x);
  const int32_t last_x =
      min(w->cx + (int32_t)floorf(fmaxf(high, -limit) + shift + 0.01f), segment->x + segment->columns - 1);
  float x = (float)first_x, end = (float)last_x, ignored_row, ignored_column;
  while (x <= end && !describe_place(w, x - w->x, dy, &ignored_row, &ignored_column)) x += 1.0f;
  while (x <= end && !describe_place(w, end - w->x, dy, &ignored_row, &ignored_column)) end -= 1.0f;
  const window_span span = {(int32_t)x - segment->x, (int32_t)end - (int32_t)x + 1};
  return span;
}

/* Where a lane reads: the segment's samples, its sample of a run added, and the list, its run of a step added. */
typedef struct describe_source {
  const float *base, *above, *below;
  int32_t stride;
  uint32_t columns, rows; /* shared addresses of the tables of distances and weights */
  const uint16_t *end;    /* of the list */
} describe_source;

/* The sample whose neighbours a lane has in flight, in the segment; none unless inside. */
typedef struct described_position {
  int32_t row, column;
  bool inside;
} described_position;

/* The neighbours of a lane's sample: in flight from one step to the next. */
typedef struct described_near {
  float left, right, up, down;
} described_near;

/*
 * Issues the loads of the neighbours of the lane's sample at `list`, one step ahead of their use (software pipelining).
 * They go into the registers of the step before ("+f"), so the gradient of that step must be computed first. This order
 * matters because a warp has only six scoreboards for loads in flight: if both steps' loads were outstanding, the
 * compiler could give them the same scoreboard, and waiting for the older ones would wait for the newer ones too.
 */
static __device__ __forceinline__ described_position describe_prefetch(const describe_source *from,
                                                                       const uint16_t *list, described_near *near) {
  const uint32_t run = *list;
  described_position position;
  position.row = window_run_row(run);
  position.column = window_run_column(run);
  position.inside = list < from->end && window_run_reaches(run, threadIdx.x % RUN_LENGTH);
  const int32_t at = position.row * from->stride + position.column;
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %4, 0;\n\t"
               "@p ld.global.nc.f32 %0, [%5 + -4];\n\t@p ld.global.nc.f32 %1, [%5 + 4];\n\t"
               "@p ld.global.nc.f32 %2, [%6];\n\t@p ld.global.nc.f32 %3, [%7];\n\t}"
               : "+f"(near->left), "+f"(near->right), "+f"(near->up), "+f"(near->down)
               : "r"((int32_t)position.inside), "l"(from->base + at), "l"(from->above + at), "l"(from->below + at));
  return position;
}

/* Takes the gradient of the sample at `position`, prefetches the one at `list` and votes meanwhile. */
template <int COPIES>
static __device__ __forceinline__ described_position describe_step(int32_t *votes, uint32_t lane_votes,
                                                                   const describe_source *from,
                                                                   const describe_window *w,
                                                                   const described_position *position,
                                                                   const uint16_t *list, described_near *near) {
  const float gx = near->right - near->left, gy = near->down - near->up;
  const described_position next = describe_prefetch(from, list, near);
  described_sample sample;
  if (position->inside) {
    const float2 column = shared_pair(from->columns + 8u * (uint32_t)position->column),
                 row = shared_pair(from->rows + 8u * (uint32_t)position->row);
    float patch_row, patch_column;
    describe_place(w, column.x, row.x, &patch_row, &patch_column);
    describe_sample(w, gx, gy, column.y * row.y, patch_row, patch_column, &sample);
  }
  describe_add<COPIES>(votes, lane_votes, position->inside, &sample);
  return next;
}

/* Votes of the first `listed` runs. Each step takes RUN_GROUPS of them, RUN_LENGTH lanes a run; the loop is
   unrolled by two, so that positions are not copied between registers. lane_votes: the shared address of the lane's
   copy of bin 0, less what DESCRIBE_BIAS adds. */
template <int COPIES>
static __device__ __forceinline__ void describe_runs(int32_t *votes, const describe_tile *tile,
                                                     const window_segment *segment, const describe_window *w,
                                                     int32_t listed) {
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES), sub = lane % RUN_LENGTH, group = lane / RUN_LENGTH;
  const uint32_t lane_votes = shared_address(votes + lane % (COPIES > 1 ? COPIES : 1)) - DESCRIBE_BIAS * (COPIES * 4u);
  describe_source from;
  from.stride = opaque_int(segment->stride);
  from.base = opaque_pointer(segment->corner + sub);
  from.above = opaque_pointer(from.base - from.stride);
  from.below = opaque_pointer(from.base + from.stride);
  from.columns = shared_address(tile->column + sub);
  from.rows = shared_address(tile->row);
  from.end = tile->runs + listed;
  const uint16_t *list = tile->runs + group, *stop = from.end + group; /* of all lanes in the same step */
  described_near near = {0.0f, 0.0f, 0.0f, 0.0f};
  described_position even = describe_prefetch(&from, list, &near), odd;
#pragma unroll 1
  while (list < stop) {
    odd = describe_step<COPIES>(votes, lane_votes, &from, w, &even, list + RUN_GROUPS, &near);
    list += 2 * RUN_GROUPS;
    if (list - RUN_GROUPS >= stop) break;
    even = describe_step<COPIES>(votes, lane_votes, &from, w, &odd, list, &near);
  }
}

/* Votes of one segment of the window, whose weights are in shared memory; of WARPS warps each takes every WARPS-th row. */
template <int COPIES, int WARPS>
static __device__ __forceinline__ void describe_segment(int32_t *votes, describe_tile *tile,
                                                        const window_segment *segment, const describe_window *w) {
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES), turn = (int32_t)(threadIdx.x / WARP_LANES) % WARPS;
  int32_t listed = 0;
  for (int32_t first = 0;; first += WARP_LANES * WARPS) {
    const int32_t row = first + lane * WARPS + turn;
    window_span span = {0, 0};
    if (row < segment->rows) span = describe_span(w, segment, row);
    const int32_t runs = window_runs_of(span), before = (int32_t)warp_scan_exclusive((uint32_t)runs);
    const int32_t more = __shfl_sync(WARP_ALL, before + runs, WARP_LANES - 1);
    if (first >= segment->rows || listed + more > tile->RUNS) {
      __syncwarp(); /* the list and the weights are whole */
      describe_runs<COPIES>(votes, tile, segment, w, listed);
      __syncwarp(); /* and read */
      if (first >= segment->rows) return;
      listed = 0;
    }
    window_list_runs(tile->runs + listed + before, span, row);
    listed += more;
  }
}

/* The padded histogram of one feature, as far as this of its WARPS warps makes it; complete for every lane at the end. */
template <int COPIES, int WARPS>
static __device__ __forceinline__ void describe_fill(int32_t *votes, describe_tile *tile, const plane_view *level,
                                                     const describe_window *w, float scale) {
  enum { STORED = COPIES > 1 ? COPIES : 1 };
  const int32_t lane = (int32_t)(threadIdx.x % WARP_LANES);
  /* Gradients are taken at twice their length and weights at half: for the polar form scales exactly, except below
     1e-30, where a vote rounds to nothing. */
  const window_geometry geometry = {w->x, w->y, w->cx, w->cy, w->radius, w->falloff, 1, 0.5f * scale};
  __syncwarp(); /* the feature before is done */
  for (int32_t i = lane; i < DESCRIBE_STORED * STORED / 4; i += WARP_LANES) ((int4 *)votes)[i] = make_int4(0, 0, 0, 0);
  const int32_t top = window_tile_first(w->radius, w->cy, 1), left = window_tile_first(w->radius, w->cx, 1);
  const int32_t bottom = window_tile_last(w->radius, w->cy, level->height, 1);
  const int32_t right = window_tile_last(w->radius, w->cx, level->width, 1);
  for (int32_t row = top; row <= bottom; row += DESCRIBE_TILE)
    for (int32_t column = left; column <= right; column += DESCRIBE_TILE) {
      const int32_t x = w->cx + column, y = w->cy + row, stride = (int32_t)level->stride;
      const window_segment segment = {x,
                                      y,
                                      min((int32_t)DESCRIBE_TILE, right - column + 1),
                                      min((int32_t)DESCRIBE_TILE, bottom - row + 1),
                                      stride,
                                      level->data + (size_t)y * level->stride + (size_t)x};
      window_tile_weights(tile, &geometry, &segment);
      describe_segment<COPIES, WARPS>(votes, tile, &segment, w);
    }
  __syncwarp(); /* needed where the window lies outside the level and no segment was taken */
}

/* Sum of the copies of one stored bin. */
template <int COPIES> static __device__ __forceinline__ int32_t describe_stored(const int32_t *votes, int32_t bin) {
  int32_t sum = 0;
#pragma unroll
  for (int32_t c = 0; c < COPIES; c++) sum += votes[bin * COPIES + c];
  return sum;
}

/* Bin i of the histogram without its padding: as describe_crop from this layout, but not yet cut off at zero. */
template <int COPIES> static __device__ __forceinline__ int32_t describe_inner(const int32_t *votes, int32_t i) {
  const int32_t d = i % DESCRIBE_BINS, cell = i / DESCRIBE_BINS;
  const int32_t at = d * DESCRIBE_PLANE + (cell / DESCRIBE_CELLS + 1) * DESCRIBE_PITCH + cell % DESCRIBE_CELLS + 1;
  int32_t sum = describe_stored<COPIES>(votes, at);
  if (d < 1) sum += describe_stored<COPIES>(votes, at + DESCRIBE_BINS * DESCRIBE_PLANE);
  return sum;
}

/* A lane's entries of the histogram, 4 lane .. 4 lane + 3 in the order of the output. */
typedef struct lane_bins {
  int32_t h[4];
} lane_bins;

/* Of one warp's votes, not yet cut off at zero. */
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

/* Clips the bins; returns what brings those of all lanes to unit norm. */
static __device__ __forceinline__ float describe_clip_lane(lane_bins *bins, bool root) {
  uint64_t squares = 0, clipped_squares = 0;
  uint32_t clipped_sum = 0; /* all votes together stay below 2^31 */
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

/* Clips and normalises; the warp writes whole lines of 128 bytes. */
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
  void *descriptors = outputs->descriptors; /* read here, because registers are scarce before */
  if (p->descriptor_float)
    ((float4 *)descriptors)[at] = make_float4(v[0], v[1], v[2], v[3]);
  else
    ((uchar4 *)descriptors)[at] = make_uchar4((uint8_t)b[0], (uint8_t)b[1], (uint8_t)b[2], (uint8_t)b[3]);
}

/* The histogram of feature n in one of its sizes, by one of its WARPS warps; not yet cut off at zero. */
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
  describe_fill<COPIES, WARPS>(votes, tile, &level, &w, v.scales->describe[w.radius]);
  return describe_inner_lane<(COPIES > 1 ? COPIES : 1)>(votes, v.params.vlfeat_layout);
}

/* One feature by one warp; first: where the picture's descriptors begin, in descriptors. */
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
    for (int32_t size = 0; size < v.params.domain.count; size++) {
      lane_bins one = describe_size<COPIES, POOLED, 1>(v, votes, tile, n, size);
      describe_cut_lane(&one);
      const float factor = describe_clip_lane(&one, false);
#pragma unroll
      for (int32_t j = 0; j < 4; j++) bins.h[j] += domain_share(one.h[j], factor);
    }
  }
  describe_write(bins, &v.params, first + n, outputs);
}

/* All features, a team each. Each warp of it has votes of its own; the first adds those of the other to them. */
template <int COPIES>
static __device__ __forceinline__ void describe_by_teams(const cuda_frame_view &v, describe_shared<COPIES> *s_warps,
                                                         uint32_t count, bool ordered, const cuda_outputs *outputs) {
  enum { TEAMS = DESCRIBE_WARPS / TEAM_WARPS };
  static_assert(TEAMS == 2 && DESCRIBE_STORED * COPIES >= 4 * WARP_LANES, "as team_meet; room for the inner bins");
  __shared__ uint32_t s_next[TEAMS];
  const uint32_t lane = threadIdx.x % WARP_LANES, warp = threadIdx.x / WARP_LANES, team = warp / TEAM_WARPS;
  describe_shared<COPIES> *s = &s_warps[warp];
  const bool first = warp % TEAM_WARPS == 0;
  uint32_t at = blockIdx.x * TEAMS + team;
  while (at < count) {
    if (first && lane == 0) s_next[team] = gridDim.x * TEAMS + atomicAdd(&v.scratch.tickets[1], 1u);
    const uint32_t n = ordered ? v.scratch.order[at] : at;
    lane_bins bins = describe_size<COPIES, false, TEAM_WARPS>(v, s->votes, &s->tile, n, 0);
    __syncwarp(); /* the votes are read */
    if (!first) ((int4 *)s->votes)[lane] = make_int4(bins.h[0], bins.h[1], bins.h[2], bins.h[3]);
    team_meet();
    at = s_next[team];
    const int4 other = first ? ((const int4 *)s[1].votes)[lane] : make_int4(0, 0, 0, 0);
    team_meet(); /* the bins and the next number are read */
    if (!first) continue;
    bins = lane_bins{{bins.h[0] + other.x, bins.h[1] + other.y, bins.h[2] + other.z, bins.h[3] + other.w}};
    describe_cut_lane(&bins);
    describe_write(bins, &v.params, n, outputs);
  }
}

/*
 * Does      descriptors, as describe_ref. COPIES: of the histogram for atomics, 0: multi-key reduction without atomics.
 *           POOLED: over the domain sizes of the view, one after another.
 * Launch    resident blocks of 4 warps, a warp a feature, or two where a warp would have few; warps draw features by
 *           ticket in the order of work.
 * Shared    1056 bytes a copy and 2576 of tables, a warp.
 * Reads     outputs, order, features, keypoints, Gaussian levels (4 floats a sample, through L1, a step ahead).
 * Writes    descriptors: 128 or 512 bytes a feature by one store instruction of the warp.
 * Barriers  warp: tables and list before use and after, votes before folding, folding before cropping. Two warps that
 *           share a feature: its second half is there, and has been read.
 * Limits    windows of any radius up to WINDOW_RADIUS_MAX, in segments; no features: returns at once.
 * Order     repeatable: votes are integers, each feature's output has its own address.
 * Cost      225 sigma^2 samples of about 120 operations, 8 of them votes, a window: bound by shared atomics and,
 *           nearly as much, by issue.
 */
template <int COPIES, bool POOLED, bool GROUP>
__global__ void __launch_bounds__(DESCRIBE_WARPS *WARP_LANES, DESCRIBE_BLOCKS)
    describe_warp_per_feature_kernel(const __grid_constant__ cuda_frame_view one, const cuda_outputs *outputs) {
  const cuda_frame_view &v = CUDA_VIEW_OF_BLOCK(GROUP, one);
  /* Behind the room of the pictures before. */
  const size_t picture = GROUP ? (size_t)blockIdx.z * v.features.capacity : 0;
  __shared__ __align__(16) describe_shared<(COPIES > 1 ? COPIES : 1)> s_warps[DESCRIBE_WARPS];
  describe_shared<(COPIES > 1 ? COPIES : 1)> *s = &s_warps[threadIdx.x / WARP_LANES];
  const uint32_t lane = threadIdx.x % WARP_LANES, warps = gridDim.x * DESCRIBE_WARPS;
  const uint32_t total = *v.features.count, count = min(total, v.features.capacity);
  const bool ordered = total == count; /* else `order` lacks some features: they are taken in the order of the list */
  if (COPIES > 1 && !POOLED && !GROUP && count < TEAM_ROUNDS * warps)
    return describe_by_teams<(COPIES > 1 ? COPIES : 1)>(v, s_warps, count, ordered, outputs);
  uint32_t at = blockIdx.x * DESCRIBE_WARPS + threadIdx.x / WARP_LANES;
  while (at < count) {
    uint32_t next = 0;
    if (lane == 0) next = warps + atomicAdd(&v.scratch.tickets[1], 1u);
    describe_feature<COPIES, POOLED>(v, s->votes, &s->tile, ordered ? v.scratch.order[at] : at, picture, outputs);
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
 * Does      writes each feature's number to its position in `order`: the scatter of a counting sort.
 * Launch    blocks of 256 threads, a thread a feature, looping.
 * Shared    2.2 KiB. Barriers: of the scan and of the positions.
 * Reads     features, keypoints, work_counts + WORK_BINS. Writes order; work_cursors + WORK_BINS by atomics.
 * Limits    no features: writes nothing. Order: varies within equal radii. Cost: 18 bytes a feature, bound by latency.
 */
__global__ void __launch_bounds__(WORK_BINS) work_scatter_kernel(const __grid_constant__ cuda_frame_view v) {
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
  const unsigned resident = launch_resident_blocks((const void *)work_scatter_kernel, WORK_BINS, 0);
  const unsigned blocks = tiles < resident ? tiles : resident;
  const stage_status st = launch(work_count_kernel, blocks, WORK_BINS, 0, stream, *view);
  return st == STAGE_OK ? launch(work_scatter_kernel, blocks, WORK_BINS, 0, stream, *view) : st;
}

template <int COPIES, bool POOLED, bool GROUP>
static stage_status launch_describe(const cuda_frame_view *view, const cuda_outputs *outputs, cudaStream_t stream) {
  const int threads = DESCRIBE_WARPS * WARP_LANES;
  const unsigned resident =
      launch_resident_blocks((const void *)describe_warp_per_feature_kernel<COPIES, POOLED, GROUP>, threads, 0);
  const dim3 blocks(cuda_group_share(view, resident), 1, cuda_group_count(view));
  return launch(describe_warp_per_feature_kernel<COPIES, POOLED, GROUP>, blocks, threads, 0, stream, *view, outputs);
}

template <bool POOLED>
static stage_status launch_variant(const cuda_frame_view *view, cuda_describe_variant variant,
                                   const cuda_outputs *outputs, cudaStream_t stream) {
  if (view->group > 1) return launch_describe<4, POOLED, true>(view, outputs, stream);
  if (variant == CUDA_DESCRIBE_ATOMIC4) return launch_describe<4, POOLED, false>(view, outputs, stream);
  if (variant == CUDA_DESCRIBE_ATOMIC2) return launch_describe<2, POOLED, false>(view, outputs, stream);
  return launch_describe<0, POOLED, false>(view, outputs, stream);
}

stage_status cuda_describe_launch(const cuda_frame_view *view, cuda_describe_variant variant,
                                  const cuda_outputs *outputs, cuda_stream stream) {
  assert(view->features.capacity > 0 && view->scales && outputs);
  assert(variant == CUDA_DESCRIBE_ATOMIC4 || view->group <= 1);
  return view->params.domain.count > 0 ? launch_variant<true>(view, variant, outputs, stream)
                                       : launch_variant<false>(view, variant, outputs, stream);
}
