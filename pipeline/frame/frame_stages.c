/* The stages' arguments from the context, the request and the workspace. */
#include "pipeline/frame/frame_stages.h"

#include "pipeline/context/options.h"

int32_t frame_levels_made(const frame *f) {
  const hs_context *c = f->context;
  if (f->request->given || f->levels_only) return c->options.scales;
  return c->options.scales + (c->ops.detect_reads_top ? 2 : 1);
}

/* Levels 1 and 2 are still free: they hold the doubled and the plain picture. */
base_args frame_base_args(const frame *f) {
  const hs_context *c = f->context;
  const workspace *w = f->work;
  base_args args = {.source = f->request->source,
                    .first_octave = c->options.first_octave,
                    .grid = options_upsample_grid(&c->options),
                    .border = (border_mode)options_rules(&c->options)->border_rule,
                    .filter = &c->base_filter,
                    .gray = octave_level(&w->octaves[0], 2),
                    .work = w->blur_work[0],
                    .doubled = octave_level(&w->octaves[0], 1),
                    .out = octave_level(&w->octaves[0], 0)};
  if (c->options.first_octave < 0) {
    args.gray.width = f->request->source.width;
    args.gray.height = f->request->source.height;
  }
  return args;
}

detect_args frame_detect_args(const frame *f, int32_t first, int32_t end, uint64_t *candidates) {
  const hs_context *c = f->context;
  const workspace *w = f->work;
  return (detect_args){.octaves = w->octaves + first,
                       .octave_count = end - first,
                       .border = (border_mode)options_rules(&c->options)->border_rule,
                       .top_filter = &c->step_filter[c->options.scales + 2],
                       .params = c->params,
                       .filter = f->request->filter,
                       .work = w->detect_work[first > 0],
                       .keypoints = w->keypoints,
                       .candidates = candidates};
}

/* Keypoints are of levels 1 to S; smaller sizes of pooled descriptors and shapes may read level 0 too. */
octave_args frame_octave_args(const frame *f, int32_t octave_index, uint64_t *candidates) {
  const hs_context *c = f->context;
  const uint32_t but_the_top = (UINT32_C(2) << c->options.scales) - 1;
  octave_args args = {.base = frame_base_args(f),
                      .step_filter = c->step_filter,
                      .detect = frame_detect_args(f, octave_index, octave_index + 1, candidates),
                      .levels_kept = but_the_top,
                      .scratch = f->work->blur_work[octave_index].data};
  if (octave_index > 0) {
    args.finer = octave_level(&f->work->octaves[octave_index - 1], c->options.scales);
    args.base.work = f->work->blur_work[octave_index];
    args.base.out = octave_level(&f->work->octaves[octave_index], 0);
  }
  if (c->params.domain.count == 0 && !c->options.affine) args.levels_kept &= ~UINT32_C(1);
  return args;
}

orient_args frame_orient_args(const frame *f) {
  const hs_context *c = f->context;
  const workspace *w = f->work;
  return (orient_args){w->octaves, c->plan.geometry.first_octave, 0, w->keypoints, w->features, c->params, &c->scales};
}

describe_args frame_describe_args(const frame *f) {
  const hs_context *c = f->context;
  const workspace *w = f->work;
  return (describe_args){w->octaves,
                         c->plan.geometry.first_octave,
                         c->plan.geometry.octave_count,
                         0,
                         w->keypoints,
                         w->features,
                         c->params,
                         &c->scales,
                         w->descriptors};
}

affine_args frame_shape_args(const frame *f) {
  const hs_context *c = f->context;
  const workspace *w = f->work;
  return (affine_args){.octaves = w->octaves,
                       .first_octave = c->plan.geometry.first_octave,
                       .octave_count = c->plan.geometry.octave_count,
                       .keypoints = w->keypoints,
                       .features = w->features,
                       .shapes = w->shapes,
                       .params = c->params,
                       .scales = &c->scales,
                       .descriptors = w->descriptors};
}
