/*
 * Refinement on several threads. Masks are nearly empty: they are scanned word by word, several at a time.
 *
 * A chunk is a run of mask words. Candidates may settle in another chunk's words, so these bits are set atomically. Keypoints
 * are counted chunk by chunk first, so that every chunk then knows where in the list its own begin.
 */
#include <string.h>

#include "cpu/keypoints_threads.h"
#include "cpu/threads.h"

enum {
  SCAN_WORDS = 8,     /* looked at together */
  CHUNK_WORDS = 1024, /* of a chunk, or more where that would make too many */
  CHUNKS_MAX = 512
};

/* A mask's words in chunks of whole SCAN_WORDS. */
typedef struct mask_chunks {
  size_t words, chunk_words;
  int32_t count;
} mask_chunks;

static mask_chunks chunks_of(const octave_view *o, const mask_view *mask, int32_t scales) {
  mask_chunks c = {.words = (size_t)scales * (size_t)o->height * (size_t)mask->words_per_row,
                   .chunk_words = CHUNK_WORDS};
  while (c.words / c.chunk_words >= CHUNKS_MAX) c.chunk_words *= 2;
  c.count = (int32_t)((c.words + c.chunk_words - 1) / c.chunk_words);
  return c;
}

/* Where the words of a chunk begin and end. */
static size_t chunk_first(const mask_chunks *c, int32_t chunk) { return (size_t)chunk * c->chunk_words; }
static size_t chunk_end(const mask_chunks *c, int32_t chunk) {
  const size_t first = chunk_first(c, chunk);
  return c->words - first < c->chunk_words ? c->words : first + c->chunk_words;
}

/* The next word from `at` on that is not 0; `end` when there is none. */
static inline size_t next_word(const uint32_t *words, size_t at, size_t end) {
  for (;;) {
    if (end - at >= SCAN_WORDS) {
      uint64_t part[SCAN_WORDS / 2];
      memcpy(part, words + at, sizeof part);
      if ((part[0] | part[1] | part[2] | part[3]) == 0) {
        at += SCAN_WORDS;
        continue;
      }
    }
    while (at < end && words[at] == 0) at++;
    return at;
  }
}

/* The sample of bit 0 of a word. */
typedef struct word_place {
  int32_t level, x, y;
} word_place;

static word_place place_of(const octave_view *o, int32_t words_per_row, size_t word) {
  const size_t row = word / (size_t)words_per_row;
  const int32_t x = (int32_t)(word % (size_t)words_per_row) * 32;
  return (word_place){(int32_t)(row / (size_t)o->height) + 1, x, (int32_t)(row % (size_t)o->height)};
}

/* ------------------------------------------------- candidates -> settled */

typedef struct refine_job {
  const refine_args *args;
  mask_chunks chunks;
} refine_job;

static void clear_chunk(void *argument, int32_t chunk, int32_t worker) {
  const refine_job *job = argument;
  const size_t first = chunk_first(&job->chunks, chunk);
  (void)worker;
  memset(job->args->settled.words + first, 0, sizeof(uint32_t) * (chunk_end(&job->chunks, chunk) - first));
}

static void follow_word(const refine_args *args, size_t word) {
  const octave_view *o = &args->octave;
  const int32_t words_per_row = args->candidates.words_per_row;
  const word_place place = place_of(o, words_per_row, word);
  for (uint32_t bits = args->candidates.words[word]; bits != 0; bits &= bits - 1) {
    int32_t level = place.level, x = place.x + __builtin_ctz(bits), y = place.y;
    if (!refine_follow(o, &args->params, &level, &x, &y)) continue;
    const size_t row = (size_t)(level - 1) * (size_t)o->height + (size_t)y;
    uint32_t *to = args->settled.words + row * (size_t)words_per_row + (size_t)(x >> 5);
    __atomic_fetch_or(to, 1u << (x & 31), __ATOMIC_RELAXED);
  }
}

static void refine_chunk(void *argument, int32_t chunk, int32_t worker) {
  const refine_job *job = argument;
  const uint32_t *words = job->args->candidates.words;
  const size_t end = chunk_end(&job->chunks, chunk);
  (void)worker;
  for (size_t at = next_word(words, chunk_first(&job->chunks, chunk), end); at < end;
       at = next_word(words, at + 1, end))
    follow_word(job->args, at);
}

stage_status refine_threads(stage_queue *queue, const refine_args *args) {
  refine_job job = {.args = args, .chunks = chunks_of(&args->octave, &args->candidates, args->params.scales)};
  assert(args->settled.words_per_row == args->candidates.words_per_row);
  queue_run(queue, job.chunks.count, clear_chunk, &job);
  queue_run(queue, job.chunks.count, refine_chunk, &job);
  return STAGE_OK;
}

/* ------------------------------------------------- settled -> keypoints */

typedef struct locate_job {
  const locate_args *args;
  mask_chunks chunks;
  bool filtered;              /* a keypoint's place may drop it */
  uint32_t first[CHUNKS_MAX]; /* keypoints of a chunk; then where its first goes */
} locate_job;

static bool drops_nothing(const place_filter *f) {
  return !f->mask && f->x0 == INT32_MIN && f->y0 == INT32_MIN && f->x1 == INT32_MAX && f->y1 == INT32_MAX;
}

static void write_keypoint(const locate_args *args, uint32_t n, const located *k, const word_place *sample) {
  const keypoint_list *list = &args->keypoints;
  if (n >= list->capacity) return;
  list->x[n] = k->x;
  list->y[n] = k->y;
  list->sigma[n] = k->sigma;
  list->response[n] = k->response;
  list->column[n] = sample->x;
  list->row[n] = sample->y;
  list->octave[n] = (int16_t)args->octave.octave;
  list->level[n] = (int16_t)sample->level;
}

/* The keypoints of one word, written from `n` on unless write is false. Returns how many. */
static uint32_t locate_word(const locate_args *args, size_t word, bool write, uint32_t n) {
  const octave_view *o = &args->octave;
  word_place sample = place_of(o, args->settled.words_per_row, word);
  const int32_t x = sample.x;
  uint32_t count = 0;
  for (uint32_t bits = args->settled.words[word]; bits != 0; bits &= bits - 1) {
    sample.x = x + __builtin_ctz(bits);
    const located k = locate_sample(o, &args->params, sample.level, sample.x, sample.y);
    if (!place_kept(&args->filter, k.x, k.y)) continue;
    if (write) write_keypoint(args, n + count, &k, &sample);
    count++;
  }
  return count;
}

static void count_chunk(void *argument, int32_t chunk, int32_t worker) {
  locate_job *job = argument;
  const uint32_t *words = job->args->settled.words;
  const size_t end = chunk_end(&job->chunks, chunk);
  uint32_t count = 0;
  (void)worker;
  for (size_t at = next_word(words, chunk_first(&job->chunks, chunk), end); at < end;
       at = next_word(words, at + 1, end))
    count += job->filtered ? locate_word(job->args, at, false, 0) : (uint32_t)__builtin_popcount(words[at]);
  job->first[chunk] = count;
}

static void locate_chunk(void *argument, int32_t chunk, int32_t worker) {
  locate_job *job = argument;
  const uint32_t *words = job->args->settled.words;
  const size_t end = chunk_end(&job->chunks, chunk);
  uint32_t n = job->first[chunk];
  (void)worker;
  for (size_t at = next_word(words, chunk_first(&job->chunks, chunk), end); at < end;
       at = next_word(words, at + 1, end))
    n += locate_word(job->args, at, true, n);
}

stage_status locate_threads(stage_queue *queue, const locate_args *args) {
  locate_job job;
  job.args = args;
  job.chunks = chunks_of(&args->octave, &args->settled, args->params.scales);
  job.filtered = !drops_nothing(&args->filter);
  queue_run(queue, job.chunks.count, count_chunk, &job);
  uint32_t next = *args->keypoints.count;
  for (int32_t i = 0; i < job.chunks.count; i++) {
    const uint32_t count = job.first[i];
    job.first[i] = next;
    next += count;
  }
  queue_run(queue, job.chunks.count, locate_chunk, &job);
  *args->keypoints.count = next;
  return STAGE_OK;
}
