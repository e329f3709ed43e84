/* Reference of detection: octave by octave the search, refinement and location one after another, with masks between. */
#include <string.h>

#include "cpu/ref/stages_ref.h"

static size_t mask_words(int32_t width, int32_t height, int32_t scales) {
  return (size_t)mask_words_per_row(width) * (size_t)height * (size_t)scales;
}

/* For the masks of the first octave, which is the largest. */
size_t detect_work_bytes_ref(const pyramid_geometry *geometry, int32_t scales, uint32_t keypoint_capacity) {
  (void)keypoint_capacity;
  return 2 * sizeof(uint32_t) * mask_words(geometry->width[0], geometry->height[0], scales);
}

static stage_status detect_octave(stage_queue *queue, const detect_args *args, const octave_view *o, uint64_t *count) {
  const mask_view candidates = {args->work, mask_words_per_row(o->width)};
  const mask_view settled = {candidates.words + mask_words(o->width, o->height, args->params.scales),
                             candidates.words_per_row};
  const extrema_args extrema = {*o, candidates, args->params, count};
  const refine_args refine = {*o, candidates, settled, args->params};
  const locate_args locate = {*o, settled, args->params, args->filter, args->keypoints};
  stage_status st = extrema_ref(queue, &extrema);
  if (st == STAGE_OK) st = refine_ref(queue, &refine);
  if (st == STAGE_OK) st = locate_ref(queue, &locate);
  return st;
}

/* A candidate is followed from one of its steps to the sample where it settles, unless it leaves the part. */
static bool follow_in_part(const detect_args *args, detect_stray *at) {
  const detect_part *part = args->part;
  const refine_step outcome =
      refine_follow_in(args->octaves, &args->params, &part->reach, &at->step, &at->level, &at->x, &at->y);
  if (outcome != REFINE_MOVED) return outcome == REFINE_SETTLED;
  const uint32_t n = (*part->stray_count)++;
  if (n < part->stray_capacity) part->strays[n] = *at;
  return false;
}

/* The samples of a part on which candidates settle, a bit each. */
typedef struct settled_map {
  mask_view bits;
  plane_region part;
} settled_map;

static uint32_t *settled_word(const settled_map *m, int32_t level, int32_t x, int32_t y) {
  const size_t height = (size_t)(m->part.y1 - m->part.y0),
               row = (size_t)(level - 1) * height + (size_t)(y - m->part.y0);
  return m->bits.words + row * (size_t)m->bits.words_per_row + (size_t)((x - m->part.x0) >> 5);
}

static void mark(const detect_args *args, const settled_map *m, detect_stray at) {
  if (follow_in_part(args, &at)) *settled_word(m, at.level, at.x, at.y) |= 1u << ((at.x - m->part.x0) & 31);
}

/* The settled samples as keypoints. */
static void list_settled(const detect_args *args, const settled_map *m) {
  const locate_args locate = {args->octaves[0], m->bits, args->params, args->filter, args->keypoints};
  for (int32_t level = 1; level <= args->params.scales; level++)
    for (int32_t y = m->part.y0; y < m->part.y1; y++)
      for (int32_t x = m->part.x0; x < m->part.x1; x++)
        if (*settled_word(m, level, x, y) >> ((x - m->part.x0) & 31) & 1u) locate_one_ref(&locate, level, x, y);
}

static stage_status detect_part_ref(const detect_args *args) {
  const detect_part *part = args->part;
  const plane_region *r = &part->reach;
  const plane_view plane = octave_level(args->octaves, 0);
  const int32_t border = args->params.border;
  const settled_map m = {{args->work, mask_words_per_row(r->x1 - r->x0)}, *r};
  uint64_t count = 0;
  memset(args->work, 0, sizeof(uint32_t) * mask_words(r->x1 - r->x0, r->y1 - r->y0, args->params.scales));
  *part->stray_count = 0;
  if (part->seed) mark(args, &m, *part->seed);
  for (int32_t level = 1; level <= args->params.scales && !part->seed; level++)
    for (int32_t y = part->search.y0; y < part->search.y1; y++)
      for (int32_t x = part->search.x0; x < part->search.x1; x++) {
        if (x < border || x >= plane.width - border || y < border || y >= plane.height - border) continue;
        if (!is_extremum_ref(args->octaves, &args->params, level, x, y)) continue;
        mark(args, &m, (detect_stray){level, x, y, 0});
        count++;
      }
  list_settled(args, &m);
  if (args->candidates) *args->candidates = count;
  return STAGE_OK;
}

stage_status detect_ref(stage_queue *queue, const detect_args *args) {
  stage_status st = STAGE_OK;
  uint64_t all = 0, count = 0;
  if (args->part) return detect_part_ref(args);
  for (int32_t i = 0; i < args->octave_count && st == STAGE_OK; i++) {
    st = detect_octave(queue, args, &args->octaves[i], &count);
    all += count;
  }
  if (args->candidates) *args->candidates = all;
  return st;
}
