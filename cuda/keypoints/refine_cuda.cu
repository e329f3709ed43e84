/*
 * Refinement kernels: following the candidates, the plain variant, and locating.
 */
#include "cuda/keypoints/keypoints_kernels.h"

#include "cuda/keypoints/work_items.cuh"
#include "cuda/prim/reductions.cuh"
#include "cuda/runtime/launch.h"

/* Follows a candidate of a tile to the sample where it settles. If it leaves the tile's reach, it is listed as
 * escaped. */
static __device__ __forceinline__ bool follow_in_tile(const cuda_frame_view &v, const octave_view *o, mask_site *s) {
  const cuda_tile_part &part = v.part;
  int32_t step = part.seed.level > 0 ? part.seed.step : 0;
  const refine_step outcome = refine_follow_in(o, &v.params, &part.follow, &step, &s->level, &s->x, &s->y);
  if (outcome != REFINE_MOVED) return outcome == REFINE_SETTLED;
  const uint32_t n = atomicAdd(part.escaped_count, 1u);
  if (n < part.escaped_capacity) part.escaped[n] = {s->level, s->x, s->y, step};
  return false;
}

/* Follows one candidate and marks where it settles. */
static __device__ __forceinline__ void follow_site(const cuda_frame_view &v, mask_site s) {
  const octave_view o = v.octaves[s.octave];
  const bool settled = v.part.tiled ? follow_in_tile(v, &o, &s) : refine_follow(&o, &v.params, &s.level, &s.x, &s.y);
  if (!settled) return;
  if (v.filtered) {
    const located k = locate_sample(&o, &v.params, s.level, s.x, s.y);
    if (!position_kept(&v.filter, k.x, k.y)) return;
  }
  const uint32_t word = mask_word_of(v, &s), bit = 1u << (s.x & 31);
  if (atomicOr(&v.settled_words[word], bit) & bit) return;
  atomicAdd(&v.scratch.settled_tiles[word / ((uint32_t)MASK_TILE_WORDS << cuda_mask_tile_shift(v.mask_words))], 1u);
}

/* Follows all candidates of one mask word. */
static __device__ __forceinline__ void follow_word(const cuda_frame_view &v, uint32_t word, uint32_t bits) {
  for (; bits != 0; bits &= bits - 1) {
    mask_site s;
    if (mask_site_of(v, word, (uint32_t)__ffs((int)bits) - 1u, &s)) follow_site(v, s);
  }
}

/* Follows one candidate. Not inlined, because only lists that overflow use it, and it would double the registers
 * for following. */
static __device__ __noinline__ void follow_unlisted(const cuda_frame_view &v, uint32_t word, uint32_t bit) {
  follow_word(v, word, bit);
}

/* Candidates of one block, as mask word * 32 + bit. The count may exceed the list. */
typedef struct follow_list {
  uint32_t count;
  uint64_t candidates[FOLLOW_LIST];
} follow_list;

/* Adds the set bits of four mask words, from `word` on, to a block's list. Candidates beyond the list's capacity
 * are followed here. */
static __device__ __forceinline__ void list_candidates(const cuda_frame_view &v, uint4 w, uint32_t word,
                                                       follow_list *s) {
  const uint32_t words[4] = {w.x, w.y, w.z, w.w};
  const uint32_t mine = (uint32_t)(__popc(w.x) + __popc(w.y) + __popc(w.z) + __popc(w.w));
  if (mine == 0) return;
  uint32_t at = atomicAdd(&s->count, mine);
#pragma unroll 1
  for (uint32_t j = 0; j < 4; j++)
    for (uint32_t bits = words[j]; bits != 0; bits &= bits - 1, at++)
      if (at < FOLLOW_LIST)
        s->candidates[at] = (uint64_t)(word + j) * 32u + (uint32_t)__ffs((int)bits) - 1u;
      else
        follow_unlisted(v, word + j, bits & (0u - bits));
}

/*
 * Does      compacts the candidates of a block's mask words into a list, follows them, one per thread, and sets the
 *           bits of the samples where they settle: refine_ref. settled_words must be zero before.
 * Launch    resident blocks of 64 threads. A block takes distant segments of 256 words, so that regions with
 *           many candidates are distributed.
 * Shared    8 KiB of list.
 * Reads     candidate_words, 16 bytes per thread; Gaussian levels (38 floats per step).
 * Writes    settled_words, settled_tiles, candidate_count by atomics.
 * Barriers  two: after the list is emptied, and after it is complete.
 * Limits    any density: candidates beyond the list's capacity are followed by the thread that finds them. mask_words a
 *           multiple of 4.
 * Order     repeatable: bits are set by OR, tiles count distinct bits. The list's order varies between runs.
 * Cost      4 bytes per mask word; 1 to 5 steps of 38 loads and about 100 operations per candidate: bound by the
 *           latency of the loads.
 */
template <bool GROUP> static __device__ __forceinline__ void follow_candidates(const cuda_frame_view &one) {
  const cuda_frame_view &v = CUDA_VIEW_OF_BLOCK(GROUP, one);
  __shared__ follow_list s;
  const uint64_t quads = v.mask_words / 4u, step = (uint64_t)gridDim.x * FOLLOW_THREADS;
  if (threadIdx.x == 0) s.count = 0;
  __syncthreads();
  for (uint64_t first = blockIdx.x * FOLLOW_THREADS + threadIdx.x; first < quads; first += FOLLOW_QUADS * step) {
    uint4 w[FOLLOW_QUADS]; /* all reads are in flight at once */
#pragma unroll
    for (uint32_t q = 0; q < FOLLOW_QUADS; q++) {
      const uint64_t quad = first + q * step;
      w[q] = quad < quads ? ((const uint4 *)v.candidate_words)[quad] : make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (uint32_t q = 0; q < FOLLOW_QUADS; q++) list_candidates(v, w[q], (uint32_t)(4u * (first + q * step)), &s);
  }
  __syncthreads();
  if (threadIdx.x == 0 && s.count > 0) atomicAdd(v.scratch.candidate_count, s.count);
  for (uint32_t i = threadIdx.x; i < min(s.count, (uint32_t)FOLLOW_LIST); i += FOLLOW_THREADS)
    follow_word(v, (uint32_t)(s.candidates[i] >> 5), 1u << (s.candidates[i] & 31u));
}

/*
 * Does      refine_ref without compaction: the thread that owns a mask word follows its candidates.
 * Launch    resident blocks of 128 threads, looping over the words. settled_words are zero before.
 * Shared    none.
 * Reads     candidate_words, Gaussian levels. Writes settled_words, settled_tiles, candidate_count by atomics.
 * Barriers  none.
 * Limits    none.
 * Order     repeatable, as refine_follow_kernel.
 * Cost      as refine_follow_kernel, but lanes that found no candidate are idle while others of their warp follow:
 *           the paper's comparison.
 */
extern "C" __global__ void __launch_bounds__(REFINE_THREADS)
    refine_plain_kernel(const __grid_constant__ cuda_frame_view v) {
  const uint32_t step = gridDim.x * REFINE_THREADS;
  uint32_t found = 0;
  for (uint64_t i = blockIdx.x * REFINE_THREADS + threadIdx.x; i < v.mask_words; i += step) {
    const uint32_t bits = v.candidate_words[i];
    found += (uint32_t)__popc(bits);
    follow_word(v, (uint32_t)i, bits);
  }
  if (found) atomicAdd(v.scratch.candidate_count, found);
}

/* Computes and stores keypoint n. */
static __device__ __forceinline__ void locate_store(const cuda_frame_view &v, const mask_site *s, uint32_t n) {
  const octave_view o = v.octaves[s->octave];
  const located k = locate_sample(&o, &v.params, s->level, s->x, s->y);
  v.keypoints.x[n] = k.x;
  v.keypoints.y[n] = k.y;
  v.keypoints.sigma[n] = k.sigma;
  v.keypoints.response[n] = k.response;
  v.keypoints.column[n] = s->x;
  v.keypoints.row[n] = s->y;
  v.keypoints.octave[n] = (int16_t)o.octave;
  v.keypoints.level[n] = (int16_t)s->level;
}

/* Returns vector q of the thread's settled words, in the chunk that begins at word `first`. */
static __device__ __forceinline__ uint4 settled_quad(const cuda_frame_view &v, uint32_t first, uint32_t q) {
  const uint32_t quad = first / 4u + threadIdx.x * LOCATE_QUADS + q;
  return quad < v.mask_words / 4u ? ((const uint4 *)v.settled_words)[quad] : make_uint4(0, 0, 0, 0);
}

/* Returns the number of set bits in the thread's words of the chunk. */
static __device__ __forceinline__ uint32_t count_bits(const cuda_frame_view &v, uint32_t first) {
  uint32_t bits = 0;
#pragma unroll
  for (uint32_t q = 0; q < LOCATE_QUADS; q++) {
    const uint4 w = settled_quad(v, first, q);
    bits += (uint32_t)(__popc(w.x) + __popc(w.y) + __popc(w.z) + __popc(w.w));
  }
  return bits;
}

/* Lists the thread's set bits with ranks from..from + LOCATE_LIST - 1 in the chunk; its first bit has rank `rank`.
 * An entry is the bit's offset in the chunk. The words are read again, from the L1, because few threads have set
 * bits. */
static __device__ __forceinline__ void list_bits(const cuda_frame_view &v, uint32_t first, uint32_t rank, uint32_t from,
                                                 uint16_t *s_list) {
#pragma unroll 1
  for (uint32_t q = 0; q < LOCATE_QUADS; q++) {
    const uint4 w = settled_quad(v, first, q);
    const uint32_t words[4] = {w.x, w.y, w.z, w.w}, at = (threadIdx.x * LOCATE_QUADS + q) * 128u;
#pragma unroll
    for (uint32_t j = 0; j < 4; j++)
      for (uint32_t bits = words[j]; bits != 0; bits &= bits - 1, rank++)
        if (rank - from < LOCATE_LIST) s_list[rank - from] = (uint16_t)(at + j * 32u + (uint32_t)__ffs((int)bits) - 1u);
  }
}

/*
 * Does      writes settled bits as keypoints in the order of words and bits, with all values: locate_ref (filtering
 *           was done before).
 * Launch    one block of 64 threads per tile of 1024 << shift mask words. A tile has only some 20 keypoints; blocks
 *           are so small that all are resident at once.
 * Shared    2 KiB of list, 32 words of scan.
 * Reads     settled_tiles, settled_words (64 bytes per thread), Gaussian levels.
 * Writes    keypoints; their count, by the last block.
 * Barriers  around the scan and the list of each chunk of 1024 words.
 * Limits    any density: longer lists are processed LOCATE_LIST entries at a time. Past the capacity nothing is
 *           written.
 * Order     repeatable: positions follow from counts.
 * Cost      4 bytes per mask word, 38 loads per keypoint: bound by latency.
 */
template <bool GROUP> static __device__ __forceinline__ void locate_tile(const cuda_frame_view &one) {
  const cuda_frame_view &v = CUDA_VIEW_OF_BLOCK(GROUP, one);
  __shared__ uint32_t s_scan[WARP_LANES];
  __shared__ uint16_t s_list[LOCATE_LIST];
  const uint32_t chunks = 1u << cuda_mask_tile_shift(v.mask_words);
  const uint32_t in_tile = v.scratch.settled_tiles[blockIdx.x];
  const bool last = blockIdx.x == gridDim.x - 1;
  if (in_tile == 0 && !last) return;
  uint32_t base = compact_before(v.scratch.settled_tiles, blockIdx.x, s_scan);
  if (last && threadIdx.x == 0) *v.keypoints.count = base + in_tile;
  for (uint32_t c = 0; c < chunks && in_tile != 0; c++) {
    const uint32_t first_word = (blockIdx.x * chunks + c) * MASK_TILE_WORDS;
    uint32_t total;
    const uint32_t mine = count_bits(v, first_word), rank = block_scan_exclusive(mine, s_scan, &total);
    for (uint32_t first = 0; first < total; first += LOCATE_LIST) {
      if (mine > 0) list_bits(v, first_word, rank, first, s_list);
      __syncthreads(); /* the list is complete */
      const uint32_t listed = total - first < LOCATE_LIST ? total - first : (uint32_t)LOCATE_LIST;
      for (uint32_t i = threadIdx.x; i < listed; i += LOCATE_THREADS) {
        const uint32_t at = s_list[i], n = base + first + i;
        mask_site s;
        if (n < v.keypoints.capacity && mask_site_of(v, first_word + at / 32u, at % 32u, &s)) locate_store(v, &s, n);
      }
      __syncthreads(); /* the list has been read */
    }
    base += total;
  }
}

#define FOLLOW_KERNEL(name, GROUP)                                                                                     \
  extern "C" __global__ void __launch_bounds__(FOLLOW_THREADS) name(const __grid_constant__ cuda_frame_view view) {    \
    follow_candidates<GROUP>(view);                                                                                    \
  }
FOLLOW_KERNEL(refine_follow_kernel, false)
FOLLOW_KERNEL(refine_follow_group_kernel, true)

#define LOCATE_KERNEL(name, GROUP)                                                                                     \
  extern "C" __global__ void __launch_bounds__(LOCATE_THREADS) name(const __grid_constant__ cuda_frame_view view) {    \
    locate_tile<GROUP>(view);                                                                                          \
  }
LOCATE_KERNEL(locate_tile_kernel, false)
LOCATE_KERNEL(locate_tile_group_kernel, true)

REFINE_KERNELS(LAUNCH_CHECK)
