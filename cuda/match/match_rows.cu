/*
 * The two nearest of rows alone, by the matrix instructions of a warpgroup (compute capability 9.0), and the pairs that
 * remain.
 *
 * match_products.cu finds the nearest of rows and of columns. Apart from the products, columns take most of its time.
 * Only a column that some row accepts can become a pair. So the first run has first's features as rows. A row
 * that may pass the tests claims its nearest column, and the claimed columns are the rows of a second run against
 * first's features. A pair remains if each is the other's nearest and both pass the tests.
 *
 * As in match_products.cu a minimum is taken over groups of candidates: 8 columns of a strip of 128 that a lane has in
 * every fourth tile of 8. A second nearest in the group of the nearest is missed, so that the second square is too
 * large until match_confirm_kernel computes the group again. A row that fails even so can be left out before that.
 *
 * Descriptors are packed: the 16-byte pieces of feature i are permuted by i % 8, which is the layout with a swizzle of
 * 128 bytes that the instruction expects, so that one copy brings a strip to shared memory.
 */
#include "cuda/match/match_cuda.h"

#include "cuda/match/match_keys.cuh"
#include "cuda/prim/shared_copy.cuh"
#include "cuda/runtime/launch.h"

enum {
  THREADS = MATCH_THREADS,
  LANES = MATCH_LANES,
  STRIP = ROWS_STRIP,
  STRIP_TILES = STRIP / 8,
  STAGES = ROWS_STAGES,
  CHAINS = ROWS_CHAINS,
  STEPS = MATCH_LENGTH / 32 /* instructions for all values of a descriptor */
};

/* ------------------------------------------------------------------ packing */

/*
 * Does      packs descriptors, computes their squared norms and bases, and sets keys and words to ones.
 * Launch    8 lanes per feature: first's, then second's, both padded to complete strips.
 * Shared    none. Reads descriptors, 16-byte aligned; may pack in place. Barriers: none.
 * Limits    any counts. Order: repeatable, integers. Cost: 128 bytes read and written per feature.
 */
extern "C" __global__ void __launch_bounds__(THREADS) match_pack_kernel(const __grid_constant__ pack_args p) {
  const uint64_t thread = (uint64_t)blockIdx.x * THREADS + threadIdx.x, item = thread / LANES;
  for (uint64_t w = thread; w < p.word_count; w += (uint64_t)gridDim.x * THREADS) p.words[w] = ~0u;
  const bool second = item >= p.padded[0];
  const uint32_t i = (uint32_t)(second ? item - p.padded[0] : item), piece = threadIdx.x % LANES;
  const cuda_match_image *to = &p.to[second];
  const bool there = i < to->count;
  uint4 v = make_uint4(0, 0, 0, 0);
  if (there) v = ((const uint4 *)(p.from[second] + (size_t)i * MATCH_LENGTH))[piece];
  uint32_t norm = __dp4a(v.x, v.x, __dp4a(v.y, v.y, __dp4a(v.z, v.z, __dp4a(v.w, v.w, 0u))));
  norm = lanes_reduce_sum<LANES>(norm);
  __syncwarp(); /* all lanes of a feature have read it, which may be in place */
  if (i >= p.padded[second]) return;
  ((uint4 *)(to->descriptors + (size_t)i * MATCH_LENGTH))[piece ^ i % 8u] = v;
  if (piece != 0) return;
  to->base[i] = there ? (int32_t)(norm << MATCH_KEY_SHIFT) | match_column_number(i) : MATCH_NO_KEY_32;
  if (there && to->norms) to->norms[i] = (int32_t)norm;
  if (there && p.best[second]) p.best[second][i] = p.second_best[second][i] = MATCH_NO_KEY;
}

/* ------------------------------------------------------------------ tasks */

static __device__ __forceinline__ const cuda_match_task *task_of(const match_rows_args *p, uint32_t i) {
  return p->tasks ? &p->tasks[i] : &p->one;
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* The rows of a run: all features of a list, or the listed ones. */
typedef struct rows_of_task {
  const cuda_match_image *own, *other;
  const uint32_t *list; /* null: all */
  uint32_t count;
  match_bests bests;
} rows_of_task;

static __device__ __forceinline__ uint32_t row_count_of(const cuda_match_task *t, bool back) {
  return back ? t->claims[ROWS_LISTED] + 1u : t->first.count;
}

static __device__ __forceinline__ rows_of_task rows_of(const cuda_match_task *t, bool back) {
  rows_of_task r = {back ? &t->second : &t->first,
                    back ? &t->first : &t->second,
                    back ? t->list : NULL,
                    row_count_of(t, back),
                    {back ? t->second_best : t->first_best, back ? t->second_second : t->first_second}};
  return r;
}

static __device__ __forceinline__ uint32_t strips_of(uint32_t columns) { return (columns + STRIP - 1u) / STRIP; }

/* Returns a task's units: strips of blocks of rows. */
static __device__ __forceinline__ uint64_t units_of(const match_rows_args *p, uint32_t i) {
  if (i >= p->count) return 0;
  const cuda_match_task *t = task_of(p, i);
  const uint32_t blocks = (row_count_of(t, p->back) + ROWS_BLOCK_ROWS - 1u) / ROWS_BLOCK_ROWS;
  return (uint64_t)blocks * strips_of(p->back ? t->first.count : t->second.count);
}

static __device__ __forceinline__ uint64_t units_of_all(const match_rows_args *p) {
  uint64_t units = 0;
  for (uint32_t i = threadIdx.x % WARP_LANES; i < p->count; i += WARP_LANES) units += units_of(p, i);
  return warp_reduce_sum_u64(units);
}

/* Returns the task of a unit, which becomes the unit's number in it. All lanes must call. */
static __device__ __forceinline__ uint32_t find_task(const match_rows_args *p, uint64_t *unit) {
  if (p->count == 1) return 0;
  for (uint32_t first = 0; first < p->count; first += WARP_LANES) {
    const uint64_t units = units_of(p, first + threadIdx.x % WARP_LANES), before = warp_scan_exclusive(units);
    const uint32_t found = __ballot_sync(WARP_ALL, *unit >= before && *unit - before < units);
    if (found) {
      const int lane = __ffs((int)found) - 1;
      *unit -= __shfl_sync(WARP_ALL, before, lane);
      return first + (uint32_t)lane;
    }
    *unit -= __shfl_sync(WARP_ALL, before + units, WARP_LANES - 1);
  }
  return 0;
}

/* ------------------------------------------------------------------ barriers in shared memory */

static __device__ __forceinline__ void barrier_init(uint32_t barrier, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

static __device__ __forceinline__ void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

static __device__ __forceinline__ void barrier_arrive_expecting(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

/* Waits for the end of the barrier's phase of this parity. */
static __device__ __forceinline__ void barrier_wait(uint32_t barrier, uint32_t parity) {
  asm volatile("{\n"
               ".reg .pred done;\n"
               "again:\n"
               "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%0], %1;\n"
               "@!done bra again;\n"
               "}" ::"r"(barrier),
               "r"(parity)
               : "memory");
}

/* Copies bytes (a multiple of 16) to shared memory; the barrier counts them. */
static __device__ __forceinline__ void copy_counted(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

/* ------------------------------------------------------------------ products */

/* Where a thread is in the ring of strips. */
typedef struct ring_place {
  uint32_t stage, parity;
} ring_place;

static __device__ __forceinline__ void ring_advance(ring_place *r) {
  if (++r->stage < STAGES) return;
  r->stage = 0;
  r->parity ^= 1u;
}

#  define FOUR(d, i)    "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3])
#  define SIXTEEN(d, i) FOUR(d, i), FOUR(d, i + 4), FOUR(d, i + 8), FOUR(d, i + 12)

/* Products of 32 values: 64 rows of the warpgroup by 128 columns; added to d if `add`, else set. */
static __device__ __forceinline__ void multiply(int32_t (&d)[64], const uint32_t (&a)[4], uint64_t columns,
                                                int32_t add) {
  asm volatile("{\n"
               ".reg .pred add;\n"
               "setp.ne.b32 add, %69, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n128k32.s32.u8.u8 {"
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
               "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
               "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
               "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
               "}, {%64, %65, %66, %67}, %68, add;\n"
               "}"
               : SIXTEEN(d, 0), SIXTEEN(d, 16), SIXTEEN(d, 32), SIXTEEN(d, 48)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(columns), "r"(add));
}

/* Waits for the products. */
static __device__ __forceinline__ void products_wait(int32_t (&d)[64]) {
  asm volatile("wgmma.wait_group.sync.aligned 0;"
               : SIXTEEN(d, 0), SIXTEEN(d, 16), SIXTEEN(d, 32), SIXTEEN(d, 48)::"memory");
}

/* Describes a strip in shared memory: rows of 128 bytes, swizzled, 8 of them every 1024 bytes. */
static __device__ __forceinline__ uint64_t strip_descriptor(uint32_t address) {
  const uint64_t swizzle = 1ull << 62, group = 1024ull / 16 << 32, unused = 1ull << 16;
  return swizzle | group | unused | (address >> 4 & 0x3fffu);
}

enum { ROWS = 2 }; /* of a lane: 8 apart */

/* The smallest keys of a lane's rows, and where: best has its number in the low bits, second has any. */
typedef struct row_minima {
  int32_t best[ROWS], second[ROWS];
  uint32_t strip[ROWS];
} row_minima;

static __device__ __forceinline__ int32_t least(int32_t a, int32_t b, int32_t c) { return __vimin3_s32(a, b, c); }

static __device__ __forceinline__ int32_t key_of(int32_t base, int32_t dot) {
  return (int32_t)((uint32_t)base - ((uint32_t)dot << (MATCH_KEY_SHIFT + 1))); /* wraps only where the key does */
}

/* Takes a strip's products: of each chain and row only the smallest key. */
static __device__ __forceinline__ void take_strip(const int32_t (&d)[64], const int32_t *bases, uint32_t strip,
                                                  row_minima *m) {
  int32_t chain[ROWS][CHAINS];
#  pragma unroll
  for (int t = 0; t < STRIP_TILES; t++) {
    const int2 base = *(const int2 *)(bases + 8 * t);
#  pragma unroll
    for (int r = 0; r < ROWS; r++) {
      const int32_t x = key_of(base.x, d[4 * t + 2 * r]), y = key_of(base.y, d[4 * t + 2 * r + 1]);
      chain[r][t % CHAINS] = t < CHAINS ? min(x, y) : least(chain[r][t % CHAINS], x, y);
    }
  }
#  pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const int32_t low = min(chain[r][0], chain[r][1]), high = max(chain[r][0], chain[r][1]);
    const int32_t other_low = min(chain[r][2], chain[r][3]), other_high = max(chain[r][2], chain[r][3]);
    const int32_t key = min(low, other_low);
    const int32_t next = least(max(low, other_low), high, other_high);
    m->second[r] = least(m->second[r], next, max(m->best[r], key));
    const bool better = key < (m->best[r] & ~MATCH_KEY_NUMBER); /* later strips have higher columns */
    m->best[r] = better ? key : m->best[r];
    m->strip[r] = better ? strip : m->strip[r];
  }
}

/* Loads the values of a lane's rows: of each instruction words q and q + 4 of both rows. */
static __device__ __forceinline__ void load_rows(const cuda_match_image *own, const uint32_t *index,
                                                 uint32_t (&a)[STEPS][4]) {
#  pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const uint32_t *row = (const uint32_t *)(own->descriptors + (size_t)index[r] * MATCH_LENGTH) + threadIdx.x % 4u;
#  pragma unroll
    for (uint32_t piece = 0; piece < 2u * STEPS; piece++)
      a[piece / 2][piece % 2 * 2 + r] = row[(piece ^ index[r] % 8u) * 4u];
  }
}

/* Merges a lane's minima into its rows' results. */
static __device__ __forceinline__ void end_rows(const rows_of_task *rows, uint32_t row, const uint32_t *index,
                                                const row_minima *m) {
  const uint32_t q = threadIdx.x % 4u;
#  pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const uint32_t norm = (uint32_t)rows->own->base[index[r]] >> MATCH_KEY_SHIFT;
    const uint32_t number = (uint32_t)m->best[r] & (uint32_t)MATCH_KEY_NUMBER;
    const uint32_t column =
        m->strip[r] * STRIP / MATCH_SPAN * MATCH_SPAN + 2u * q + (number & 126u) * 4u + (number & 1u);
    const int32_t none = MATCH_NO_KEY_32 >> MATCH_KEY_SHIFT, best = m->best[r] >> MATCH_KEY_SHIFT,
                  second = m->second[r] >> MATCH_KEY_SHIFT;
    match_two t = {best == none ? MATCH_NO_KEY : match_key((uint32_t)best + norm, column),
                   second == none ? MATCH_NO_KEY : match_key((uint32_t)second + norm, MATCH_NONE)};
    match_two_join_lanes(&t, 1, 4);
    if (q == 0 && row + 8u * r < rows->count) match_bests_add(&rows->bests, index[r], t);
  }
}

/* Where units are: a task, a block of its rows, and the first of some strips. */
typedef struct rows_span {
  const cuda_match_task *task;
  uint32_t block, strip, strips;
} rows_span;

/* Returns the span of units from `at` to `end` that one block of rows has. All lanes must call. */
static __device__ __forceinline__ rows_span span_at(const match_rows_args *p, uint64_t at, uint64_t end) {
  uint64_t unit = at;
  rows_span span;
  span.task = task_of(p, find_task(p, &unit));
  const uint32_t all = strips_of(p->back ? span.task->first.count : span.task->second.count);
  span.block = (uint32_t)(unit / all);
  span.strip = (uint32_t)(unit % all);
  span.strips = (uint32_t)min((uint64_t)(all - span.strip), end - at);
  return span;
}

/* Starts the copy of the next strip, if there is one, as soon as its place is free. A complete warp must call. */
static __device__ __forceinline__ void copy_next(const match_rows_args *p, uint64_t end, rows_shared *s) {
  rows_cursor *c = &s->cursor;
  const bool first_lane = threadIdx.x % WARP_LANES == 0;
  __syncwarp(); /* the first lane has written the cursor in the last call */
  const uint32_t left = c->left;
  const uint64_t at = c->at;
  __syncwarp(); /* all lanes have read it before it is written */
  if (left == 0) {
    if (at >= end) return;
    const rows_span span = span_at(p, at, end);
    const cuda_match_image *other = p->back ? &span.task->first : &span.task->second;
    if (first_lane) {
      c->columns = other->descriptors + (size_t)span.strip * sizeof s->columns[0];
      c->base = other->base + (size_t)span.strip * STRIP;
      c->at = at + span.strips;
      c->left = span.strips;
    }
  }
  if (first_lane) {
    const uint32_t stage = c->stage, full = shared_address(&s->full[stage]);
    barrier_wait(shared_address(&s->empty[stage]), c->parity ^ 1u);
    barrier_arrive_expecting(full, sizeof s->columns[0] + sizeof s->base[0]);
    copy_counted(shared_address(s->columns[stage]), c->columns, sizeof s->columns[0], full);
    copy_counted(shared_address(s->base[stage]), c->base, sizeof s->base[0], full);
    c->columns += sizeof s->columns[0];
    c->base += STRIP;
    c->left--;
    c->stage = stage + 1u < STAGES ? stage + 1u : 0;
    if (stage + 1u == STAGES) c->parity ^= 1u;
  }
  __syncwarp();
}

/* A warp's part of a span. */
static __device__ __forceinline__ void take_rows(const match_rows_args *p, uint64_t units_end, const rows_span *span,
                                                 rows_shared *s, ring_place *ring) {
  const rows_of_task of_task = rows_of(span->task, p->back), *rows = &of_task;
  const uint32_t block = span->block;
  const uint32_t lane = threadIdx.x % WARP_LANES, warp = threadIdx.x / WARP_LANES;
  const uint32_t row = block * ROWS_BLOCK_ROWS + warp * 16u + lane / 4u;
  const bool idle = block * ROWS_BLOCK_ROWS + warp / 4u * 64u >= rows->count;
  uint32_t index[ROWS], a[STEPS][4];
  int32_t d[64];
  row_minima m;
#  pragma unroll
  for (int r = 0; r < ROWS; r++) {
    index[r] = min(row + 8u * r, rows->count - 1u);
    if (rows->list) index[r] = rows->list[index[r]];
    m.best[r] = m.second[r] = MATCH_NO_KEY_32;
    m.strip[r] = 0;
  }
  load_rows(rows->own, index, a);
  for (uint32_t strip = span->strip, strips_end = strip + span->strips; strip < strips_end; strip++) {
    if (warp == 0) copy_next(p, units_end, s);
    barrier_wait(shared_address(&s->full[ring->stage]), ring->parity);
    if (!idle) {
      const uint64_t columns = strip_descriptor(shared_address(s->columns[ring->stage]));
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#  pragma unroll
      for (int k = 0; k < STEPS; k++) multiply(d, a[k], columns + 2u * k, k > 0);
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      products_wait(d);
      take_strip(d, s->base[ring->stage] + lane % 4u * 2u, strip, &m);
      __syncwarp();
    }
    if (lane == 0) barrier_arrive(shared_address(&s->empty[ring->stage]));
    ring_advance(ring);
  }
  if (!idle) end_rows(rows, row, index, &m);
}

#endif

/*
 * Does      finds the smallest keys of rows: first's features, or if `back` the claimed ones of second. The second key
 *           has no index, and its square may be too large: see above.
 * Launch    resident blocks of 16 warps; each takes an equal share of all units, that is strips of blocks of 256 rows,
 *           of all tasks. The first warp also starts the copies of strips, ROWS_AHEAD strips before it needs them.
 * Shared    rows_shared, dynamic. Reads packed lists, bases, claims. Writes best and second by atomic minima.
 * Barriers  in shared memory: `full` when a strip's bytes are there, `empty` when all multiplying warps have used them.
 * Limits    any counts. Order: repeatable: minima of keys. Ends the context on other devices than 9.0.
 * Cost      2.8 instructions for each pair of descriptors, without the matrix instructions.
 */
extern "C" __global__ void __launch_bounds__(ROWS_THREADS, 1)
    match_rows_kernel(const __grid_constant__ match_rows_args p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) unsigned char memory[];
  rows_shared *s = (rows_shared *)memory;
  if (threadIdx.x == 0)
    for (int i = 0; i < STAGES; i++) {
      barrier_init(shared_address(&s->full[i]), 1);
      barrier_init(shared_address(&s->empty[i]), ROWS_WARPS);
    }
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  __syncthreads();
  const uint64_t units = units_of_all(&p), end = units * (blockIdx.x + 1u) / gridDim.x;
  ring_place ring = {0, 0};
  uint64_t at = units * blockIdx.x / gridDim.x;
  if (threadIdx.x < WARP_LANES) {
    if (threadIdx.x == 0) {
      const rows_cursor begin = {NULL, NULL, at, 0, 0, 0};
      s->cursor = begin;
    }
    __syncwarp();
    for (int i = 0; i < ROWS_AHEAD; i++) copy_next(&p, end, s);
  }
  while (at < end) {
    const rows_span span = span_at(&p, at, end);
    take_rows(&p, end, &span, s, &ring);
    at += span.strips;
  }
#else
  __trap(); /* a kernel without code would silently find nothing */
#endif
}

/* ------------------------------------------------------------------ claims */

/*
 * Does      lists the nearest columns of the rows that may pass the tests, each once.
 * Launch    x: a thread per row of the largest task, y: tasks.
 * Shared    none. Reads best, second of rows. Writes claims, list. Barriers: none.
 * Limits    any counts. Order: the list's order varies, its set does not. Cost: 16 bytes per row.
 */
extern "C" __global__ void __launch_bounds__(THREADS) match_claim_kernel(const __grid_constant__ match_rows_args p) {
  const cuda_match_task *t = task_of(&p, blockIdx.y);
  const uint32_t i = blockIdx.x * THREADS + threadIdx.x, lane = threadIdx.x % WARP_LANES;
  bool claimed = false;
  uint32_t column = 0;
  if (i < t->first.count) {
    const match_two two = {t->first_best[i], t->first_second[i]};
    const match_nearest n = match_nearest_of_keys(MATCH_U8, two);
    column = n.nearest;
    if (match_accepts(&p.limits, &n)) {
      const uint32_t bit = 1u << column % 32u;
      claimed = atomicAnd(&t->unclaimed[column / 32u], ~bit) & bit;
    }
  }
  const uint32_t claims = __ballot_sync(WARP_ALL, claimed);
  if (claims == 0) return;
  uint32_t at = 0;
  if (lane == 0) at = atomicAdd(&t->claims[ROWS_LISTED], (uint32_t)__popc((int)claims)) + 1u;
  at = __shfl_sync(WARP_ALL, at, 0) + (uint32_t)__popc((int)(claims & ((1u << lane) - 1u)));
  if (claimed) t->list[at] = column;
}

/* ------------------------------------------------------------------ pairs */

#define NO_SECOND UINT32_MAX

static __device__ __forceinline__ uint32_t norm_of(const cuda_match_image *image, uint32_t i) {
  return (uint32_t)image->base[i] >> MATCH_KEY_SHIFT;
}

/* Returns the square of feature i of `own` to the lane's one of the 8 features of `other` in the group of j, the
 * nearest, without j; all ones if there is none. */
static __device__ __forceinline__ uint32_t group_square(const cuda_match_image *own, uint32_t i,
                                                        const cuda_match_image *other, uint32_t j) {
  const uint32_t member = threadIdx.x % 8u, tile = j / 8u % CHAINS + member / 2u * CHAINS;
  const uint32_t k = j / STRIP * STRIP + tile * 8u + (j & 6u) + member % 2u;
  if (k >= other->count || k == j) return NO_SECOND;
  const uint4 *a = (const uint4 *)(own->descriptors + (size_t)i * MATCH_LENGTH);
  const uint4 *b = (const uint4 *)(other->descriptors + (size_t)k * MATCH_LENGTH);
  uint32_t products = 0;
#pragma unroll
  for (uint32_t piece = 0; piece < 8u; piece++) {
    const uint4 u = a[piece ^ i % 8u], v = b[piece ^ k % 8u];
    products = __dp4a(u.x, v.x, __dp4a(u.y, v.y, __dp4a(u.z, v.z, __dp4a(u.w, v.w, products))));
  }
  return norm_of(own, i) + norm_of(other, k) - 2u * products;
}

static __device__ __forceinline__ match_nearest nearest_of(uint32_t j, uint32_t square, uint32_t second) {
  match_nearest n = match_nearest_none();
  n.nearest = j;
  n.nearest_squared = (float)square;
  if (second != NO_SECOND) n.second_squared = (float)second;
  return n;
}

/* Returns whether rows that may be pairs are, and writes their second squares; 8 neighbouring lanes have one row. All
 * lanes must call; wanted: there is a row. */
static __device__ __forceinline__ bool confirm(const match_rows_args *p, const cuda_match_task *t, bool wanted,
                                               uint32_t i) {
  uint32_t j = 0, square = 0, second = NO_SECOND, back_second = NO_SECOND;
  if (wanted) {
    j = (uint32_t)t->first_best[i];
    square = (uint32_t)(t->first_best[i] >> 32);
    second = min((uint32_t)(t->first_second[i] >> 32), group_square(&t->first, i, &t->second, j));
    if (p->mutual) back_second = min((uint32_t)(t->second_second[j] >> 32), group_square(&t->second, j, &t->first, i));
  }
  for (int d = 1; d < 8; d <<= 1) {
    second = min(second, __shfl_xor_sync(WARP_ALL, second, d));
    back_second = min(back_second, __shfl_xor_sync(WARP_ALL, back_second, d));
  }
  if (!wanted) return false;
  const match_nearest n = nearest_of(j, square, second), back = nearest_of(i, square, back_second);
  if (threadIdx.x % 8u == 0) t->first_second[i] = match_key(second, MATCH_NONE);
  return match_accepts(&p->limits, &n) && (!p->mutual || match_accepts(&p->limits, &back));
}

/* Returns whether row i and its nearest are each other's nearest, and may pass the tests. */
static __device__ __forceinline__ bool may_be_pair(const match_rows_args *p, const cuda_match_task *t, uint32_t i) {
  const match_two two = {t->first_best[i], t->first_second[i]};
  const match_nearest n = match_nearest_of_keys(MATCH_U8, two);
  return match_accepts(&p->limits, &n) && (!p->mutual || (uint32_t)t->second_best[n.nearest] == i);
}

/* Returns the pairs of up to 32 rows as bits, and marks the other rows. A complete warp must call. */
static __device__ __forceinline__ uint32_t confirm_rows(const match_rows_args *p, const cuda_match_task *t,
                                                        uint32_t row, uint32_t count) {
  const uint32_t lane = threadIdx.x % WARP_LANES;
  uint32_t left = __ballot_sync(WARP_ALL, lane < count && may_be_pair(p, t, row + lane)), pairs = 0;
  while (left) {
    uint32_t rest = left; /* without the candidates of the lanes before */
    for (uint32_t k = 0; k < 4u; k++) {
      if (k < lane / 8u) rest &= rest - 1u;
      left &= left - 1u;
    }
    const uint32_t candidate = (uint32_t)__ffs((int)rest) - 1u;
    const bool is_pair = confirm(p, t, rest != 0, row + candidate);
    uint32_t found = is_pair ? 1u << candidate : 0u;
    found |= __shfl_xor_sync(WARP_ALL, found, 8);
    pairs |= found | __shfl_xor_sync(WARP_ALL, found, 16);
  }
  if (lane < count && !(pairs >> lane & 1u)) t->first_best[row + lane] = MATCH_NO_KEY;
  return pairs;
}

/* Returns the number of pairs in the tiles before, as soon as they are counted. */
static __device__ __forceinline__ uint32_t pairs_before(volatile uint32_t *counts, uint32_t tile, uint32_t *shared) {
  uint32_t sum = 0;
  for (uint32_t i = threadIdx.x; i < tile; i += THREADS) {
    uint32_t count = counts[i];
    while (count == UINT32_MAX) count = counts[i];
    sum += count;
  }
  return block_reduce_sum(sum, shared);
}

/*
 * Does      writes the pairs by ascending first, and their number. Launch: x: a block per tile of the largest task's
 *           rows, y: tasks. A block takes the next tile, so that all earlier tiles have blocks that run or have ended.
 * Shared    34 words. Reads keys, packed descriptors. Writes pairs, pair_count; best is MATCH_NO_KEY where the row has
 *           no pair. Barriers: of the sums, and for the ticket.
 * Limits    any counts. Order: repeatable: a pair's position is the number of pairs before it.
 * Cost      2 KB read per pair, 16 bytes per row.
 */
extern "C" __global__ void __launch_bounds__(THREADS) match_confirm_kernel(const __grid_constant__ match_rows_args p) {
  __shared__ uint32_t shared[WARP_LANES], ticket, kept_rows;
  const cuda_match_task *t = task_of(&p, blockIdx.y);
  const uint32_t rows = t->first.count, tiles = max((rows + p.tile - 1u) / p.tile, 1u);
  const uint32_t lane = threadIdx.x % WARP_LANES, warp = threadIdx.x / WARP_LANES;
  if (blockIdx.x >= tiles) return;
  if (threadIdx.x == 0) {
    ticket = atomicAdd(&t->claims[ROWS_TICKET], 1u) + 1u;
    kept_rows = 0;
  }
  __syncthreads();
  const uint32_t tile = ticket, first = tile * p.tile, end = min(first + p.tile, rows);
  const uint32_t each = min(p.tile / (THREADS / WARP_LANES), (uint32_t)WARP_LANES);
  uint32_t kept = 0;
  for (uint32_t row = first + warp * each; row < end; row += THREADS / WARP_LANES * each)
    kept += (uint32_t)__popc((int)confirm_rows(&p, t, row, min(each, end - row)));
  if (lane == 0) atomicAdd(&kept_rows, kept);
  __syncthreads(); /* the tile's keys are final, and counted */
  if (threadIdx.x == 0) atomicExch(&t->claims[ROWS_TILES + tile], kept_rows);
  uint32_t at = pairs_before(t->claims + ROWS_TILES, tile, shared);
  for (uint32_t step = first; step < end; step += THREADS) {
    const uint32_t i = step + threadIdx.x;
    const match_two two = {i < end ? t->first_best[i] : MATCH_NO_KEY, i < end ? t->first_second[i] : MATCH_NO_KEY};
    const bool is_pair = two.best != MATCH_NO_KEY;
    uint32_t total;
    const uint32_t before = block_scan_exclusive(is_pair ? 1u : 0u, shared, &total);
    if (is_pair) {
      const match_nearest n = nearest_of((uint32_t)two.best, (uint32_t)(two.best >> 32), (uint32_t)(two.second >> 32));
      const match_pair pair = match_pair_of(i, &n);
      ((uint4 *)t->pairs)[at + before] =
          make_uint4(pair.first, pair.second, __float_as_uint(pair.distance), __float_as_uint(pair.next_distance));
    }
    at += total;
  }
  if (tile + 1u == tiles && threadIdx.x == 0) *t->pair_count = at;
}

MATCH_ROWS_KERNELS(LAUNCH_CHECK)
