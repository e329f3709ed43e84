/* Selection among finished features. */
#include "pipeline/frame/select_records.h"

#include <string.h>

#include "stages/portable.h"
#include "stages/select.h"

/* Responses and sigmas are not negative, so their bits order as they do. */
static uint32_t response_key(const void *list, uint32_t i) {
  return hs_float_bits(((const hs_keypoint *)list)[i].response);
}

static uint32_t sigma_key(const void *list, uint32_t i) { return hs_float_bits(((const hs_keypoint *)list)[i].sigma); }

static uint32_t level_key(const void *list, uint32_t i) {
  const hs_keypoint *k = &((const hs_keypoint *)list)[i];
  return select_level_key(k->octave, k->level);
}

/* But for the orientation the records are the same. */
static bool joins(const void *list, uint32_t i) {
  const hs_keypoint *b = &((const hs_keypoint *)list)[i];
  hs_keypoint a = b[-1];
  a.orientation = b->orientation;
  return memcmp(&a, b, sizeof a) == 0;
}

uint32_t select_records(const feature_records *r, uint32_t count, uint32_t most, hs_selection selection) {
  const select_key key = selection == HS_SELECT_SCALE ? sigma_key : response_key;
  uint32_t kept = 0;
  if (count <= most) return count;
  if (selection == HS_SELECT_LEVELS) {
    const uint32_t first = select_first_level(r->keypoints, count, most, level_key, joins);
    for (uint32_t i = first; i < count; i++) feature_records_move(r, i, i - first);
    return count - first;
  }
  select_cut cut = select_find_cut(r->keypoints, count, most, key);
  for (uint32_t i = 0; i < count; i++) {
    if (!select_keeps(&cut, key(r->keypoints, i))) continue;
    feature_records_move(r, i, kept++);
  }
  return kept;
}
