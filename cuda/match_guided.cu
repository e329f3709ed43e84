/*
 * Matching with a guide: every pair of places is tested, and only pairs that agree have their descriptors compared.
 */
#include "cuda/match_kernels.h"

#include "cuda/launch.cuh"
#include "cuda/match_keys.cuh"

enum {
  WARPS = 8,
  THREADS = WARPS * WARP_LANES,
  OWN = 4,                 /* features of a warp */
  BLOCK_OWN = WARPS * OWN, /* and of a block */
  OTHERS = THREADS,        /* places of the other list at a time */
  QUEUE = 2 * WARP_LANES   /* candidates that wait until they fill a warp */
};

typedef struct guided_args {
  const uint32_t *own, *other; /* words of the descriptors */
  const match_place *own_places, *other_places;
  uint32_t own_count, other_count;
  match_guide_kind guide;
  double tolerance_squared;
  match_nearest *nearest;
} guided_args;

typedef struct guided_shared {
  match_place others[OTHERS];
  match_place own[BLOCK_OWN];
  uint32_t queue[WARPS][OWN][QUEUE];
} guided_shared;

/* The key of one pair; a thread's own work, in the contract's order. */
template <match_type TYPE> static __device__ uint64_t pair_key(const guided_args *p, uint32_t own, uint32_t other) {
  enum { QUADS = (TYPE == MATCH_F32 ? MATCH_LENGTH : MATCH_LENGTH / 4) / 4 };
  const uint4 *a = (const uint4 *)p->own + (size_t)own * QUADS, *b = (const uint4 *)p->other + (size_t)other * QUADS;
  float sum = 0.0f;
  uint32_t products = 0, norms = 0;
#pragma unroll 4
  for (int i = 0; i < QUADS; i++) {
    const uint4 x = a[i], y = b[i];
    const uint32_t u[4] = {x.x, x.y, x.z, x.w}, v[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
    for (int k = 0; k < 4; k++) {
      if (TYPE == MATCH_F32) {
        const float t = __uint_as_float(u[k]) - __uint_as_float(v[k]);
        sum = hs_fmaf(t, t, sum);
      } else {
        products = __dp4a(u[k], v[k], products);
        norms = __dp4a(u[k], u[k], __dp4a(v[k], v[k], norms));
      }
    }
  }
  return TYPE == MATCH_F32 ? match_key_float(sum, other) : match_key(norms - 2u * products, other);
}

/* Tests the places in shared memory against one of the warp's features; those that agree wait in its queue, and leave
   it a warp at a time. Returns how many wait. */
template <match_type TYPE, bool BACKWARD>
static __device__ __forceinline__ uint32_t take_places(const guided_args *p, guided_shared *s, uint32_t first,
                                                       uint32_t own, int n, uint32_t waiting, match_two *t) {
  const uint32_t lane = threadIdx.x % WARP_LANES, warp = threadIdx.x / WARP_LANES;
  const match_place mine = s->own[warp * OWN + (uint32_t)n];
  uint32_t *queue = s->queue[warp][n];
  for (uint32_t i = lane; i < OTHERS; i += WARP_LANES) {
    const match_place theirs = s->others[i];
    const bool agrees = first + i < p->other_count && own < p->own_count &&
                        (BACKWARD ? match_agrees(p->guide, p->tolerance_squared, &theirs, &mine)
                                  : match_agrees(p->guide, p->tolerance_squared, &mine, &theirs));
    const uint32_t agree = __ballot_sync(WARP_ALL, agrees);
    if (agrees) queue[waiting + (uint32_t)__popc(agree & ((1u << lane) - 1u))] = first + i;
    waiting += (uint32_t)__popc(agree);
    if (waiting < WARP_LANES) continue;
    __syncwarp();
    match_two_take(t, pair_key<TYPE>(p, own, queue[lane]));
    waiting -= WARP_LANES;
    const uint32_t left = queue[WARP_LANES + lane];
    __syncwarp();
    if (lane < waiting) queue[lane] = left;
  }
  return waiting;
}

/* Empties a queue and writes the feature's two nearest. */
template <match_type TYPE>
static __device__ __forceinline__ void end_feature(const guided_args *p, const uint32_t *queue, uint32_t own,
                                                   uint32_t waiting, match_two t) {
  const uint32_t lane = threadIdx.x % WARP_LANES;
  __syncwarp();
  if (own >= p->own_count) return;
  if (lane < waiting) match_two_take(&t, pair_key<TYPE>(p, own, queue[lane]));
  match_two_join_lanes(&t, 1, WARP_LANES);
  if (lane == 0) p->nearest[own] = match_nearest_of_keys(TYPE, t);
}

/*
 * Does      the two nearest among the candidates whose places agree; match_ref with a guide. BACKWARD: the own list is
 *           the second one of the guide.
 * Launch    32 features a block, 4 for each of 8 warps.
 * Shared    guided_shared: 256 places of the other list, the block's own, and what waits.
 * Reads     places and descriptors (16-byte aligned) of both lists. Writes nearest.
 * Barriers  around each 256 places; within a warp around its queues.
 * Limits    any counts, none included.
 * Order     repeatable: keys are different, so the order of the queue does not count.
 * Cost      some 10 double operations a pair; 128 bytes (floats 512) read for each candidate.
 */
template <match_type TYPE, bool BACKWARD>
__global__ void __launch_bounds__(THREADS) match_guided_kernel(const __grid_constant__ guided_args p) {
  __shared__ guided_shared s;
  const uint32_t block = blockIdx.x * BLOCK_OWN, own = block + threadIdx.x / WARP_LANES * OWN;
  match_two t[OWN];
  uint32_t waiting[OWN];
#pragma unroll
  for (int n = 0; n < OWN; n++) {
    t[n] = match_two_none();
    waiting[n] = 0;
  }
  if (threadIdx.x < BLOCK_OWN) s.own[threadIdx.x] = p.own_places[min(block + threadIdx.x, p.own_count - 1u)];
  for (uint32_t first = 0; first < p.other_count; first += OTHERS) {
    __syncthreads();
    s.others[threadIdx.x] = p.other_places[min(first + threadIdx.x, p.other_count - 1u)];
    __syncthreads();
#pragma unroll
    for (int n = 0; n < OWN; n++)
      waiting[n] = take_places<TYPE, BACKWARD>(&p, &s, first, own + (uint32_t)n, n, waiting[n], &t[n]);
  }
#pragma unroll
  for (int n = 0; n < OWN; n++)
    end_feature<TYPE>(&p, s.queue[threadIdx.x / WARP_LANES][n], own + (uint32_t)n, waiting[n], t[n]);
}

stage_status cuda_match_guided_launch(const match_args *args, bool backward, cuda_stream stream) {
  const match_side *own = backward ? &args->second : &args->first, *other = backward ? &args->first : &args->second;
  const guided_args p = {(const uint32_t *)own->descriptors,
                         (const uint32_t *)other->descriptors,
                         own->places,
                         other->places,
                         own->count,
                         other->count,
                         args->guide,
                         args->tolerance_squared,
                         backward ? args->backward : args->forward};
  assert(args->guide != MATCH_UNGUIDED && own->count > 0 && own->count <= CUDA_MATCH_COUNT_MAX);
  assert(other->count <= CUDA_MATCH_COUNT_MAX && p.nearest);
  const unsigned blocks = (own->count + BLOCK_OWN - 1u) / BLOCK_OWN;
  if (args->type == MATCH_F32 && backward)
    match_guided_kernel<MATCH_F32, true><<<blocks, THREADS, 0, stream>>>(p);
  else if (args->type == MATCH_F32)
    match_guided_kernel<MATCH_F32, false><<<blocks, THREADS, 0, stream>>>(p);
  else if (backward)
    match_guided_kernel<MATCH_U8, true><<<blocks, THREADS, 0, stream>>>(p);
  else
    match_guided_kernel<MATCH_U8, false><<<blocks, THREADS, 0, stream>>>(p);
  return launch_status();
}
