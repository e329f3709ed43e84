/* One frame in the order of the paper: scale space, extrema and refinement, orientation, descriptor; each for all
   octaves at once, so that threads meet seldom and small octaves fill up what large ones leave. */
#include "pipeline/frame/run_frame.h"

#include <string.h>

#include "pipeline/context/options.h"
#include "pipeline/frame/given_keypoints.h"
#include "pipeline/frame/grid_choice.h"

/* The frame being run. */
typedef struct frame {
  hs_context *context;
  const frame_request *request;
  workspace *work;
  int32_t octaves; /* that are wanted */
  uint64_t candidates;
} frame;

/* The level that another device made of the octaves before. */
static void copy_handed_over(const plane_view *from, const plane_view *to) {
  assert(from->width == to->width && from->height == to->height);
  for (int32_t y = 0; y < to->height; y++)
    memcpy(to->data + (size_t)y * to->stride, from->data + (size_t)y * from->stride, sizeof(float) * (size_t)to->width);
}

/* Level 0 of an octave: from the picture for the first, else every second sample of the octave before. */
static stage_status build_base(frame *f, int32_t o) {
  hs_context *c = f->context;
  workspace *w = f->work;
  if (o == 0 && f->request->skipped_octaves > 0) {
    const plane_view to = octave_level(&w->octaves[0], 0);
    copy_handed_over(&f->request->handed_over, &to);
    return STAGE_OK;
  }
  if (o > 0) {
    const halve_args args = {.in = octave_level(&w->octaves[o - 1], c->options.scales),
                             .out = octave_level(&w->octaves[o], 0)};
    return c->ops.halve(c->queue, &args);
  }
  /* Levels 1 and 2 are still free: they hold the doubled and the plain picture. */
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
  return c->ops.base(c->queue, &args);
}

/* How many levels above level 0 are made: those that a later stage reads from memory. */
static int32_t levels_made(const frame *f) {
  const hs_context *c = f->context;
  if (f->request->given) return c->options.scales;
  return c->options.scales + (c->ops.detect_reads_top ? 2 : 1);
}

/* Level 0, and the others each from the one before. */
static stage_status build_levels(frame *f, int32_t o) {
  hs_context *c = f->context;
  workspace *w = f->work;
  stage_status st = build_base(f, o);
  const int32_t levels = levels_made(f);
  for (int32_t s = 1; s <= levels && st == STAGE_OK; s++) {
    const blur_args args = {.in = octave_level(&w->octaves[o], s - 1),
                            .out = octave_level(&w->octaves[o], s),
                            .work = w->blur_work[o],
                            .border = (border_mode)options_rules(&c->options)->border_rule,
                            .filter = &c->step_filter[s]};
    st = c->ops.blur(c->queue, &args);
  }
  return st;
}

/* The keypoints, in the defined order. */
static stage_status detect(frame *f) {
  hs_context *c = f->context;
  workspace *w = f->work;
  const detect_args args = {.octaves = w->octaves,
                            .octave_count = f->octaves,
                            .border = (border_mode)options_rules(&c->options)->border_rule,
                            .top_filter = &c->step_filter[c->options.scales + 2],
                            .params = c->params,
                            .filter = f->request->filter,
                            .work = w->detect_work,
                            .keypoints = w->keypoints,
                            .candidates = &f->candidates};
  return f->octaves > 0 ? c->ops.detect(c->queue, &args) : STAGE_OK;
}

/* The given keypoints that have an orientation, or those that have none. */
static void append_given(frame *f, bool oriented) {
  for (int32_t o = 0; o < f->octaves; o++)
    given_append(&f->context->plan.geometry, f->context, f->request, o, oriented, f->work);
}

/* The keypoints get their orientations. */
static stage_status orient(frame *f) {
  hs_context *c = f->context;
  workspace *w = f->work;
  const orient_args args = {w->octaves, c->plan.geometry.first_octave, 0, w->keypoints, w->features, c->params,
                            &c->scales};
  return c->ops.orient(c->queue, &args);
}

/* With max_features: drops the others before they are described. */
static stage_status select_features(frame *f) {
  hs_context *c = f->context;
  workspace *w = f->work;
  const source_view *picture = &f->request->source;
  uint32_t described = 0;
  if (c->options.max_features == 0 || f->request->given) return STAGE_OK;
  const select_args args = {.keypoints = w->keypoints,
                            .features = w->features,
                            .max_features = (uint32_t)c->options.max_features,
                            .rule = (select_rule)c->options.selection,
                            .descriptors = w->descriptors,
                            .descriptor_bytes = f->request->descriptor_bytes,
                            .kept_described = &described};
  if (options_use_grid(&c->options)) {
    grid_choice_lists(c, &args, picture->width, picture->height);
    return STAGE_OK;
  }
  return c->ops.select(c->queue, &args);
}

static stage_status describe(frame *f) {
  hs_context *c = f->context;
  workspace *w = f->work;
  const describe_args args = {
      w->octaves, c->plan.geometry.first_octave, 0, w->keypoints, w->features, c->params, &c->scales, w->descriptors};
  return f->request->descriptor_bytes > 0 ? c->ops.describe(c->queue, &args) : STAGE_OK;
}

static stage_status run_stages(frame *f) {
  stage_status st = STAGE_OK;
  for (int32_t o = 0; o < f->octaves && st == STAGE_OK; o++) st = build_levels(f, o);
  if (st == STAGE_OK && !f->request->given) st = detect(f);
  if (st == STAGE_OK && f->request->given) append_given(f, false);
  if (st == STAGE_OK) st = orient(f);
  if (st == STAGE_OK && f->request->given) append_given(f, true);
  if (st == STAGE_OK) st = select_features(f);
  if (st == STAGE_OK) st = describe(f);
  return st;
}

static hs_status status_of(hs_context *c, stage_status st) {
  if (st == STAGE_OK) return HS_OK;
  if (st == STAGE_OUT_OF_MEMORY) return CONTEXT_FAIL(c, HS_ERR_MEMORY, "a stage ran out of memory");
  if (st == STAGE_OVERFLOW) return CONTEXT_FAIL(c, HS_ERR_LIMIT, "a size does not fit its type");
  return CONTEXT_FAIL(c, HS_ERR_DEVICE, "a stage failed on its device");
}

hs_status run_frame(hs_context *c, const frame_request *r, workspace *w) {
  do {
    frame f = {.context = c, .request = r, .work = w};
    hs_status st = context_prepare(c, r);
    if (st != HS_OK) return st;
    workspace_view(&c->plan, c->slab, w);
    st = grid_choice_reserve(c, w->features.capacity);
    if (st != HS_OK) return st;
    f.octaves = r->given ? given_octaves_needed(&c->plan.geometry, c, r) : c->plan.geometry.octave_count;
    st = status_of(c, run_stages(&f));
    if (st != HS_OK) return st;
    c->statistics.candidates = f.candidates;
  } while (context_grow_lists(c, *w->keypoints.count, *w->features.count, w->keypoints.capacity, w->features.capacity));
  c->statistics.frames++;
  c->statistics.keypoints = *w->keypoints.count;
  c->statistics.features = *w->features.count;
  return HS_OK;
}
