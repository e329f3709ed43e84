/* A counting sort of indices by level and row, which are put in the order of their columns; then everything moves to its
   place, or the order is told. */
#include "pipeline/frame/tile_order.h"

#include <string.h>

enum { ITEM_BYTES_MAX = 4 * 128, NO_FEATURE = -1 };

/* The work of one call; numbers are those of the lists, less first_keypoint or first_feature. */
typedef struct order_work {
  const tile_order *order;
  uint32_t keypoints, features;
  uint32_t *spare, *sorted, *start, *source, *counters;
} order_work;

static size_t row_of(const order_work *w, uint32_t keypoint) {
  const keypoint_list *k = &w->order->lists->keypoints;
  const uint32_t n = w->order->first_keypoint + keypoint;
  return (size_t)(k->level[n] - 1) * (size_t)w->order->height + (size_t)k->row[n];
}

static int32_t column_of(const order_work *w, uint32_t keypoint) {
  return w->order->lists->keypoints.column[w->order->first_keypoint + keypoint];
}

/* to: the keypoints by their level and row, equal ones as they come. */
static void sort_by_row(const order_work *w, uint32_t *to) {
  const size_t keys = (size_t)w->order->height * (size_t)w->order->scales;
  memset(w->counters, 0, sizeof *w->counters * (keys + 1));
  for (uint32_t i = 0; i < w->keypoints; i++) w->counters[row_of(w, i) + 1]++;
  for (size_t k = 0; k < keys; k++) w->counters[k + 1] += w->counters[k];
  for (uint32_t i = 0; i < w->keypoints; i++) to[w->counters[row_of(w, i)]++] = i;
}

/* Puts each row in the order of its columns, by insertion: tiles come from left to right, each in order, so only strays and
   what lies between two tiles has to move. */
static void sort_rows_by_column(const order_work *w, uint32_t *sorted) {
  for (uint32_t i = 1; i < w->keypoints; i++) {
    const uint32_t n = sorted[i];
    const size_t row = row_of(w, n);
    const int32_t column = column_of(w, n);
    uint32_t at = i;
    for (; at > 0 && column_of(w, sorted[at - 1]) > column && row_of(w, sorted[at - 1]) == row; at--)
      sorted[at] = sorted[at - 1];
    sorted[at] = n;
  }
}

static bool same_sample(const order_work *w, uint32_t a, uint32_t b) {
  return column_of(w, a) == column_of(w, b) && row_of(w, a) == row_of(w, b);
}

/* Sorted keypoints, with those that stand there a second time behind all others. Returns how many others there are. */
static uint32_t sort_keypoints(const order_work *w) {
  uint32_t *with_doubles = w->spare;
  uint32_t once = 0, twice = w->keypoints;
  sort_by_row(w, with_doubles);
  sort_rows_by_column(w, with_doubles);
  for (uint32_t i = 0; i < w->keypoints; i++) {
    const uint32_t n = with_doubles[i];
    if (once > 0 && same_sample(w, w->sorted[once - 1], n))
      w->sorted[--twice] = n;
    else
      w->sorted[once++] = n;
  }
  return once;
}

/* start: each keypoint's first feature. Its features follow one another. */
static void find_features(const order_work *w) {
  const feature_list *f = &w->order->lists->features;
  for (uint32_t i = 0; i < w->keypoints; i++) w->start[i] = (uint32_t)NO_FEATURE;
  for (uint32_t i = w->features; i > 0; i--)
    w->start[f->keypoint[w->order->first_feature + i - 1] - w->order->first_keypoint] = i - 1;
}

/* source: the features in the order of the sorted keypoints. Returns how many those of the first `once` have. */
static uint32_t order_features(const order_work *w, uint32_t once) {
  const tile_order *o = w->order;
  const feature_list *f = &o->lists->features;
  uint32_t count = 0, kept = 0;
  for (uint32_t i = 0; i < w->keypoints; i++) {
    const uint32_t k = w->sorted[i];
    if (w->start[k] != (uint32_t)NO_FEATURE)
      for (uint32_t j = w->start[k]; j < w->features && f->keypoint[o->first_feature + j] == o->first_keypoint + k; j++)
        w->source[count++] = j;
    if (i < once) kept = count;
  }
  return kept;
}

/* ------------------------------------------------- moving */

/* Item `from` of an array becomes item `to`. */
static void copy_item(void *array, size_t bytes, uint32_t from, uint32_t to) {
  memcpy((unsigned char *)array + to * bytes, (unsigned char *)array + from * bytes, bytes);
}

/* Item i becomes what item source[i] was. source comes back as it was: `moved` marks, in its highest bit, what is done. */
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

static void gather_keypoints(const order_work *w) {
  const keypoint_list *k = &w->order->lists->keypoints;
  const uint32_t first = w->order->first_keypoint;
  gather(k->x + first, sizeof *k->x, w->sorted, w->keypoints);
  gather(k->y + first, sizeof *k->y, w->sorted, w->keypoints);
  gather(k->sigma + first, sizeof *k->sigma, w->sorted, w->keypoints);
  gather(k->response + first, sizeof *k->response, w->sorted, w->keypoints);
  gather(k->column + first, sizeof *k->column, w->sorted, w->keypoints);
  gather(k->row + first, sizeof *k->row, w->sorted, w->keypoints);
  gather(k->octave + first, sizeof *k->octave, w->sorted, w->keypoints);
  gather(k->level + first, sizeof *k->level, w->sorted, w->keypoints);
}

static void gather_features(const order_work *w) {
  const tile_order *o = w->order;
  const feature_list *f = &o->lists->features;
  gather(f->keypoint + o->first_feature, sizeof *f->keypoint, w->source, w->features);
  gather(f->orientation + o->first_feature, sizeof *f->orientation, w->source, w->features);
  if (o->descriptor_bytes > 0)
    gather(o->lists->descriptors + o->first_feature * o->descriptor_bytes, o->descriptor_bytes, w->source, w->features);
}

/* Features in order name their keypoints by the place that these had before. */
static void renumber(const order_work *w, uint32_t once) {
  const tile_order *o = w->order;
  const feature_list *f = &o->lists->features;
  uint32_t at = o->first_feature;
  for (uint32_t i = 0; i < once; i++)
    for (; at < *f->count && f->keypoint[at] == o->first_keypoint + w->sorted[i]; at++)
      f->keypoint[at] = o->first_keypoint + i;
}

void tile_order_octave(tile_order *o) {
  const workspace *l = o->lists;
  order_work w = {.order = o,
                  .keypoints = *l->keypoints.count - o->first_keypoint,
                  .features = *l->features.count - o->first_feature};
  w.spare = o->scratch;
  w.sorted = w.spare + l->keypoints.capacity;
  w.start = w.sorted + l->keypoints.capacity;
  w.source = o->features + (o->in_place ? 0 : o->ordered);
  w.counters = w.start + l->keypoints.capacity;
  const uint32_t once = sort_keypoints(&w);
  find_features(&w);
  const uint32_t kept = order_features(&w, once);
  if (!o->in_place) {
    for (uint32_t i = 0; i < kept; i++) w.source[i] += o->first_feature;
    o->ordered += kept;
    o->keypoints += once;
    return;
  }
  gather_features(&w);
  *l->features.count = o->first_feature + kept;
  renumber(&w, once);
  gather_keypoints(&w);
  *l->keypoints.count = o->first_keypoint + once;
}
