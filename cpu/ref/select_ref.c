/* Reference of selection: finds the smallest key or the finest level that is kept, then keeps in order. */
#include "cpu/ref/stages_ref.h"

/* Responses and sigmas are not negative, so their bits order as they do. */
static uint32_t key_of(const void *list, uint32_t feature) {
  const select_args *args = list;
  const uint32_t k = args->features.keypoint[feature];
  return hs_float_bits(args->rule == SELECT_LARGEST ? args->keypoints.sigma[k] : args->keypoints.response[k]);
}

static uint32_t level_of(const void *list, uint32_t feature) {
  const select_args *args = list;
  const uint32_t k = args->features.keypoint[feature];
  return select_level_key(args->keypoints.octave[k], args->keypoints.level[k]);
}

static bool joins(const void *list, uint32_t feature) {
  const select_args *args = list;
  return select_is_same(&args->keypoints, args->features.keypoint[feature - 1], args->features.keypoint[feature]);
}

/* Keeps the last features, from `first` on; returns their number. */
static uint32_t keep_from(const select_args *args, uint32_t first, uint32_t n) {
  if (first == 0) return n;
  *args->kept_described = 0;
  for (uint32_t i = first; i < n; i++) select_move(args, i, i - first);
  return n - first;
}

stage_status select_ref(stage_queue *queue, const select_args *args) {
  (void)queue;
  const feature_list *f = &args->features;
  const uint32_t n = *f->count;
  *args->kept_described = args->described_count;
  if (n > f->capacity || n <= args->max_features) return STAGE_OK; /* an overflown list is counted to the end first */
  if (args->rule == SELECT_LEVELS) {
    *f->count = keep_from(args, select_first_level(args, n, args->max_features, level_of, joins), n);
    return STAGE_OK;
  }
  select_cut cut = select_find_cut(args, n, args->max_features, key_of);
  uint32_t kept = 0;
  *args->kept_described = 0;
  for (uint32_t i = 0; i < n; i++) {
    if (!select_keeps(&cut, key_of(args, i))) continue;
    select_move(args, i, kept++);
  }
  *f->count = kept;
  return STAGE_OK;
}
