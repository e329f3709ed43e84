/* By the stage, or over a grid. */
#include "pipeline/frame/select_features.h"

#include "pipeline/context/options.h"
#include "pipeline/frame/grid_choice.h"

stage_status select_features(hs_context *c, const frame_request *r, workspace *w, uint32_t described) {
  const source_view *picture = &r->source;
  if (c->options.max_features == 0 || r->given) return STAGE_OK;
  const select_args args = {.keypoints = w->keypoints,
                            .features = w->features,
                            .max_features = (uint32_t)c->options.max_features,
                            .rule = (select_rule)c->options.selection,
                            .descriptors = w->descriptors,
                            .descriptor_bytes = r->descriptor_bytes,
                            .described_count = described,
                            .kept_described = &described};
  if (options_use_grid(&c->options)) {
    grid_choice_lists(c, &args, picture->width, picture->height);
    return STAGE_OK;
  }
  return c->ops.select(c->queue, &args);
}
