/* Reference of refinement: follows each candidate to the sample where it settles, then reads the settled in order. */
#include <string.h>

#include "cpu/ref/stages_ref.h"

static size_t mask_row(const octave_view *o, int32_t words_per_row, int32_t level, int32_t y) {
  return ((size_t)(level - 1) * (size_t)o->height + (size_t)y) * (size_t)words_per_row;
}

stage_status refine_ref(stage_queue *queue, const refine_args *args) {
  (void)queue;
  const octave_view *o = &args->octave;
  const int32_t words = args->candidates.words_per_row;
  memset(args->settled.words, 0, sizeof(uint32_t) * (size_t)args->params.scales * (size_t)o->height * (size_t)words);
  for (int32_t level = 1; level <= args->params.scales; level++)
    for (int32_t y = 0; y < o->height; y++)
      for (int32_t x = 0; x < o->width; x++) {
        if (!(args->candidates.words[mask_row(o, words, level, y) + (size_t)(x >> 5)] >> (x & 31) & 1u)) continue;
        int32_t l = level, i = x, j = y;
        if (!refine_follow(o, &args->params, &l, &i, &j)) continue;
        args->settled.words[mask_row(o, words, l, j) + (size_t)(i >> 5)] |= 1u << (i & 31);
      }
  return STAGE_OK;
}

/* Appends one keypoint; past the capacity it is only counted. */
static void append_keypoint(const locate_args *args, const located *k, int32_t level, int32_t x, int32_t y) {
  const keypoint_list *list = &args->keypoints;
  const uint32_t n = (*list->count)++;
  if (n >= list->capacity) return;
  list->x[n] = k->x;
  list->y[n] = k->y;
  list->sigma[n] = k->sigma;
  list->response[n] = k->response;
  list->column[n] = x;
  list->row[n] = y;
  list->octave[n] = (int16_t)args->octave.octave;
  list->level[n] = (int16_t)level;
}

void locate_one_ref(const locate_args *args, int32_t level, int32_t x, int32_t y) {
  const located k = locate_sample(&args->octave, &args->params, level, x, y);
  if (place_kept(&args->filter, k.x, k.y)) append_keypoint(args, &k, level, x, y);
}

stage_status locate_ref(stage_queue *queue, const locate_args *args) {
  (void)queue;
  const octave_view *o = &args->octave;
  const int32_t words = args->settled.words_per_row;
  for (int32_t level = 1; level <= args->params.scales; level++)
    for (int32_t y = 0; y < o->height; y++)
      for (int32_t x = 0; x < o->width; x++) {
        if (!(args->settled.words[mask_row(o, words, level, y) + (size_t)(x >> 5)] >> (x & 31) & 1u)) continue;
        locate_one_ref(args, level, x, y);
      }
  return STAGE_OK;
}
