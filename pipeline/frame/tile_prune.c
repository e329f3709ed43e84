/* Counts of keys by classes, and the cut they allow. */
#include "pipeline/frame/tile_prune.h"

#include <string.h>

#include "pipeline/context/options.h"

void tile_prune_begin(tile_prune *p, const hs_options *o) {
  memset(p, 0, sizeof *p);
  p->most = options_use_grid(o) ? 0 : (uint32_t)o->max_features;
  p->rule = (select_rule)o->selection;
}

/* As selection has it: the larger, the better. */
static uint32_t key_of(const tile_prune *p, const keypoint_list *k, uint32_t keypoint) {
  if (p->rule == SELECT_LEVELS) return select_level_key(k->octave[keypoint], k->level[keypoint]);
  return hs_float_bits(p->rule == SELECT_LARGEST ? k->sigma[keypoint] : k->response[keypoint]);
}

/* Whole levels are chosen by their keypoints, which count once. */
static void count(tile_prune *p, const keypoint_list *k, const feature_list *f, uint32_t first,
                  const plane_region *core) {
  for (uint32_t i = first; i < *f->count; i++) {
    const uint32_t n = f->keypoint[i];
    const bool again = p->rule == SELECT_LEVELS && i > first && f->keypoint[i - 1] == n;
    if (!again && region_has(core, k->column[n], k->row[n])) p->counts[key_of(p, k, n) >> PRUNE_SHIFT]++;
  }
}

/* The smallest key of the class with which there are more than are asked for. */
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
