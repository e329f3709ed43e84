/* Reference of selection: finds the smallest key that is kept, bit by bit, then keeps in order. */
#include "cpu/stages_ref.h"

/* Responses and sigmas are not negative, so their bits order as they do. */
static uint32_t key_of(const void *list, uint32_t feature) {
  const select_args *args = list;
  const uint32_t k = args->features.keypoint[feature];
  return hs_float_bits(args->by_scale ? args->keypoints.sigma[k] : args->keypoints.response[k]);
}

stage_status select_ref(stage_queue *queue, const select_args *args) {
  (void)queue;
  const feature_list *f = &args->features;
  const uint32_t n = *f->count;
  *args->kept_described = args->described_count;
  if (n > f->capacity || n <= args->max_features) return STAGE_OK; /* an overflown list is counted to the end first */
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
