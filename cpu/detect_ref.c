/* Reference of detection: octave by octave the search, refinement and location one after another, with masks between. */
#include "cpu/stages_ref.h"

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

stage_status detect_ref(stage_queue *queue, const detect_args *args) {
  stage_status st = STAGE_OK;
  uint64_t all = 0, count = 0;
  for (int32_t i = 0; i < args->octave_count && st == STAGE_OK; i++) {
    st = detect_octave(queue, args, &args->octaves[i], &count);
    all += count;
  }
  if (args->candidates) *args->candidates = all;
  return st;
}
