/* A counting sort by level and row, each row then by its columns; chunks of rows, or of indices, are the threads'. */
#include "pipeline/frame/tile_sort.h"

#include "cpu/schedule/threads.h"

enum { NO_FEATURE = -1, ITEMS_A_CHUNK = 1 << 14 };

/* Numbers first..end-1 of `count`, which are the chunk's. */
typedef struct chunk_range {
  uint32_t first, end;
} chunk_range;

static chunk_range range_of(const tile_sort *s, uint32_t count, int32_t chunk) {
  const uint64_t chunks = (uint64_t)s->chunks;
  return (chunk_range){(uint32_t)(count * (uint64_t)chunk / chunks),
                       (uint32_t)(count * (uint64_t)(chunk + 1) / chunks)};
}

/* As many chunks as threads, fewer for short lists. */
static int32_t chunks_for(const tile_sort *s) {
  const uint32_t threads = (uint32_t)queue_threads(s->queue), wanted = s->keypoints / ITEMS_A_CHUNK + 1;
  const uint32_t chunks = threads < wanted ? threads : wanted;
  return chunks < TILE_SORT_CHUNKS ? (int32_t)chunks : TILE_SORT_CHUNKS;
}

/* before: counts of the chunks, from its second item on, become how many items those before each have. */
static void add_up(tile_sort *s) {
  s->before[0] = 0;
  for (int32_t i = 0; i < s->chunks; i++) s->before[i + 1] += s->before[i];
}

/* ------------------------------------------------- keypoints */

static int32_t row_of(const tile_sort *s, uint32_t keypoint) {
  return s->keypoint_list->row[s->first_keypoint + keypoint];
}

static int32_t column_of(const tile_sort *s, uint32_t keypoint) {
  return s->keypoint_list->column[s->first_keypoint + keypoint];
}

static int32_t level_of(const tile_sort *s, uint32_t keypoint) {
  return s->keypoint_list->level[s->first_keypoint + keypoint];
}

/* The counter of a row of a level. */
static uint32_t *counter(const tile_sort *s, int32_t level, uint32_t row) {
  return s->counters + (size_t)(level - 1) * (size_t)s->height + row;
}

/* Counts the keypoints of a chunk's rows. */
static void count_rows(void *job, int32_t chunk, int32_t worker) {
  const tile_sort *s = job;
  const chunk_range rows = range_of(s, (uint32_t)s->height, chunk);
  (void)worker;
  for (int32_t level = 1; level <= s->scales; level++)
    for (uint32_t row = rows.first; row < rows.end; row++) *counter(s, level, row) = 0;
  for (uint32_t i = 0; i < s->keypoints; i++) {
    const uint32_t row = (uint32_t)row_of(s, i);
    if (row - rows.first < rows.end - rows.first) ++*counter(s, level_of(s, i), row);
  }
}

/* Counters become the places of each row's first keypoint. */
static void place_counters(const tile_sort *s) {
  const size_t count = (size_t)s->height * (size_t)s->scales;
  uint32_t sum = 0;
  for (size_t i = 0; i < count; i++) {
    const uint32_t items = s->counters[i];
    s->counters[i] = sum;
    sum += items;
  }
}

/* Puts spare[first..end-1], rows of one level, in the order of their columns by insertion: tiles come from left to right,
   each in order, so only escaped candidates and what lies between two tiles have to move. */
static void sort_by_column(const tile_sort *s, uint32_t first, uint32_t end) {
  uint32_t *to = s->spare;
  for (uint32_t i = first + 1; i < end; i++) {
    const uint32_t n = to[i];
    const int32_t row = row_of(s, n), column = column_of(s, n);
    uint32_t at = i;
    for (; at > first && row_of(s, to[at - 1]) == row && column_of(s, to[at - 1]) > column; at--) to[at] = to[at - 1];
    to[at] = n;
  }
}

/* Places the keypoints of a chunk's rows. */
static void sort_rows(void *job, int32_t chunk, int32_t worker) {
  const tile_sort *s = job;
  const chunk_range rows = range_of(s, (uint32_t)s->height, chunk);
  uint32_t first[LEVELS_MAX];
  (void)worker;
  if (rows.first == rows.end) return;
  for (int32_t level = 1; level <= s->scales; level++) first[level] = *counter(s, level, rows.first);
  for (uint32_t i = 0; i < s->keypoints; i++) {
    const uint32_t row = (uint32_t)row_of(s, i);
    if (row - rows.first < rows.end - rows.first) s->spare[(*counter(s, level_of(s, i), row))++] = i;
  }
  /* Each counter is the place behind its row now. */
  for (int32_t level = 1; level <= s->scales; level++)
    sort_by_column(s, first[level], *counter(s, level, rows.end - 1));
}

static bool is_double(const tile_sort *s, uint32_t i) {
  if (i == 0) return false;
  const uint32_t a = s->spare[i - 1], b = s->spare[i];
  return column_of(s, a) == column_of(s, b) && row_of(s, a) == row_of(s, b) && level_of(s, a) == level_of(s, b);
}

static void count_doubles(void *job, int32_t chunk, int32_t worker) {
  tile_sort *s = job;
  const chunk_range r = range_of(s, s->keypoints, chunk);
  uint32_t doubles = 0;
  (void)worker;
  for (uint32_t i = r.first; i < r.end; i++) doubles += is_double(s, i);
  s->before[chunk + 1] = doubles;
}

static void part_doubles(void *job, int32_t chunk, int32_t worker) {
  const tile_sort *s = job;
  const chunk_range r = range_of(s, s->keypoints, chunk);
  uint32_t doubles = s->before[chunk];
  (void)worker;
  for (uint32_t i = r.first; i < r.end; i++)
    if (is_double(s, i))
      s->sorted[s->keypoints - ++doubles] = s->spare[i];
    else
      s->sorted[i - doubles] = s->spare[i];
}

void tile_sort_keypoints(tile_sort *s) {
  s->chunks = chunks_for(s);
  queue_run(s->queue, s->chunks, count_rows, s);
  place_counters(s);
  queue_run(s->queue, s->chunks, sort_rows, s);
  queue_run(s->queue, s->chunks, count_doubles, s);
  add_up(s);
  queue_run(s->queue, s->chunks, part_doubles, s);
  s->once = s->keypoints - s->before[s->chunks];
}

/* ------------------------------------------------- features */

/* The keypoint that a feature is of. */
static uint32_t keypoint_of(const tile_sort *s, uint32_t feature) {
  return s->feature_list->keypoint[s->first_feature + feature] - s->first_keypoint;
}

static void clear_starts(void *job, int32_t chunk, int32_t worker) {
  const tile_sort *s = job;
  const chunk_range r = range_of(s, s->keypoints, chunk);
  (void)worker;
  for (uint32_t i = r.first; i < r.end; i++) s->start[i] = (uint32_t)NO_FEATURE;
}

/* A keypoint's features follow one another. */
static void find_starts(void *job, int32_t chunk, int32_t worker) {
  const tile_sort *s = job;
  const chunk_range r = range_of(s, s->features, chunk);
  (void)worker;
  for (uint32_t i = r.first; i < r.end; i++)
    if (i == 0 || keypoint_of(s, i - 1) != keypoint_of(s, i)) s->start[keypoint_of(s, i)] = i;
}

/* How many features keypoint k has. */
static uint32_t features_of(const tile_sort *s, uint32_t k) {
  uint32_t end = s->start[k];
  if (end == (uint32_t)NO_FEATURE) return 0;
  while (end < s->features && keypoint_of(s, end) == k) end++;
  return end - s->start[k];
}

static void count_features(void *job, int32_t chunk, int32_t worker) {
  tile_sort *s = job;
  const chunk_range r = range_of(s, s->once, chunk);
  uint32_t count = 0;
  (void)worker;
  for (uint32_t i = r.first; i < r.end; i++) count += features_of(s, s->sorted[i]);
  s->before[chunk + 1] = count;
}

/* The features of sorted keypoints first..end-1 from place `at` on. Returns the place behind them. */
static uint32_t list_features(const tile_sort *s, chunk_range r, uint32_t at) {
  for (uint32_t i = r.first; i < r.end; i++) {
    const uint32_t k = s->sorted[i], count = features_of(s, k);
    for (uint32_t j = 0; j < count; j++) s->source[at++] = s->start[k] + j;
  }
  return at;
}

static void order_features(void *job, int32_t chunk, int32_t worker) {
  const tile_sort *s = job;
  (void)worker;
  (void)list_features(s, range_of(s, s->once, chunk), s->before[chunk]);
}

uint32_t tile_sort_features(tile_sort *s) {
  queue_run(s->queue, s->chunks, clear_starts, s);
  queue_run(s->queue, s->chunks, find_starts, s);
  queue_run(s->queue, s->chunks, count_features, s);
  add_up(s);
  queue_run(s->queue, s->chunks, order_features, s);
  const uint32_t kept = s->before[s->chunks];
  (void)list_features(s, (chunk_range){s->once, s->keypoints}, kept);
  return kept;
}
