/*
 * The extremum search: from Gaussian or stored DoG levels to one bit per sample. A marching kernel serves three
 * scales per octave (every profile), a plain kernel any other number.
 * Drawing of the masks: cuda/KERNELS.md, "Mask words, tiles and ranks".
 */
#include "cuda/keypoints/keypoints_kernels.h"

#include "cuda/prim/shared_copy.cuh"
#include "cuda/pyramid/pyramid_cuda.h"
#include "cuda/pyramid/tune.h"
#include "cuda/runtime/launch.h"

/* Returns D at offset `at` of DoG level `level`. */
template <bool STORED> __device__ __forceinline__ float dog_of(const extrema_job &o, int32_t level, size_t at) {
  const float *lower = o.planes + (size_t)level * o.plane_floats + at;
  return STORED ? *lower : lower[o.plane_floats] - *lower;
}

__device__ __forceinline__ const extrema_job &job_of_block(const extrema_params &p, int32_t *block) {
  int32_t job = 0;
  while (job + 1 < p.job_count && (int32_t)blockIdx.x >= p.jobs[job + 1].first_block) job++;
  *block = (int32_t)blockIdx.x - p.jobs[job].first_block;
  return p.jobs[job];
}

/* Columns that a lane holds of one row of DoG levels 1..3: its four, and one more on either side. */
enum { ROW_COLUMNS = LANE_COLUMNS + 2 };
struct dog_row {
  float d[MARCH_LEVELS][ROW_COLUMNS];
};

/* The tested row and the rows above and below it, in registers. */
struct dog_rows {
  const dog_row &up, &mid, &down;
};

/* A lane's constants in the marching kernel. */
struct strip_position {
  int32_t first_row, rows, strip_column; /* position of the warp's strip */
  int32_t column;                        /* first column of the lane */
  int32_t last_fetched;                  /* last row, counted from first_row, that is fetched; later rows are not
                                          * tested or not in the picture */
  int32_t beyond;   /* lanes 0 and 31: offset from `column` of the vector next to the strip; other lanes: 0 */
  uint32_t allowed; /* bits of the columns that `border` allows, the same for each level */
};

/* Rows in flight from global memory for one warp. There are MARCH_SLOTS of them, each with one more vector at
 * either side of the strip. A lane reads only data that it copied, so it needs to wait only for its copies. */
enum { MARCH_SLOTS = 3, STAGED_COLUMNS = STRIP_COLUMNS + 2 * LANE_COLUMNS };
template <bool STORED> struct staged_rows {
  static constexpr int planes = STORED ? MARCH_LEVELS : MARCH_LEVELS + 1;
  float4 v[MARCH_SLOTS][planes][STAGED_COLUMNS / LANE_COLUMNS];
};

/* A waiting sample of a warp is an extremum among DoG levels 1..3, or equals a neighbour there. It waits to be
 * compared with levels 0 and 4. The march does not load these two levels, because few samples need them. Samples are
 * collected, so that a warp waits for memory once for many samples. An entry has the bits of test_dog_row, the lane
 * from bit 12 on, and the row, counted from first_row, from bit 17 on. STRIP_WORDS: mask words of one row of a strip.
 */
enum { WAITING_MAX = 128, STRIP_WORDS = STRIP_COLUMNS / 32, LANE_SHIFT = 12, ROW_SHIFT = 17 };
struct warp_candidates {
  uint32_t waiting[WAITING_MAX];
  uint32_t words[EXTREMA_ROWS_MAX * MARCH_LEVELS * STRIP_WORDS];
};

/* Starts the copies of row `row`, counted from first_row, and advances `from` by a row. from: the lane's sample of
 * DoG or Gaussian level 1 in that row. Rows outside the picture are not copied: only tests that `border` excludes
 * would read them. */
template <bool STORED>
__device__ __forceinline__ void prefetch_row(const extrema_job &o, const strip_position &strip, int32_t row, int slot,
                                             staged_rows<STORED> *s, const float **from) {
  const int32_t lane = (int32_t)threadIdx.x & 31;
  if (strip.first_row + row >= 0 && row <= strip.last_fetched && strip.column < o.width) {
    const float *plane = *from;
#pragma unroll
    for (int l = 0; l < staged_rows<STORED>::planes; l++, plane += o.plane_floats) {
      float4 *to = &s->v[slot][l][lane + 1];
      copy_16_async_cached(to, plane);
      if (strip.beyond < 0) copy_16_async_cached(to - 1, plane - LANE_COLUMNS);
      if (strip.beyond > 0) copy_16_async_cached(to + 1, plane + LANE_COLUMNS);
    }
  }
  *from += o.stride;
  copies_commit();
}

/* Starts the copies of the row two after `row`, waits for the copies of `row`, and computes its differences:
 * software pipelining over MARCH_SLOTS slots. All lanes must call. */
template <bool STORED>
__device__ __forceinline__ void load_dog_row(const extrema_job &o, const strip_position &strip, int32_t row, int slot,
                                             staged_rows<STORED> *s, const float **from, dog_row *to) {
  constexpr int planes = staged_rows<STORED>::planes, upper = STORED ? 0 : 1;
  const int32_t lane = (int32_t)threadIdx.x & 31;
  /* distance from a lane's first float to the float next to the strip: before it for lane 0, after it for lane 31. The
   * other lanes read one of their floats, chosen in a different bank */
  const int32_t beside_at = lane == 0 ? -1 : (lane == 31 ? (int32_t)LANE_COLUMNS : lane >> 3);
  /* the destination slot was read one row ago; this orders the copy after those reads */
  __syncwarp();
  prefetch_row(o, strip, row + 2, (slot + 2) % MARCH_SLOTS, s, from);
  copies_wait_but<2>();
  float4 v[planes];
  float b[planes]; /* next to the strip; lanes 0 and 31 use it */
#pragma unroll
  for (int l = 0; l < planes; l++) {
    v[l] = s->v[slot][l][lane + 1];
    b[l] = reinterpret_cast<const float *>(&s->v[slot][l][lane + 1])[beside_at];
  }
#pragma unroll
  for (int l = 0; l < MARCH_LEVELS; l++) {
    const float4 u = v[l + upper], w = v[l];
    to->d[l][1] = STORED ? u.x : u.x - w.x;
    to->d[l][2] = STORED ? u.y : u.y - w.y;
    to->d[l][3] = STORED ? u.z : u.z - w.z;
    to->d[l][4] = STORED ? u.w : u.w - w.w;
    const float outer = STORED ? b[l] : b[l + upper] - b[l];
    const float left = __shfl_up_sync(0xffffffffu, to->d[l][LANE_COLUMNS], 1);
    const float right = __shfl_down_sync(0xffffffffu, to->d[l][1], 1);
    to->d[l][0] = lane == 0 ? outer : left;
    to->d[l][LANE_COLUMNS + 1] = lane == 31 ? outer : right;
  }
}

/*
 * Compares floats as integers. As signed integers positive floats have the order of their values; as unsigned
 * integers negative floats have the order of their magnitudes. In either order floats of the other sign are
 * smaller. So the same source computes maxima (int32_t) and minima (uint32_t), and one instruction compares three
 * values from compute capability 9.0 on.
 */
template <typename ORDER> __device__ __forceinline__ ORDER outer_of(float a, float b, float c) {
  return max(max((ORDER)__float_as_int(a), (ORDER)__float_as_int(b)), (ORDER)__float_as_int(c));
}

/* Returns the extreme of a level's nine samples around each of the lane's samples, including that sample. */
template <typename ORDER>
__device__ __forceinline__ void outermost_of_level(const dog_rows &rows, int l, ORDER nine[LANE_COLUMNS]) {
  ORDER column[ROW_COLUMNS];
#pragma unroll
  for (int k = 0; k < ROW_COLUMNS; k++)
    column[k] = outer_of<ORDER>(rows.up.d[l][k], rows.mid.d[l][k], rows.down.d[l][k]);
#pragma unroll
  for (int k = 0; k < LANE_COLUMNS; k++) nine[k] = max(max(column[k], column[k + 1]), column[k + 2]);
}

/* Returns the value that each sample of DoG levels 1..3 must reach: the extreme of its 27 samples (18 at levels 1
 * and 3), and at least the first float beyond the threshold. */
template <typename ORDER>
__device__ __forceinline__ void outermost_of_row(const dog_rows &rows, ORDER first,
                                                 ORDER around[MARCH_LEVELS][LANE_COLUMNS]) {
  ORDER nine[MARCH_LEVELS][LANE_COLUMNS];
#pragma unroll
  for (int l = 0; l < MARCH_LEVELS; l++) outermost_of_level(rows, l, nine[l]);
#pragma unroll
  for (int k = 0; k < LANE_COLUMNS; k++) {
    around[0][k] = max(max(nine[0][k], nine[1][k]), first);
    around[1][k] = max(around[0][k], nine[2][k]);
    around[2][k] = max(max(nine[1][k], nine[2][k]), first);
  }
}

/* Returns the bits of a row's samples that are beyond the threshold and at least as extreme as their neighbours in
 * DoG levels 1..3. Bit 4l + k is column k of level l + 1. The few that equal a neighbour are excluded by
 * settle_waiting. */
__device__ __forceinline__ uint32_t test_dog_row(float above, const dog_rows &rows) {
  float farthest = 0.0f;
#pragma unroll
  for (int l = 0; l < MARCH_LEVELS; l++)
#pragma unroll
    for (int k = 0; k < LANE_COLUMNS; k++) farthest = fmaxf(farthest, hs_fabsf(rows.mid.d[l][k + 1]));
  if (!__any_sync(0xffffffffu, farthest > above)) return 0;
  int32_t highest[MARCH_LEVELS][LANE_COLUMNS];
  uint32_t lowest[MARCH_LEVELS][LANE_COLUMNS], bits = 0;
  outermost_of_row(rows, __float_as_int(above) + 1, highest);
  outermost_of_row(rows, __float_as_uint(-above) + 1u, lowest);
#pragma unroll
  for (int l = 0; l < MARCH_LEVELS; l++)
#pragma unroll
    for (int k = 0; k < LANE_COLUMNS; k++) {
      const float c = rows.mid.d[l][k + 1];
      if (__float_as_int(c) >= highest[l][k] || __float_as_uint(c) >= lowest[l][k])
        bits |= 1u << (LANE_COLUMNS * l + k);
    }
  return bits;
}

/* Whether c exceeds n on the side of SIGN; with TIES, whether it exceeds or equals n. */
template <int SIGN, bool TIES> __device__ __forceinline__ bool is_beyond(float c, float n) {
  return SIGN > 0 ? (TIES ? c >= n : c > n) : (TIES ? c <= n : c < n);
}

/* Whether c exceeds, on the side of its sign, the nine samples around (x, y) of a DoG level. self: without the
 * sample at (x, y). */
template <bool STORED, bool TIES>
__device__ __forceinline__ bool is_beyond_level(const extrema_job &o, int32_t level, int32_t x, int32_t y, float c,
                                                bool self) {
  bool largest = c > 0.0f, smallest = c < 0.0f;
#pragma unroll
  for (int j = -1; j <= 1; j++)
#pragma unroll
    for (int i = -1; i <= 1; i++) {
      const bool skipped = self && i == 0 && j == 0;
      const float n = dog_of<STORED>(o, level, (size_t)(y + j) * (size_t)o.stride + (size_t)(x + i));
      largest = largest & (skipped | is_beyond<1, TIES>(c, n));
      smallest = smallest & (skipped | is_beyond<-1, TIES>(c, n));
    }
  return largest | smallest;
}

/* Whether a waiting sample of DoG level 1..3 is an extremum. Two tests remain: the level that the march does not
 * load and, without ties, whether any of the 26 neighbours equals the sample. The level comes first, because most
 * samples fail there. */
template <bool STORED, bool TIES>
__device__ __forceinline__ bool is_extremum(const extrema_job &o, int32_t level, int32_t x, int32_t y) {
  if (TIES && level == 2) return true;
  const float c = dog_of<STORED>(o, level, (size_t)y * (size_t)o.stride + (size_t)x);
  const int32_t inwards = level == MARCH_LEVELS ? -1 : 1;
  if (!is_beyond_level<STORED, TIES>(o, level - inwards, x, y, c, false)) return false;
  /* both are evaluated without a branch, so that their loads are in flight at the same time */
  return TIES || (is_beyond_level<STORED, TIES>(o, level, x, y, c, true) &
                  is_beyond_level<STORED, TIES>(o, level + inwards, x, y, c, false));
}

/* Settles the waiting samples, one per lane: sets the bits of the extrema. Synchronises the warp before and after. */
template <bool STORED, bool TIES>
__device__ __forceinline__ void settle_waiting(const extrema_job &o, const strip_position &strip, int32_t count,
                                               warp_candidates *s) {
  __syncwarp();
#pragma unroll 1
  for (int32_t i = (int32_t)threadIdx.x & 31; i < count; i += 32) {
    const uint32_t entry = s->waiting[i];
    const int32_t lane = (int32_t)(entry >> LANE_SHIFT & 31u), row = (int32_t)(entry >> ROW_SHIFT);
#pragma unroll 1
    for (uint32_t left = entry & ((1u << LANE_SHIFT) - 1u); left; left &= left - 1) {
      const int32_t bit = __ffs((int)left) - 1, l = bit / LANE_COLUMNS,
                    column = LANE_COLUMNS * lane + bit % LANE_COLUMNS;
      if (is_extremum<STORED, TIES>(o, l + 1, strip.strip_column + column, strip.first_row + row))
        atomicOr(&s->words[(row * MARCH_LEVELS + l) * STRIP_WORDS + column / 32], 1u << (column & 31));
    }
  }
  __syncwarp();
}

/* Tests one row. Returns the number of waiting samples. */
__device__ __forceinline__ int32_t march_dog_row(const extrema_job &o, const extrema_params &p,
                                                 const strip_position &strip, int32_t row, const dog_rows &rows,
                                                 int32_t count, warp_candidates *s) {
  const int32_t y = strip.first_row + row, lane = (int32_t)threadIdx.x & 31;
  if (y < p.border || y >= o.height - p.border) return count;
  const uint32_t bits = test_dog_row(p.above, rows) & strip.allowed;
  const uint32_t lanes = __ballot_sync(0xffffffffu, bits != 0);
  if (bits)
    s->waiting[count + __popc(lanes & ((1u << lane) - 1u))] =
        bits | (uint32_t)lane << LANE_SHIFT | (uint32_t)row << ROW_SHIFT;
  return count + __popc(lanes);
}

/* Writes a warp's words. */
__device__ __forceinline__ void store_words(const extrema_job &o, const strip_position &strip,
                                            const warp_candidates *s) {
  for (int32_t i = (int32_t)threadIdx.x & 31; i < strip.rows * MARCH_LEVELS * STRIP_WORDS; i += 32) {
    const int32_t row = i / (MARCH_LEVELS * STRIP_WORDS), l = i / STRIP_WORDS % MARCH_LEVELS;
    const int32_t word = strip.strip_column / 32 + i % STRIP_WORDS;
    if (word >= o.words_per_row) continue;
    o.words[((size_t)l * (size_t)o.height + (size_t)(strip.first_row + row)) * (size_t)o.words_per_row + (size_t)word] =
        s->words[i];
  }
}

__device__ __forceinline__ strip_position strip_position_of(const extrema_job &o, const extrema_params &p,
                                                            int32_t block) {
  const int32_t strips = (o.width + STRIP_COLUMNS - 1) / STRIP_COLUMNS;
  const int32_t lane = (int32_t)threadIdx.x & 31, warp = (int32_t)threadIdx.x >> 5;
  strip_position strip;
  strip.first_row = (block / strips * EXTREMA_WARPS + warp) * o.rows;
  strip.strip_column = block % strips * STRIP_COLUMNS;
  strip.column = strip.strip_column + LANE_COLUMNS * lane;
  strip.rows = min(o.rows, o.height - strip.first_row);
  strip.last_fetched = min(strip.rows, o.height - 1 - strip.first_row);
  strip.beyond = 0;
  if (lane == 0 && strip.column > 0) strip.beyond = -1;
  if (lane == 31 && strip.column + LANE_COLUMNS < o.width) strip.beyond = 1;
  strip.allowed = 0;
  for (int32_t k = 0; k < LANE_COLUMNS; k++)
    if (strip.column + k >= p.border && strip.column + k < o.width - p.border) strip.allowed |= 0x111u << k;
  return strip;
}

/*
 * Does      extrema_ref for S = 3, several octaves per launch.
 * Launch    EXTREMA_WARPS warps per block, stacked vertically; each has STRIP_COLUMNS columns and extrema_job::rows
 *           rows.
 * Shared    staged_rows and a warp_candidates for each warp. Three rows of three DoG levels stay in registers.
 * Reads     levels 1..4, 16 bytes per lane, aligned; levels 0 and 5 around samples that the other levels do not
 *           rule out; there, without ties, the other levels again. Up to 3 floats right of the picture, within its
 *           rows, are read and not used.
 * Writes    every word of the masks.
 * Barriers  none in a block; a warp synchronises before it reads the samples that its lanes collected.
 * Limits    border >= 1; any size.
 * Order     no sums.
 * Cost      per sample 16 bytes (12 with stored DoG) and about 30 comparisons, of three values each if the hardware
 *           can; bound by memory and latency.
 */
template <bool STORED, bool TIES>
static __device__ __forceinline__ void extrema_march(const extrema_params &p, const extrema_job &o, int32_t block) {
  __shared__ warp_candidates s_candidates[EXTREMA_WARPS];
  __shared__ staged_rows<STORED> s_staged[EXTREMA_WARPS];
  const strip_position strip = strip_position_of(o, p, block);
  warp_candidates *s = &s_candidates[threadIdx.x >> 5];
  staged_rows<STORED> *staged = &s_staged[threadIdx.x >> 5];
  const float *from =
      o.planes + o.plane_floats + (ptrdiff_t)(strip.first_row - 1) * o.stride + strip.column; /* row first_row - 1 */
  prefetch_row(o, strip, -1, 0, staged, &from);
  prefetch_row(o, strip, 0, 1, staged, &from);
  for (int32_t i = (int32_t)threadIdx.x & 31; i < strip.rows * MARCH_LEVELS * STRIP_WORDS; i += 32) s->words[i] = 0;
  dog_row a, b, c;
  load_dog_row(o, strip, -1, 0, staged, &from, &a);
  load_dog_row(o, strip, 0, 1, staged, &from, &b);
  int32_t count = 0;
  for (int32_t row = 0; row < strip.rows; row += 3) {
    load_dog_row(o, strip, row + 1, 2, staged, &from, &c);
    count = march_dog_row(o, p, strip, row, {a, b, c}, count, s);
    if (row + 1 >= strip.rows) break;
    load_dog_row(o, strip, row + 2, 0, staged, &from, &a);
    count = march_dog_row(o, p, strip, row + 1, {b, c, a}, count, s);
    if (row + 2 >= strip.rows) break;
    load_dog_row(o, strip, row + 3, 1, staged, &from, &b);
    count = march_dog_row(o, p, strip, row + 2, {c, a, b}, count, s);
    if (count <= WAITING_MAX - 96) continue; /* three rows add at most 96 */
    settle_waiting<STORED, TIES>(o, strip, count, s);
    count = 0;
  }
  settle_waiting<STORED, TIES>(o, strip, count, s);
  store_words(o, strip, s);
}

template <bool STORED, bool TIES, bool GROUP>
static __device__ __forceinline__ void search_strips(const extrema_params &p, size_t group_stride_bytes) {
  int32_t block;
  const extrema_job &job = job_of_block(p, &block);
  if (GROUP) {
    extrema_job o = job;
    o.planes = group_shifted(job.planes, blockIdx.z * group_stride_bytes);
    o.words = group_shifted(job.words, blockIdx.z * group_stride_bytes);
    extrema_march<STORED, TIES>(p, o, block);
  } else {
    extrema_march<STORED, TIES>(p, job, block);
  }
}

/*
 * Does      extrema_ref for any S, several octaves per launch.
 * Launch    EXTREMA_WARPS warps per block, each with one mask word of one row of all levels.
 * Shared    none.
 * Reads     levels through the L1 cache, only inside the picture.
 * Writes    every word of the masks, by ballot.
 * Barriers  none.
 * Limits    border >= 1; any size.
 * Order     no sums.
 * Cost      8 bytes per sample and level for most samples, which fail the threshold.
 */
template <bool STORED, bool TIES> static __device__ __forceinline__ void search_words(const extrema_params &p) {
  int32_t block;
  const extrema_job &o = job_of_block(p, &block);
  const int32_t lane = (int32_t)threadIdx.x & 31, word = block % o.words_per_row, x = word * 32 + lane;
  const int32_t y = block / o.words_per_row * EXTREMA_WARPS + ((int32_t)threadIdx.x >> 5);
  if (y >= o.height) return;
  const bool allowed = x >= p.border && x < o.width - p.border && y >= p.border && y < o.height - p.border;
  for (int32_t level = 1; level <= p.scales; level++) {
    bool candidate = false;
    if (allowed) {
      const float c = dog_of<STORED>(o, level, (size_t)y * (size_t)o.stride + (size_t)x);
      candidate = hs_fabsf(c) > p.above;
      for (int32_t s = level - 1; s <= level + 1 && candidate; s++)
        candidate = is_beyond_level<STORED, TIES>(o, s, x, y, c, s == level);
    }
    const uint32_t bits = __ballot_sync(0xffffffffu, candidate);
    if (lane == 0)
      o.words[((size_t)(level - 1) * (size_t)o.height + (size_t)y) * (size_t)o.words_per_row + (size_t)word] = bits;
  }
}

#define EXTREMA_MARCH_KERNEL(name, STORED, TIES, GROUP)                                                                \
  extern "C" __global__ void __launch_bounds__(32 * EXTREMA_WARPS, EXTREMA_BLOCKS_PER_SM)                              \
      name(const __grid_constant__ extrema_params p, size_t group_stride_bytes) {                                      \
    search_strips<STORED, TIES, GROUP>(p, group_stride_bytes);                                                         \
  }
EXTREMA_MARCH_KERNEL(extrema_march_kernel, false, false, false)
EXTREMA_MARCH_KERNEL(extrema_march_ties_kernel, false, true, false)
EXTREMA_MARCH_KERNEL(extrema_march_stored_kernel, true, false, false)
EXTREMA_MARCH_KERNEL(extrema_march_stored_ties_kernel, true, true, false)
EXTREMA_MARCH_KERNEL(extrema_march_group_kernel, false, false, true)
EXTREMA_MARCH_KERNEL(extrema_march_ties_group_kernel, false, true, true)

#define EXTREMA_PLAIN_KERNEL(name, STORED, TIES)                                                                       \
  extern "C" __global__ void name(const __grid_constant__ extrema_params p) { search_words<STORED, TIES>(p); }
EXTREMA_PLAIN_KERNEL(extrema_plain_kernel, false, false)
EXTREMA_PLAIN_KERNEL(extrema_plain_ties_kernel, false, true)
EXTREMA_PLAIN_KERNEL(extrema_plain_stored_kernel, true, false)
EXTREMA_PLAIN_KERNEL(extrema_plain_stored_ties_kernel, true, true)

EXTREMA_KERNELS(LAUNCH_CHECK)
