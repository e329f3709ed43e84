/* Reference of selection: finds the smallest key that is kept, bit by bit, then keeps in order. */
#include <string.h>

#include "cpu/stages_ref.h"

/* Responses and sigmas are not negative, so their bits order as they do. */
static uint32_t key_of(const select_args *args, uint32_t feature) {
  const uint32_t k = args->features.keypoint[feature];
  return hs_float_bits(args->by_scale ? args->keypoints.sigma[k] : args->keypoints.response[k]);
}

static uint32_t count_at_least(const select_args *args, uint32_t n, uint32_t key) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n; i++) count += key_of(args, i) >= key;
  return count;
}

stage_status select_ref(stage_queue *queue, const select_args *args) {
  (void)queue;
  const feature_list *f = &args->features;
  const uint32_t n = *f->count;
  *args->kept_described = args->described_count;
  if (n > f->capacity || n <= args->max_features) return STAGE_OK; /* an overflown list is counted to the end first */
  uint32_t threshold = 0; /* the largest key that at least max_features features reach */
  for (uint32_t bit = 1u << 31; bit != 0; bit >>= 1)
    if (count_at_least(args, n, threshold | bit) >= args->max_features) threshold |= bit;
  uint32_t ties = args->max_features - (threshold == UINT32_MAX ? 0 : count_at_least(args, n, threshold + 1));
  uint32_t kept = 0;
  *args->kept_described = 0;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t key = key_of(args, i);
    if (key < threshold || (key == threshold && ties == 0)) continue;
    if (key == threshold) ties--;
    if (i < args->described_count)
      memmove(args->descriptors + kept * args->descriptor_bytes, args->descriptors + i * args->descriptor_bytes,
              args->descriptor_bytes);
    f->keypoint[kept] = f->keypoint[i];
    f->orientation[kept] = f->orientation[i];
    kept++;
    if (i < args->described_count) *args->kept_described = kept;
  }
  *f->count = kept;
  return STAGE_OK;
}
