/* Everything moves to its place, or the order is told. */
#include "pipeline/frame/tile_order.h"

#include <string.h>

#include "pipeline/frame/tile_sort.h"

enum { ITEM_BYTES_MAX = 4 * 128 };

/* What moves, and in which order. */
typedef struct order_move {
  const tile_order *order;
  tile_sort sort;
} order_move;

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

/* Features in order name their keypoints by the place that these had before. */
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
  const size_t room = l->keypoints.capacity;
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
                           .sorted = o->scratch + room,
                           .start = o->scratch + 2 * room,
                           .counters = o->scratch + 3 * room,
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
