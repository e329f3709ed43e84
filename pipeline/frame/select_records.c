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

uint32_t select_records(hs_keypoint *keypoints, void *descriptors, size_t descriptor_bytes, uint32_t count,
                        uint32_t most, hs_selection selection) {
  const select_key key = selection == HS_SELECT_SCALE ? sigma_key : response_key;
  unsigned char *bytes = descriptors;
  uint32_t kept = 0;
  if (count <= most) return count;
  select_cut cut = select_find_cut(keypoints, count, most, key);
  for (uint32_t i = 0; i < count; i++) {
    if (!select_keeps(&cut, key(keypoints, i))) continue;
    keypoints[kept] = keypoints[i];
    if (descriptor_bytes > 0) memmove(bytes + kept * descriptor_bytes, bytes + i * descriptor_bytes, descriptor_bytes);
    kept++;
  }
  return kept;
}
