/* Sorts the keypoints and features of an octave's tiles, and prunes features that cannot be selected. */
#include "pipeline/frame/tiles.h"

#include <string.h>

#include "cpu/schedule/threads.h"
#include "pipeline/context/options.h"

enum { ITEM_BYTES_MAX = 4 * 128 };

/* Lists to reorder, and their new order. */
typedef struct order_move {
  const tile_order *order;
  tile_sort sort;
} order_move;

/* Copies item `from` of an array to item `to`. */
static void copy_item(void *array, size_t bytes, uint32_t from, uint32_t to) {
  memcpy((unsigned char *)array + to * bytes, (unsigned char *)array + from * bytes, bytes);
}

/* Reorders an array: item i becomes the previous item source[i]. Marks finished items in the highest bit of source[i]
   (`moved`), and clears the marks at the end. */
static void gather(void *array, size_t bytes, uint32_t *source, uint32_t count) {
  const uint32_t moved = 1u << 31;
  unsigned char first[ITEM_BYTES_MAX];
  for (uint32_t i = 0; i < count; i++) {
    if (source[i] & moved) continue;
    memcpy(first, (unsigned char *)array + i * bytes, bytes);
    uint32_t at = i;
    for (; source[at] != i; at = source[at] & ~moved) {
      copy_item(array, bytes, source[at], at);
      source[at] |= moved;
    }
    memcpy((unsigned char *)array + at * bytes, first, bytes);
    source[at] |= moved;
  }
  for (uint32_t i = 0; i < count; i++) source[i] &= ~moved;
}

static void gather_keypoints(const order_move *w) {
  const keypoint_list *k = &w->order->lists->keypoints;
  const uint32_t first = w->order->first_keypoint;
  gather(k->x + first, sizeof *k->x, w->sort.sorted, w->sort.keypoints);
  gather(k->y + first, sizeof *k->y, w->sort.sorted, w->sort.keypoints);
  gather(k->sigma + first, sizeof *k->sigma, w->sort.sorted, w->sort.keypoints);
  gather(k->response + first, sizeof *k->response, w->sort.sorted, w->sort.keypoints);
  gather(k->column + first, sizeof *k->column, w->sort.sorted, w->sort.keypoints);
  gather(k->row + first, sizeof *k->row, w->sort.sorted, w->sort.keypoints);
  gather(k->octave + first, sizeof *k->octave, w->sort.sorted, w->sort.keypoints);
  gather(k->level + first, sizeof *k->level, w->sort.sorted, w->sort.keypoints);
  affine_shape *shapes = w->order->lists->shapes;
  if (shapes) gather(shapes + first, sizeof *shapes, w->sort.sorted, w->sort.keypoints);
}

static void gather_features(const order_move *w) {
  const tile_order *o = w->order;
  const feature_list *f = &o->lists->features;
  gather(f->keypoint + o->first_feature, sizeof *f->keypoint, w->sort.source, w->sort.features);
  gather(f->orientation + o->first_feature, sizeof *f->orientation, w->sort.source, w->sort.features);
  if (o->descriptor_bytes > 0)
    gather(o->lists->descriptors + o->first_feature * o->descriptor_bytes, o->descriptor_bytes, w->sort.source,
           w->sort.features);
}

/* Renumbers the keypoints of the ordered features, whose indices are still those before the sort. */
static void renumber(const order_move *w, uint32_t once) {
  const tile_order *o = w->order;
  const feature_list *f = &o->lists->features;
  uint32_t at = o->first_feature;
  for (uint32_t i = 0; i < once; i++)
    for (; at < *f->count && f->keypoint[at] == o->first_keypoint + w->sort.sorted[i]; at++)
      f->keypoint[at] = o->first_keypoint + i;
}

void tile_order_octave(tile_order *o) {
  const workspace *l = o->lists;
  const size_t capacity = l->keypoints.capacity;
  order_move w = {.order = o,
                  .sort = {.keypoint_list = &l->keypoints,
                           .feature_list = &l->features,
                           .queue = o->queue,
                           .first_keypoint = o->first_keypoint,
                           .first_feature = o->first_feature,
                           .keypoints = *l->keypoints.count - o->first_keypoint,
                           .features = *l->features.count - o->first_feature,
                           .height = o->height,
                           .scales = o->scales,
                           .spare = o->scratch,
                           .sorted = o->scratch + capacity,
                           .start = o->scratch + 2 * capacity,
                           .counters = o->scratch + 3 * capacity,
                           .source = o->features + (o->in_place ? 0 : o->ordered)}};
  tile_sort_keypoints(&w.sort);
  const uint32_t kept = tile_sort_features(&w.sort);
  if (!o->in_place) {
    for (uint32_t i = 0; i < kept; i++) w.sort.source[i] += o->first_feature;
    o->ordered += kept;
    o->keypoints += w.sort.once;
    return;
  }
  gather_features(&w);
  *l->features.count = o->first_feature + kept;
  renumber(&w, w.sort.once);
  gather_keypoints(&w);
  *l->keypoints.count = o->first_keypoint + w.sort.once;
}

/* ------------------------------------------------- sort */

/* Sorts by level and row with a counting sort, then each row by column with an insertion sort. Threads take chunks of
   rows, or of indices. */

enum { NO_FEATURE = -1, ITEMS_A_CHUNK = 1 << 14 };

/* Range first..end-1 of a chunk's items. */
typedef struct chunk_range {
  uint32_t first, end;
} chunk_range;

static chunk_range range_of(const tile_sort *s, uint32_t count, int32_t chunk) {
  const uint64_t chunks = (uint64_t)s->chunks;
  return (chunk_range){(uint32_t)(count * (uint64_t)chunk / chunks),
                       (uint32_t)(count * (uint64_t)(chunk + 1) / chunks)};
}

/* Returns the number of chunks: one per thread, fewer for short lists. */
static int32_t chunks_for(const tile_sort *s) {
  const uint32_t threads = (uint32_t)queue_threads(s->queue), wanted = s->keypoints / ITEMS_A_CHUNK + 1;
  const uint32_t chunks = threads < wanted ? threads : wanted;
  return chunks < TILE_SORT_CHUNKS ? (int32_t)chunks : TILE_SORT_CHUNKS;
}

/* Turns the chunks' counts, in before[1..], into running sums: before[i] is the number of items in the chunks before
   chunk i. */
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

/* Returns the counter of a row of a level. */
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

/* Turns each row's counter into the position of its first keypoint. */
static void set_counters(const tile_sort *s) {
  const size_t count = (size_t)s->height * (size_t)s->scales;
  uint32_t sum = 0;
  for (size_t i = 0; i < count; i++) {
    const uint32_t items = s->counters[i];
    s->counters[i] = sum;
    sum += items;
  }
}

/* Sorts spare[first..end-1], rows of one level, by column with insertion. Tiles are processed from left to right, and
   each is in order, so only escaped candidates and keypoints between two tiles move. */
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

/* Moves the keypoints of a chunk's rows to their positions. */
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
  /* each counter is now the position after its row */
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
  set_counters(s);
  queue_run(s->queue, s->chunks, sort_rows, s);
  queue_run(s->queue, s->chunks, count_doubles, s);
  add_up(s);
  queue_run(s->queue, s->chunks, part_doubles, s);
  s->once = s->keypoints - s->before[s->chunks];
}

/* ------------------------------------------------- features */

/* Returns the keypoint of a feature. */
static uint32_t keypoint_of(const tile_sort *s, uint32_t feature) {
  return s->feature_list->keypoint[s->first_feature + feature] - s->first_keypoint;
}

static void clear_starts(void *job, int32_t chunk, int32_t worker) {
  const tile_sort *s = job;
  const chunk_range r = range_of(s, s->keypoints, chunk);
  (void)worker;
  for (uint32_t i = r.first; i < r.end; i++) s->start[i] = (uint32_t)NO_FEATURE;
}

/* Finds each keypoint's first feature; a keypoint's features follow one another. */
static void find_starts(void *job, int32_t chunk, int32_t worker) {
  const tile_sort *s = job;
  const chunk_range r = range_of(s, s->features, chunk);
  (void)worker;
  for (uint32_t i = r.first; i < r.end; i++)
    if (i == 0 || keypoint_of(s, i - 1) != keypoint_of(s, i)) s->start[keypoint_of(s, i)] = i;
}

/* Returns the number of features of keypoint k. */
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

/* Writes the features of the sorted keypoints first..end-1 from position `at` on. Returns the position after them. */
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

/* ------------------------------------------------- pruning: counts of keys by class, and the cut that they allow */

void tile_prune_begin(tile_prune *p, const hs_options *o) {
  memset(p, 0, sizeof *p);
  p->most = options_use_grid(o) ? 0 : (uint32_t)o->max_features;
  p->rule = (select_rule)o->selection;
}

/* Returns the key by which selection ranks a feature; a larger key is better. */
static uint32_t key_of(const tile_prune *p, const keypoint_list *k, uint32_t keypoint) {
  if (p->rule == SELECT_LEVELS) return select_level_key(k->octave[keypoint], k->level[keypoint]);
  return hs_float_bits(p->rule == SELECT_LARGEST ? k->sigma[keypoint] : k->response[keypoint]);
}

/* Counts features by the class of their key. Selection by levels counts keypoints, so each keypoint counts only
   once. */
static void count(tile_prune *p, const keypoint_list *k, const feature_list *f, uint32_t first,
                  const plane_region *core) {
  for (uint32_t i = first; i < *f->count; i++) {
    const uint32_t n = f->keypoint[i];
    const bool again = p->rule == SELECT_LEVELS && i > first && f->keypoint[i - 1] == n;
    if (!again && region_has(core, k->column[n], k->row[n])) p->counts[key_of(p, k, n) >> PRUNE_SHIFT]++;
  }
}

/* Returns the smallest key that selection may keep: the lower end of the class at which the count from the top exceeds
   max_features. */
static uint32_t least_of(const tile_prune *p) {
  uint64_t sum = 0;
  for (uint32_t i = PRUNE_CLASSES; i > 0; i--) {
    sum += p->counts[i - 1];
    if (sum > p->most) return (i - 1) << PRUNE_SHIFT;
  }
  return 0;
}

void tile_prune_features(tile_prune *p, const workspace *w, size_t descriptor_bytes, uint32_t first,
                         const plane_region *core) {
  const keypoint_list *k = &w->keypoints;
  const feature_list *f = &w->features;
  uint32_t kept = first;
  if (p->most == 0) return;
  if (core) {
    count(p, k, f, first, core);
    p->least = least_of(p);
  }
  for (uint32_t i = first; i < *f->count; i++) {
    if (key_of(p, k, f->keypoint[i]) < p->least) continue;
    if (descriptor_bytes > 0 && kept < i)
      memcpy(w->descriptors + kept * descriptor_bytes, w->descriptors + i * descriptor_bytes, descriptor_bytes);
    f->keypoint[kept] = f->keypoint[i];
    f->orientation[kept++] = f->orientation[i];
  }
  *f->count = kept;
}
