/* Reference of detection: the search, refinement and location one after another, with masks between them. */
#include "cpu/stages_ref.h"

static size_t mask_words(int32_t width, int32_t height, int32_t scales) {
  return (size_t)mask_words_per_row(width) * (size_t)height * (size_t)scales;
}

size_t detect_work_bytes_ref(int32_t width, int32_t height, int32_t scales, uint32_t keypoint_capacity) {
  (void)keypoint_capacity;
  return 2 * sizeof(uint32_t) * mask_words(width, height, scales);
}

stage_status detect_ref(stage_queue *queue, const detect_args *args) {
  const octave_view *o = &args->octave;
  const mask_view candidates = {args->work, mask_words_per_row(o->width)};
  const mask_view settled = {candidates.words + mask_words(o->width, o->height, args->params.scales),
                             candidates.words_per_row};
  const extrema_args extrema = {*o, candidates, args->params, args->candidates};
  const refine_args refine = {*o, candidates, settled, args->params};
  const locate_args locate = {*o, settled, args->params, args->filter, args->keypoints};
  stage_status st = extrema_ref(queue, &extrema);
  if (st == STAGE_OK) st = refine_ref(queue, &refine);
  if (st == STAGE_OK) st = locate_ref(queue, &locate);
  return st;
}
