/*
 * Matching with a guide: every pair of positions is tested, and only pairs that agree have their descriptors compared.
 */
#include "cuda/match/match_cuda.h"

#include "cuda/match/match_keys.cuh"
#include "cuda/runtime/launch.h"

enum {
  WARPS = GUIDED_WARPS,
  THREADS = WARPS * WARP_LANES,
  OWN = GUIDED_OWN,
  BLOCK_OWN = WARPS * OWN, /* features per block */
  OTHERS = THREADS,        /* positions of the other list per round */
  QUEUE = 2 * WARP_LANES   /* candidates of a feature that wait until they fill a warp */
};

typedef struct guided_shared {
  match_position others[OTHERS];
  uint32_t queue[WARPS][OWN][QUEUE];
} guided_shared;

/* Returns the key of one pair. A single thread computes it, in the contract's order. */
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

/* One of the warp's features: its waiting candidates, and its two nearest so far. */
typedef struct own_feature {
  match_position position;
  uint32_t index, waiting;
  match_two two;
} own_feature;

/* Appends the candidates that agree, of 32, to a feature's queue. The queue is emptied when it can fill a warp. */
template <match_type TYPE>
static __device__ __forceinline__ void take_candidates(const guided_args *p, uint32_t other, bool agrees,
                                                       uint32_t *queue, own_feature *own) {
  const uint32_t lane = threadIdx.x % WARP_LANES, agree = __ballot_sync(WARP_ALL, agrees);
  if (agree == 0) return;
  if (agrees) queue[own->waiting + (uint32_t)__popc(agree & ((1u << lane) - 1u))] = other;
  own->waiting += (uint32_t)__popc(agree);
  if (own->waiting < WARP_LANES) return;
  __syncwarp();
  match_two_take(&own->two, pair_key<TYPE>(p, own->index, queue[lane]));
  own->waiting -= WARP_LANES;
  const uint32_t left = queue[WARP_LANES + lane];
  __syncwarp();
  if (lane < own->waiting) queue[lane] = left;
}

/* Tests the positions in shared memory against all of the warp's features. */
template <match_type TYPE, match_guide_kind KIND, bool BACKWARD>
static __device__ __forceinline__ void take_positions(const guided_args *p, guided_shared *s, uint32_t first,
                                                      own_feature *own) {
  for (uint32_t i = threadIdx.x % WARP_LANES; i < OTHERS; i += WARP_LANES) {
    const match_position theirs = s->others[i];
    const bool there = first + i < p->other_count;
#pragma unroll
    for (int n = 0; n < OWN; n++) {
      const bool agrees = BACKWARD ? match_agrees(KIND, p->tolerance_squared, &theirs, &own[n].position)
                                   : match_agrees(KIND, p->tolerance_squared, &own[n].position, &theirs);
      take_candidates<TYPE>(p, first + i, agrees && there && own[n].index < p->own_count,
                            s->queue[threadIdx.x / WARP_LANES][n], &own[n]);
    }
  }
}

/* Empties a queue and writes the feature's two nearest. */
template <match_type TYPE>
static __device__ __forceinline__ void end_feature(const guided_args *p, const uint32_t *queue, own_feature *own) {
  const uint32_t lane = threadIdx.x % WARP_LANES;
  __syncwarp();
  if (own->index >= p->own_count) return;
  if (lane < own->waiting) match_two_take(&own->two, pair_key<TYPE>(p, own->index, queue[lane]));
  match_two_join_lanes(&own->two, 1, WARP_LANES);
  if (lane == 0) p->nearest[own->index] = match_nearest_of_keys(TYPE, own->two);
}

/*
 * Does      finds the two nearest among the candidates whose positions agree; match_ref with a guide. BACKWARD: the
 *           warps' features are of the guide's second image.
 * Launch    32 features per block, 4 for each of 8 warps.
 * Shared    guided_shared: 256 positions of the other list, and the queues.
 * Reads     places and descriptors (16-byte aligned) of both lists. Writes nearest.
 * Barriers  around each 256 places; within a warp, around its queues.
 * Limits    any counts, including 0.
 * Order     repeatable: keys are all different, so the order of the queue does not matter.
 * Cost      some 10 double operations per pair; 128 bytes (floats 512) read for each candidate.
 */
template <match_type TYPE, match_guide_kind KIND, bool BACKWARD>
static __device__ __forceinline__ void match_guided(const guided_args &p) {
  __shared__ guided_shared s;
  const uint32_t warp_own = blockIdx.x * BLOCK_OWN + threadIdx.x / WARP_LANES * OWN;
  own_feature own[OWN];
#pragma unroll
  for (int n = 0; n < OWN; n++) {
    own[n].index = warp_own + (uint32_t)n;
    own[n].position = p.own_positions[min(own[n].index, p.own_count - 1u)];
    own[n].waiting = 0;
    own[n].two = match_two_none();
  }
  for (uint32_t first = 0; first < p.other_count; first += OTHERS) {
    __syncthreads();
    s.others[threadIdx.x] = p.other_positions[min(first + threadIdx.x, p.other_count - 1u)];
    __syncthreads();
    take_positions<TYPE, KIND, BACKWARD>(&p, &s, first, own);
  }
#pragma unroll
  for (int n = 0; n < OWN; n++) end_feature<TYPE>(&p, s.queue[threadIdx.x / WARP_LANES][n], &own[n]);
}

#define GUIDED_KERNEL(name, TYPE, KIND, BACKWARD)                                                                      \
  extern "C" __global__ void __launch_bounds__(THREADS) name(const __grid_constant__ guided_args p) {                  \
    match_guided<TYPE, KIND, BACKWARD>(p);                                                                             \
  }
GUIDED_KERNEL(match_guided_u8_homography_kernel, MATCH_U8, MATCH_HOMOGRAPHY, false)
GUIDED_KERNEL(match_guided_u8_homography_back_kernel, MATCH_U8, MATCH_HOMOGRAPHY, true)
GUIDED_KERNEL(match_guided_u8_epipolar_kernel, MATCH_U8, MATCH_FUNDAMENTAL, false)
GUIDED_KERNEL(match_guided_u8_epipolar_back_kernel, MATCH_U8, MATCH_FUNDAMENTAL, true)
GUIDED_KERNEL(match_guided_f32_homography_kernel, MATCH_F32, MATCH_HOMOGRAPHY, false)
GUIDED_KERNEL(match_guided_f32_homography_back_kernel, MATCH_F32, MATCH_HOMOGRAPHY, true)
GUIDED_KERNEL(match_guided_f32_epipolar_kernel, MATCH_F32, MATCH_FUNDAMENTAL, false)
GUIDED_KERNEL(match_guided_f32_epipolar_back_kernel, MATCH_F32, MATCH_FUNDAMENTAL, true)

MATCH_GUIDED_KERNELS(LAUNCH_CHECK)
