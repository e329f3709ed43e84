/* Reference of the extremum search: a sample's 26 neighbours one after another, until one rules it out. */
#include <string.h>

#include "cpu/ref/stages_ref.h"

bool is_extremum_ref(const octave_view *o, const sift_params *p, int32_t level, int32_t x, int32_t y) {
  const float centre = dog_at(o, level, x, y);
  if (!(hs_fabsf(centre) > p->candidate_above)) return false;
  bool largest = centre > 0.0f, smallest = centre < 0.0f;
  for (int32_t s = -1; s <= 1; s++)
    for (int32_t j = -1; j <= 1; j++)
      for (int32_t i = -1; i <= 1; i++) {
        if (s == 0 && j == 0 && i == 0) continue;
        const float neighbour = dog_at(o, level + s, x + i, y + j);
        largest = largest && (centre > neighbour || (p->extremum_ties && centre == neighbour));
        smallest = smallest && (centre < neighbour || (p->extremum_ties && centre == neighbour));
        if (!largest && !smallest) return false;
      }
  return true;
}

stage_status extrema_ref(stage_queue *queue, const extrema_args *args) {
  (void)queue;
  const octave_view *o = &args->octave;
  const int32_t border = args->params.border, words = args->candidates.words_per_row;
  uint64_t count = 0;
  assert(border >= 1 && words == mask_words_per_row(o->width));
  memset(args->candidates.words, 0, sizeof(uint32_t) * (size_t)args->params.scales * (size_t)o->height * (size_t)words);
  for (int32_t level = 1; level <= args->params.scales; level++)
    for (int32_t y = border; y < o->height - border; y++) {
      uint32_t *row = args->candidates.words + ((size_t)(level - 1) * (size_t)o->height + (size_t)y) * (size_t)words;
      for (int32_t x = border; x < o->width - border; x++) {
        if (!is_extremum_ref(o, &args->params, level, x, y)) continue;
        row[x >> 5] |= 1u << (x & 31);
        count++;
      }
    }
  if (args->count) *args->count = count;
  return STAGE_OK;
}
