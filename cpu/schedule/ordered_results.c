/* Appends results in order (with one mutex and one condition variable), and sorts detected keypoints into the defined
 * order. */
#include <string.h>

#include "cpu/schedule/ordered_results.h"

bool ordered_start(ordered_list *list, const feature_list *features) {
  if (pthread_mutex_init(&list->lock, NULL) != 0) return false;
  if (pthread_cond_init(&list->moved, NULL) != 0) {
    pthread_mutex_destroy(&list->lock);
    return false;
  }
  list->features = *features;
  list->next = 0;
  atomic_init(&list->appended, 0);
  atomic_init(&list->appended_chunks, 0);
  for (int32_t i = 0; i < ORDERED_SLOTS; i++) list->slots[i].ready = false;
  return true;
}

void ordered_end(ordered_list *list) {
  pthread_cond_destroy(&list->moved);
  pthread_mutex_destroy(&list->lock);
}

/* Appends orientations; entries beyond the capacity are only counted. */
static void append_orientations(const feature_list *f, uint32_t first, int32_t items, const uint8_t *count,
                                const float *angle) {
  for (int32_t i = 0; i < items; i++)
    for (int32_t j = 0; j < count[i]; j++, angle++) {
      const uint32_t n = (*f->count)++;
      if (n >= f->capacity) continue;
      f->keypoint[n] = first + (uint32_t)i;
      f->orientation[n] = *angle;
    }
}

static void append_waiting(ordered_list *list) {
  for (;;) {
    ordered_slot *p = &list->slots[list->next % ORDERED_SLOTS];
    if (!p->ready) return;
    append_orientations(&list->features, p->first, p->items, p->count, p->angle);
    p->ready = false;
    list->next++;
  }
}

static void publish(ordered_list *list) {
  const feature_list *f = &list->features;
  atomic_store_explicit(&list->appended, *f->count < f->capacity ? *f->count : f->capacity, memory_order_release);
  atomic_store_explicit(&list->appended_chunks, list->next, memory_order_release);
}

static void leave_waiting(ordered_slot *p, const ordered_chunk *c) {
  p->first = c->first;
  p->items = c->items;
  p->angles = c->angles;
  memcpy(p->count, c->count, sizeof p->count);
  memcpy(p->angle, c->angle, sizeof(float) * (size_t)c->angles);
  p->ready = true;
}

void ordered_append(ordered_list *list, int32_t chunk, const ordered_chunk *c) {
  pthread_mutex_lock(&list->lock);
  const bool fits = c->angles <= ORDERED_SLOT_ANGLES;
  while (list->next != chunk && (!fits || chunk - list->next >= ORDERED_SLOTS))
    pthread_cond_wait(&list->moved, &list->lock);
  if (list->next == chunk) {
    append_orientations(&list->features, c->first, c->items, c->count, c->angle);
    list->next++;
    append_waiting(list);
    publish(list);
    pthread_cond_broadcast(&list->moved);
  } else {
    leave_waiting(&list->slots[chunk % ORDERED_SLOTS], c);
  }
  pthread_mutex_unlock(&list->lock);
}

/* Sorting of records: indices are sorted by two counting sorts, first by column, then by level and row. */

/* Returns the capacity for records. It suffices even if two of four candidates settle on samples that other candidates
 * have found before. */
static uint32_t records_of(uint32_t keypoints) {
  return keypoints < UINT32_MAX / 2 ? keypoints + keypoints / 2 + 64 : UINT32_MAX;
}

/* Returns the number of counters for the keys of both sorts: columns, and rows of all levels. */
static size_t counters_of(size_t width, size_t rows) { return (rows > width ? rows : width) + 1; }

size_t detect_work_bytes(const pyramid_geometry *geometry, int32_t scales, uint32_t keypoint_capacity) {
  size_t rows = 0;
  for (int32_t i = 0; i < geometry->octave_count; i++) rows += (size_t)geometry->height[i] * (size_t)scales;
  return (sizeof(keypoint_record) + 2 * sizeof(uint32_t)) * records_of(keypoint_capacity) +
         sizeof(uint32_t) * counters_of((size_t)geometry->width[0], rows);
}

void keypoint_records_begin(keypoint_records *found, const detect_args *args) {
  found->records = args->work;
  found->capacity = records_of(args->keypoints.capacity);
  found->scratch = (uint32_t *)(void *)(found->records + found->capacity);
  atomic_init(&found->count, 0);
}

void keypoint_records_add(keypoint_records *found, const keypoint_record *records, uint32_t count) {
  const uint32_t first = atomic_fetch_add_explicit(&found->count, count, memory_order_relaxed);
  if (first >= found->capacity) return;
  const uint32_t left = found->capacity - first;
  memcpy(found->records + first, records, sizeof *records * (count < left ? count : left));
}

/* State of a sort of records by a key below `keys`. */
typedef struct record_sort {
  const keypoint_record *records;
  uint32_t count;
  uint32_t *counters; /* [keys + 1] */
  size_t keys;
  bool by_row;
  size_t first_row[OCTAVES_MAX]; /* [octave]: the key of its first row */
  int32_t height[OCTAVES_MAX];
  int32_t x0, y0; /* upper left corner of the searched part */
} record_sort;

static size_t key_of(const record_sort *s, uint32_t index) {
  const keypoint_record *r = &s->records[index];
  if (!s->by_row) return (size_t)(r->column - s->x0);
  return s->first_row[r->octave_index] + (size_t)(r->level - 1) * (size_t)s->height[r->octave_index] +
         (size_t)(r->row - s->y0);
}

/* Writes to `to` the indices of `from` (null: 0, 1, ...) in the order of their keys; the sort is stable. */
static void sort_records(const record_sort *s, const uint32_t *from, uint32_t *to) {
  memset(s->counters, 0, sizeof *s->counters * (s->keys + 1));
  for (uint32_t i = 0; i < s->count; i++) s->counters[key_of(s, i) + 1]++;
  for (size_t k = 0; k < s->keys; k++) s->counters[k + 1] += s->counters[k];
  for (uint32_t i = 0; i < s->count; i++) {
    const uint32_t index = from ? from[i] : i;
    to[s->counters[key_of(s, index)]++] = index;
  }
}

static bool same_sample(const keypoint_record *a, const keypoint_record *b) {
  return a->octave_index == b->octave_index && a->level == b->level && a->row == b->row && a->column == b->column;
}

static void append_keypoint(const keypoint_list *list, const keypoint_record *r, int32_t octave) {
  const uint32_t n = (*list->count)++;
  if (n >= list->capacity) return;
  list->x[n] = r->at.x;
  list->y[n] = r->at.y;
  list->sigma[n] = r->at.sigma;
  list->response[n] = r->at.response;
  list->column[n] = r->column;
  list->row[n] = r->row;
  list->octave[n] = (int16_t)octave;
  list->level[n] = (int16_t)r->level;
}

/* Finds the numbers of columns and rows by which the records are sorted. */
static void measure(record_sort *sort, const detect_args *args, size_t *columns, size_t *rows) {
  const detect_part *part = args->part;
  *columns = (size_t)args->octaves[0].width;
  *rows = 0;
  for (int32_t i = 0; i < args->octave_count; i++) {
    sort->first_row[i] = *rows;
    sort->height[i] = args->octaves[i].height;
    if (part) sort->height[i] = part->follow.y1 - part->follow.y0;
    *rows += (size_t)sort->height[i] * (size_t)args->params.scales;
  }
  if (!part) return;
  *columns = (size_t)(part->follow.x1 - part->follow.x0);
  sort->x0 = part->follow.x0;
  sort->y0 = part->follow.y0;
}

void keypoint_records_end(const keypoint_records *found, const detect_args *args) {
  const keypoint_list *list = &args->keypoints;
  const uint32_t all = atomic_load_explicit(&found->count, memory_order_relaxed);
  const uint32_t count = all < found->capacity ? all : found->capacity;
  uint32_t *by_column = found->scratch, *in_order = by_column + found->capacity;
  record_sort sort = {.records = found->records, .count = count, .counters = in_order + found->capacity};
  size_t rows;
  measure(&sort, args, &sort.keys, &rows);
  sort_records(&sort, NULL, by_column);
  sort.by_row = true;
  sort.keys = rows;
  sort_records(&sort, by_column, in_order);
  const keypoint_record *before = NULL;
  for (uint32_t i = 0; i < count; i++) {
    const keypoint_record *r = &found->records[in_order[i]];
    if (!before || !same_sample(before, r)) append_keypoint(list, r, args->octaves[r->octave_index].octave);
    before = r;
  }
  /* If records did not fit, the list counts as too long, even if the missing records might be duplicates. */
  const uint32_t lost = all - count, most = UINT32_MAX - *list->count;
  *list->count += lost < most ? lost : most;
  if (lost > 0 && *list->count <= list->capacity) *list->count = list->capacity + 1;
}
