/*
 * Shared parts of the kernels over a JPEG's coded data: the layout of the decoder's memory, a block's subsequences, and
 * their bits in shared memory.
 */
#ifndef HARTSIFT_CUDA_JPEG_JPEG_SCAN_CUH
#define HARTSIFT_CUDA_JPEG_JPEG_SCAN_CUH

#include "cuda/jpeg/jpeg_cuda.h"

/* One subsequence. */
struct subsequence {
  bool is_there, starts, ends; /* it exists; it is the first, the last of its restart interval */
  uint32_t number, interval;
  uint32_t first, end; /* its bits: [first, end) */
};

/* Finds the interval of a subsequence. */
static __device__ __forceinline__ uint32_t interval_of(const scan_view &v, uint32_t number) {
  uint32_t low = 0, high = v.shape.intervals; /* the interval is at or after low, and before high */
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    if (__ldg(&v.intervals[middle].first_subsequence) <= number)
      low = middle;
    else
      high = middle;
  }
  return low;
}

static __device__ __forceinline__ subsequence subsequence_of(const scan_view &v, uint32_t number) {
  subsequence s = {};
  s.is_there = number < v.shape.subsequences;
  s.number = s.is_there ? number : v.shape.subsequences - 1;
  s.interval = interval_of(v, s.number);
  const jpeg_interval at = v.intervals[s.interval], next = v.intervals[s.interval + 1];
  s.first = at.first_bit + (s.number - at.first_subsequence) * JPEG_SUBSEQUENCE_BITS;
  s.end = min(s.first + JPEG_SUBSEQUENCE_BITS, next.first_bit);
  s.starts = s.number == at.first_subsequence;
  s.ends = s.number + 1 == next.first_subsequence;
  return s;
}

/* Returns the subsequence after `before`, which must not be the last one. */
static __device__ __forceinline__ subsequence subsequence_behind(const scan_view &v, const subsequence &before) {
  subsequence s = before;
  s.number++;
  s.starts = before.ends;
  s.interval += before.ends ? 1 : 0;
  const jpeg_interval next = v.intervals[s.interval + 1];
  s.first = s.starts ? v.intervals[s.interval].first_bit : before.first + JPEG_SUBSEQUENCE_BITS;
  s.end = min(s.first + JPEG_SUBSEQUENCE_BITS, next.first_bit);
  s.ends = s.number + 1 == next.first_subsequence;
  return s;
}

/* A tile's coded words. A gap follows the words of each thread's subsequences: threads at the same position in
 * their words then read from different banks. */
struct staged_bits {
  const uint32_t *words;
  uint32_t first, gap; /* number of the first word; number of words between gaps */
};

static __device__ __forceinline__ uint32_t staged_word(const staged_bits &bits, uint32_t number) {
  const uint32_t at = number - bits.first;
  return bits.words[at + at / bits.gap];
}

/* Copies the words and tables of a tile to shared memory. All threads of the block must call; a barrier must
 * follow. begin: the tile's first subsequence. s_tables: the first part of jpeg_tables. */
template <uint32_t THREADS, uint32_t EACH>
static __device__ __forceinline__ staged_bits stage_tile(const scan_view &v, uint32_t begin, jpeg_huffman *s_tables,
                                                         uint32_t *s_words) {
  constexpr uint32_t WORDS = JPEG_STAGED_WORDS(THREADS, EACH);
  const staged_bits bits = {s_words, subsequence_of(v, begin).first / 32, JPEG_STAGED_GAP(EACH)};
  for (uint32_t i = threadIdx.x; i < WORDS && bits.first + i < v.shape.data_words; i += THREADS)
    s_words[i + i / bits.gap] = __byte_perm(__ldg(v.data + bits.first + i), 0u, 0x0123);
  const uint4 *from = reinterpret_cast<const uint4 *>(v.tables);
  uint4 *to = reinterpret_cast<uint4 *>(s_tables);
  for (uint32_t i = threadIdx.x; i < sizeof(jpeg_huffman) * JPEG_HUFFMAN_TABLES / sizeof(uint4); i += THREADS)
    to[i] = __ldg(from + i);
  return bits;
}

/* The next 32 bits at a state that advances. Two words are in registers, and the word after them is loaded early,
 * so that no step waits for it. */
struct bit_window {
  uint32_t high, low, next, word;
};

static __device__ __forceinline__ bit_window window_at(const staged_bits &bits, uint32_t bit) {
  const uint32_t word = bit / 32;
  const bit_window w = {staged_word(bits, word), staged_word(bits, word + 1), staged_word(bits, word + 2), word};
  return w;
}

/* Moves the window; a step takes fewer than 32 bits. There is no branch, because lanes would diverge at nearly
 * every step. */
static __device__ __forceinline__ uint32_t window_move(const staged_bits &bits, bit_window &w, uint32_t bit) {
  const bool moves = bit / 32 != w.word;
  w.word = bit / 32;
  w.high = moves ? w.low : w.high;
  w.low = moves ? w.next : w.low;
  w.next = staged_word(bits, w.word + 2);
  return __funnelshift_l(w.low, w.high, bit % 32);
}

static __device__ __forceinline__ bool is_luma(const jpeg_shape &shape, uint32_t block) {
  return block < (uint32_t)(shape.luma_across * shape.luma_down);
}

#endif
