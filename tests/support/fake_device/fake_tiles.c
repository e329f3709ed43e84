/* Fake launchers of the keypoint stages for a tile of a picture. */
#include <string.h>

#include "cpu/ref/stages_ref.h"
#include "cuda/keypoints/keypoints_cuda.h"
#include "tests/support/fake_device/fake_tiles.h"

/* Returns the mask word that contains a sample of the tile. */
static uint32_t *word_at(const cuda_frame_view *v, uint32_t *words, int32_t level, int32_t x, int32_t y) {
  const plane_region *r = &v->part.masked;
  const size_t row = (size_t)(level - 1) * (size_t)(r->y1 - r->y0) + (size_t)(y - r->y0);
  return words + row * (size_t)mask_words_per_row(r->x1 - r->x0) + (size_t)((x - r->x0) >> 5);
}

static uint32_t bit_at(const cuda_frame_view *v, int32_t x) { return 1u << ((x - v->part.masked.x0) & 31); }

static stage_status keep_candidates(const void *args) {
  const cuda_frame_view *v = args;
  const plane_region *r = &v->part.masked;
  const escaped_candidate *seed = &v->part.seed;
  if (seed->level > 0) {
    memset(v->candidate_words, 0, sizeof(uint32_t) * v->mask_words);
    *word_at(v, v->candidate_words, seed->level, seed->x, seed->y) |= bit_at(v, seed->x);
    return STAGE_OK;
  }
  for (int32_t level = 1; level <= v->params.scales; level++)
    for (int32_t y = r->y0; y < r->y1; y++)
      for (int32_t x = r->x0; x < r->x1; x++)
        if (!region_has(&v->part.search, x, y)) *word_at(v, v->candidate_words, level, x, y) &= ~bit_at(v, x);
  const size_t words = cuda_part_words(&v->part, v->params.scales);
  memset(v->candidate_words + words, 0, sizeof(uint32_t) * (v->mask_words - words));
  return STAGE_OK;
}

stage_status cuda_tile_candidates_launch(const cuda_frame_view *view, cuda_stream stream) {
  return fake_submit(stream, keep_candidates, view, sizeof *view);
}

/* The lists of a tile, and the lists to which they are appended. */
typedef struct lists_step {
  cuda_frame_view view;
  cuda_tile_lists lists;
} lists_step;

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

static stage_status copy_lists(const void *args) {
  const lists_step *step = args;
  const cuda_frame_view *v = &step->view;
  const cuda_tile_lists *to = &step->lists;
  const keypoint_list *from = &v->keypoints;
  const cuda_tile_counts counts = {*v->scratch.candidate_count, *from->count, *v->features.count,
                                   *v->part.escaped_count};
  *to->counts = counts;
  for (uint32_t i = 0; i < least(counts.keypoints, from->capacity); i++) {
    to->keypoints.x[i] = from->x[i];
    to->keypoints.y[i] = from->y[i];
    to->keypoints.sigma[i] = from->sigma[i];
    to->keypoints.response[i] = from->response[i];
    to->keypoints.column[i] = from->column[i];
    to->keypoints.row[i] = from->row[i];
    to->keypoints.octave[i] = from->octave[i];
    to->keypoints.level[i] = from->level[i];
    if (v->shapes) to->shapes[i] = v->shapes[i];
  }
  for (uint32_t i = 0; i < least(counts.features, v->features.capacity); i++) {
    to->features.keypoint[i] = v->features.keypoint[i];
    to->features.orientation[i] = v->features.orientation[i];
  }
  for (uint32_t i = 0; i < least(counts.escaped, v->part.escaped_capacity); i++) to->escaped[i] = v->part.escaped[i];
  return STAGE_OK;
}

stage_status cuda_tile_lists_launch(const cuda_frame_view *view, const cuda_tile_lists *lists, cuda_stream stream) {
  const lists_step step = {*view, *lists};
  return fake_submit(stream, copy_lists, &step, sizeof step);
}

/* Adds a candidate to the keypoints where it settles, or to the escaped candidates. */
static void follow(const cuda_frame_view *v, escaped_candidate at) {
  const refine_step outcome =
      refine_follow_in(v->octaves, &v->params, &v->part.follow, &at.step, &at.level, &at.x, &at.y);
  if (outcome == REFINE_SETTLED) *word_at(v, v->settled_words, at.level, at.x, at.y) |= bit_at(v, at.x);
  if (outcome != REFINE_MOVED) return;
  const uint32_t n = (*v->part.escaped_count)++;
  if (n < v->part.escaped_capacity) v->part.escaped[n] = at;
}

void fake_refine_part(const cuda_frame_view *v) {
  const plane_region *r = &v->part.search;
  const int32_t step = v->part.seed.level > 0 ? v->part.seed.step : 0;
  memset(v->settled_words, 0, sizeof(uint32_t) * v->mask_words);
  for (int32_t level = 1; level <= v->params.scales; level++)
    for (int32_t y = r->y0; y < r->y1; y++)
      for (int32_t x = r->x0; x < r->x1; x++)
        if (*word_at(v, v->candidate_words, level, x, y) & bit_at(v, x))
          follow(v, (escaped_candidate){level, x, y, step});
}

void fake_locate_part(const cuda_frame_view *v) {
  const plane_region *r = &v->part.masked;
  const locate_args args = {v->octaves[0], {0}, v->params, v->filter, v->keypoints};
  for (int32_t level = 1; level <= v->params.scales; level++)
    for (int32_t y = r->y0; y < r->y1; y++)
      for (int32_t x = r->x0; x < r->x1; x++)
        if (*word_at(v, v->settled_words, level, x, y) & bit_at(v, x)) locate_one_ref(&args, level, x, y);
}
