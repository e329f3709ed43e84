/* Two counting sorts, by column and then by level and row, of indices into the records. */
#include "cpu/keypoint_order.h"

#include <string.h>

/* Two candidates in four that settle on a sample another one has found leave room still. */
static uint32_t records_of(uint32_t keypoints) {
  return keypoints < UINT32_MAX / 2 ? keypoints + keypoints / 2 + 64 : UINT32_MAX;
}

/* Counters of a sort's keys. */
static size_t counters_of(int32_t width, int32_t height, int32_t scales) {
  const size_t rows = (size_t)height * (size_t)scales;
  return (rows > (size_t)width ? rows : (size_t)width) + 1;
}

size_t detect_work_bytes(int32_t width, int32_t height, int32_t scales, uint32_t keypoint_capacity) {
  const size_t records = records_of(keypoint_capacity);
  return (sizeof(keypoint_record) + 2 * sizeof(uint32_t)) * records +
         sizeof(uint32_t) * counters_of(width, height, scales);
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
  const uint32_t room = found->capacity - first;
  memcpy(found->records + first, records, sizeof *records * (count < room ? count : room));
}

/* to: the indices of from (null: 0, 1, ...) in the order of their records' keys, equal ones as they come. */
static void sort_by(const keypoint_record *records, uint32_t count, const uint32_t *from, uint32_t *to,
                    uint32_t *counters, size_t keys, int32_t height) {
  const bool by_row = from != NULL;
  memset(counters, 0, sizeof *counters * (keys + 1));
#define KEY(R) (by_row ? (size_t)((R)->level - 1) * (size_t)height + (size_t)(R)->row : (size_t)(R)->column)
  for (uint32_t i = 0; i < count; i++) counters[KEY(records + i) + 1]++;
  for (size_t k = 0; k < keys; k++) counters[k + 1] += counters[k];
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t index = from ? from[i] : i;
    to[counters[KEY(records + index)]++] = index;
  }
#undef KEY
}

static bool same_sample(const keypoint_record *a, const keypoint_record *b) {
  return a->level == b->level && a->row == b->row && a->column == b->column;
}

static void append(const keypoint_list *list, const keypoint_record *r, int32_t octave) {
  const uint32_t n = (*list->count)++;
  if (n >= list->capacity) return;
  list->x[n] = r->place.x;
  list->y[n] = r->place.y;
  list->sigma[n] = r->place.sigma;
  list->response[n] = r->place.response;
  list->column[n] = r->column;
  list->row[n] = r->row;
  list->octave[n] = (int16_t)octave;
  list->level[n] = (int16_t)r->level;
}

void keypoint_records_end(const keypoint_records *found, const detect_args *args) {
  const octave_view *o = &args->octave;
  const keypoint_list *list = &args->keypoints;
  const uint32_t all = atomic_load_explicit(&found->count, memory_order_relaxed);
  const uint32_t count = all < found->capacity ? all : found->capacity;
  uint32_t *by_column = found->scratch, *in_order = by_column + found->capacity, *counters = in_order + found->capacity;
  sort_by(found->records, count, NULL, by_column, counters, (size_t)o->width, 0);
  sort_by(found->records, count, by_column, in_order, counters, (size_t)o->height * (size_t)args->params.scales,
          o->height);
  const keypoint_record *before = NULL;
  for (uint32_t i = 0; i < count; i++) {
    const keypoint_record *r = &found->records[in_order[i]];
    if (!before || !same_sample(before, r)) append(list, r, o->octave);
    before = r;
  }
  /* Records without room make the list too long, whether they were duplicates or not. */
  const uint32_t lost = all - count, most = UINT32_MAX - *list->count;
  *list->count += lost < most ? lost : most;
  if (lost > 0 && *list->count <= list->capacity) *list->count = list->capacity + 1;
}
