/* One frame on the host, in the order of the paper: scale space, extrema and refinement, orientation, descriptor. The
   plan chooses its way (plan_choose_way, WAYS.md): stage after stage, as a graph of jobs (cpu/schedule/frame_graph.h),
   or with a fused pass over each large octave (cpu/schedule/fused_pass.h). The first octave is searched before the
   others are made, so that these can reuse the memory of its levels above S (plan.h). Octaves without a fused pass are
   searched together. All octaves are oriented and described together. */
#include "pipeline/frame/run_frame.h"

#include <string.h>

#include "cpu/schedule/frame_graph.h"
#include "cpu/schedule/stage_jobs.h"
#include "pipeline/context/options.h"

/* The frame being run. */
typedef struct frame {
  hs_context *context;
  const frame_request *request;
  workspace *work;
  int32_t octaves; /* number of octaves to compute */
  way_choice choice;
  bool levels_only;
  bool is_oriented, is_described; /* jobs have already done this stage */
  uint64_t candidates;
  /* samples of the levels computed so far, and of all levels; later stages count as further levels */
  uint64_t done, total;
} frame;

/* ------------------------------------------------- the arguments of its stages */

/* Returns how many levels above level 0 are made: those that a later stage reads from memory. */
static int32_t frame_levels_made(const frame *f) {
  const hs_context *c = f->context;
  if (f->request->user_keypoints || f->levels_only) return c->options.scales;
  return c->options.scales + (c->ops.detect_reads_top ? 2 : 1);
}

/* levels 1 and 2 are not made yet, so they can hold the doubled and the plain picture */
static base_args frame_base_args(const frame *f) {
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

/* Returns the arguments for detection in the octaves first..end-1: a single octave, or all from `first` on. */
static detect_args frame_detect_args(const frame *f, int32_t first, int32_t end, uint64_t *candidates) {
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

/* Returns the arguments for a fused pass over one octave. Level 0 is kept only if pooled descriptors or shapes may read
   it; keypoints are in levels 1 to S. */
static octave_args frame_octave_args(const frame *f, int32_t octave_index, uint64_t *candidates) {
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

static orient_args frame_orient_args(const frame *f) {
  const hs_context *c = f->context;
  const workspace *w = f->work;
  return (orient_args){w->octaves, c->plan.geometry.first_octave, 0, w->keypoints, w->features, c->params, &c->scales};
}

static describe_args frame_describe_args(const frame *f) {
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

static affine_args frame_shape_args(const frame *f) {
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

/* ------------------------------------------------- progress */

/* Progress weight of the keypoint stages, in blur levels. */
enum { LEVELS_OF_STAGES = 6 };

/* Returns the samples of one level of octave o. */
static uint64_t samples_of(const frame *f, int32_t o) {
  const plane_view level = octave_level(&f->work->octaves[o], 0);
  return (uint64_t)level.width * (uint64_t)level.height;
}

/* Returns the samples of one level of each of the octaves first..end-1. */
static uint64_t samples_of_range(const frame *f, int32_t first, int32_t end) {
  uint64_t samples = 0;
  for (int32_t o = first; o < end; o++) samples += samples_of(f, o);
  return samples;
}

static uint64_t samples_of_all(const frame *f) { return samples_of_range(f, 0, f->octaves); }

/* Reports progress after a step; not if a device computes part of the frame, because that part cannot be
   interrupted. */
static stage_status step(frame *f, stage_status st, uint64_t samples) {
  f->done += samples;
  if (st != STAGE_OK || !f->context->engine->reports_progress) return st;
  return context_progress(f->context, f->done, f->total) == HS_OK ? STAGE_OK : STAGE_CANCELLED;
}

/* Copies the level that the GPU handed over to the CPU's first octave (hybrid). */
static void copy_handed_over(const plane_view *from, const plane_view *to) {
  assert(from->width == to->width && from->height == to->height);
  for (int32_t y = 0; y < to->height; y++)
    memcpy(to->data + (size_t)y * to->stride, from->data + (size_t)y * from->stride, sizeof(float) * (size_t)to->width);
}

/* Makes level 0 of an octave: of the first octave from the picture, of the others from every second sample of the
   previous octave. */
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
  const base_args args = frame_base_args(f);
  return c->ops.base(c->queue, &args);
}

/* Makes level 0 of an octave, then each level from the level before. */
static stage_status build_levels(frame *f, int32_t o) {
  hs_context *c = f->context;
  workspace *w = f->work;
  stage_status st = build_base(f, o);
  const int32_t levels = frame_levels_made(f);
  for (int32_t s = 1; s <= levels && st == STAGE_OK; s++) {
    const blur_args args = {.in = octave_level(&w->octaves[o], s - 1),
                            .out = octave_level(&w->octaves[o], s),
                            .work = w->blur_work[o],
                            .border = (border_mode)options_rules(&c->options)->border_rule,
                            .filter = &c->step_filter[s]};
    st = step(f, c->ops.blur(c->queue, &args), samples_of(f, o));
  }
  return st;
}

/* Appends the keypoints of octaves first..end-1, in the defined order. */
static stage_status detect(frame *f, int32_t first, int32_t end) {
  hs_context *c = f->context;
  uint64_t candidates = 0;
  if (end <= first) return STAGE_OK;
  const detect_args args = frame_detect_args(f, first, end, &candidates);
  const stage_status st = c->ops.detect(c->queue, &args);
  f->candidates += candidates;
  return step(f, st, samples_of_range(f, first, end) * (LEVELS_OF_STAGES / 3));
}

/* Reports progress of a fused pass after each strip. */
static bool report_strip(void *frame_run, uint64_t samples) {
  frame *f = frame_run;
  return step(f, STAGE_OK, samples * (uint64_t)(frame_levels_made(f) + LEVELS_OF_STAGES / 3)) == STAGE_OK;
}

/* Makes the levels and finds the keypoints of an octave in a fused pass. */
static stage_status pass_octave(frame *f, int32_t o) {
  uint64_t candidates = 0;
  octave_args args = frame_octave_args(f, o, &candidates);
  args.report = report_strip;
  args.owner = f;
  const stage_status st = f->context->ops.octave(f->context->queue, &args);
  f->candidates += candidates;
  return st;
}

/* Makes the levels of all octaves and, without user keypoints, finds the keypoints. */
static stage_status build_and_detect(frame *f) {
  const bool has_user_keypoints = f->request->user_keypoints != NULL;
  const int32_t passes = f->choice.way == HS_WAY_CPU_FUSED_PASS ? f->context->plan.passes : 0;
  stage_status st = STAGE_OK;
  for (int32_t o = 0; o < f->octaves && st == STAGE_OK; o++) {
    st = o < passes ? pass_octave(f, o) : build_levels(f, o);
    if (o == 0 && passes == 0 && st == STAGE_OK && !has_user_keypoints) st = detect(f, 0, 1);
  }
  return st == STAGE_OK && !has_user_keypoints ? detect(f, passes > 0 ? passes : 1, f->octaves) : st;
}

/* Appends the user keypoints with an orientation, or those without. */
static void append_user(frame *f, bool oriented) {
  for (int32_t o = 0; o < f->octaves; o++)
    user_append(&f->context->plan.geometry, f->context, f->request, o, oriented, f->work);
}

/* Orients the keypoints. */
static stage_status orient(frame *f) {
  const orient_args args = frame_orient_args(f);
  return f->context->ops.orient(f->context->queue, &args);
}

/* Finds the shapes of the keypoints from `first` on. */
static stage_status find_shapes(frame *f, uint32_t first) {
  hs_context *c = f->context;
  if (!c->options.affine) return STAGE_OK;
  affine_args args = frame_shape_args(f);
  args.first_keypoint = first;
  return affine_shape_run(c->queue, &c->ops, &args);
}

static stage_status orient_shapes(frame *f) {
  hs_context *c = f->context;
  affine_args args = frame_shape_args(f);
  return affine_orient_run(c->queue, &c->ops, &args, f->work->warped);
}

static stage_status describe_shapes(frame *f) {
  hs_context *c = f->context;
  affine_args args = frame_shape_args(f);
  return affine_describe_run(c->queue, &c->ops, &args, f->work->warped);
}

static stage_status describe(frame *f) {
  hs_context *c = f->context;
  if (f->request->descriptor_bytes == 0) return STAGE_OK;
  if (c->options.affine) return describe_shapes(f);
  const describe_args args = frame_describe_args(f);
  return c->ops.describe(c->queue, &args);
}

/* ------------------------------------------------- stages at the same time */

static bool report_samples(void *frame_run, uint64_t samples) {
  frame *f = frame_run;
  return step(f, STAGE_OK, samples) == STAGE_OK;
}

/* Runs a graph of jobs: the levels, without user keypoints the search, and the stages that can start before the list of
   keypoints is complete. */
static stage_status run_graph(frame *f) {
  hs_context *c = f->context;
  const frame_request *r = f->request;
  const workspace *w = f->work;
  uint64_t candidates[2] = {0, 0};
  const detect_args searches[2] = {frame_detect_args(f, 0, 1, &candidates[0]),
                                   frame_detect_args(f, 1, f->octaves, &candidates[1])};
  const orient_args orientation = frame_orient_args(f);
  const describe_args description = frame_describe_args(f);
  frame_graph_args args = {.ops = &c->ops,
                           .base = frame_base_args(f),
                           .octaves = w->octaves,
                           .octave_count = f->octaves,
                           .scales = c->options.scales,
                           .levels = frame_levels_made(f),
                           .step_filter = c->step_filter,
                           .radius_max = c->radius_max,
                           .scratch = {w->blur_work[0].data, f->octaves > 1 ? w->blur_work[1].data : NULL},
                           .report = c->progress ? report_samples : NULL,
                           .owner = f,
                           .stage_levels = LEVELS_OF_STAGES / 3,
                           .work = w->graph};
  if (!f->levels_only && !r->user_keypoints) args.detect = searches;
  f->is_oriented = args.detect && !c->options.affine;
  if (f->is_oriented) args.orient = &orientation;
  f->is_described = f->is_oriented && r->descriptor_bytes > 0 && c->options.max_features == 0;
  if (f->is_described) args.describe = &description;
  const stage_status st = frame_graph_run(c->queue, &args);
  f->candidates += candidates[0] + candidates[1];
  return st;
}

/* ------------------------------------------------- the frame */

static stage_status orient_step(frame *f) {
  if (f->is_oriented) return STAGE_OK;
  return step(f, f->context->options.affine ? orient_shapes(f) : orient(f), samples_of_all(f) * (LEVELS_OF_STAGES / 3));
}

static stage_status run_stages(frame *f) {
  f->total = samples_of_all(f) * (uint64_t)(frame_levels_made(f) + LEVELS_OF_STAGES);
  stage_status st = step(f, STAGE_OK, 0);
  if (st == STAGE_OK) st = f->choice.jobs ? run_graph(f) : build_and_detect(f);
  if (st == STAGE_OK && f->request->user_keypoints) append_user(f, false);
  if (st == STAGE_OK) st = find_shapes(f, 0);
  if (st == STAGE_OK) st = orient_step(f);
  const uint32_t shaped = *f->work->keypoints.count;
  if (st == STAGE_OK && f->request->user_keypoints) append_user(f, true);
  if (st == STAGE_OK) st = find_shapes(f, shaped);
  /* selects first, so that dropped features are not described */
  if (st == STAGE_OK) st = select_features(f->context, f->request, f->work, 0);
  if (st == STAGE_OK && !f->is_described) st = describe(f);
  return st == STAGE_OK ? step(f, st, f->total - f->done) : st;
}

static hs_status status_of(hs_context *c, stage_status st) {
  if (st == STAGE_OK) return HS_OK;
  if (st == STAGE_CANCELLED) return HS_ERR_CANCELLED;                 /* context_progress has recorded the failure */
  if (st == STAGE_OUT_OF_MEMORY && c->error[0]) return HS_ERR_MEMORY; /* a device has recorded the failure */
  if (st == STAGE_DEVICE && c->error[0]) return HS_ERR_DEVICE;
  if (st == STAGE_OUT_OF_MEMORY) return CONTEXT_FAIL(c, HS_ERR_MEMORY, "a stage ran out of memory");
  if (st == STAGE_OVERFLOW) return CONTEXT_FAIL(c, HS_ERR_LIMIT, "a size does not fit its type");
  return CONTEXT_FAIL(c, HS_ERR_DEVICE, "a stage failed on its device");
}

/* Makes plan and memory for the frame: on the host, or for tiles on the device. */
static hs_status make_memory(hs_context *c, const frame_request *r) {
  if (r->untiled_status == HS_OK) return context_prepare(c, r);
  return c->engine->tiles->prepare(c, r, r->untiled_status);
}

static bool has_grown_lists(const hs_context *c) { return c->keypoint_capacity > 0 || c->feature_capacity > 0; }

/* Makes plan and memory. If they do not fit because earlier frames made the lists long, begins again with short lists.
 *grown: such long lists exist; false once they are short. */
static hs_status prepare(hs_context *c, const frame_request *r, bool *grown) {
  const hs_status st = make_memory(c, r);
  if (st != HS_ERR_LIMIT || !*grown) return st;
  *grown = false;
  context_clear_error(c);
  return make_memory(c, r);
}

/* Chooses the way of the frame from the plan that was made for it. */
static void choose_way(frame *f) {
  const frame_plan *plan = &f->context->plan;
  const frame_request *r = f->request;
  const way_request request = {.on_device = r->untiled_status != HS_OK,
                               .tiled = plan->tile_side > 0,
                               .rows = r->feed != NULL,
                               .user_keypoints = r->user_keypoints != NULL,
                               .octaves = f->octaves,
                               .skipped_octaves = r->skipped_octaves,
                               .passes = f->levels_only ? 0 : plan->passes,
                               .has_jobs = f->work->graph != NULL};
  f->choice = plan_choose_way(&request);
}

hs_status run_pyramid(hs_context *c, const frame_request *r, int32_t octaves, workspace *w) {
  frame f = {.context = c, .request = r, .work = w, .octaves = octaves, .levels_only = true};
  bool grown = has_grown_lists(c);
  const hs_status st = prepare(c, r, &grown);
  if (st != HS_OK) return st;
  workspace_view(&c->plan, c->slab, w);
  f.total = samples_of_all(&f) * (uint64_t)frame_levels_made(&f);
  stage_status made = step(&f, STAGE_OK, 0);
  choose_way(&f);
  const bool graph = f.choice.jobs;
  if (graph && made == STAGE_OK) made = run_graph(&f);
  for (int32_t o = 0; o < octaves && made == STAGE_OK && !graph; o++) made = build_levels(&f, o);
  return status_of(c, made);
}

hs_status run_frame(hs_context *c, const frame_request *r, workspace *w) {
  bool grown = has_grown_lists(c);
  do {
    frame f = {.context = c, .request = r, .work = w};
    hs_status st = prepare(c, r, &grown);
    if (st != HS_OK) return st;
    workspace_view(&c->plan, c->slab, w);
    st = grid_choice_reserve(c, w->features.capacity);
    if (st != HS_OK) return st;
    f.octaves = r->user_keypoints ? user_octaves_needed(&c->plan.geometry, c, r) : c->plan.geometry.octave_count;
    choose_way(&f);
    context_note_way(c, &f.choice);
    const bool tiled = c->plan.tile_side > 0;
    st = status_of(c, tiled ? tiled_frame_run(c, r, w, &f.candidates) : run_stages(&f));
    if (r->feed && r->feed->failure != HS_OK) return CONTEXT_FAIL(c, r->feed->failure, "%s", r->feed->reason);
    if (st != HS_OK) return st;
    c->statistics.candidates = f.candidates;
  } while (context_grow_lists(c, *w->keypoints.count, *w->features.count, w->keypoints.capacity, w->features.capacity));
  c->statistics.frames++;
  c->statistics.keypoints = *w->keypoints.count;
  c->statistics.features = *w->features.count;
  return HS_OK;
}

hs_status cpu_engine_run(hs_context *c, const frame_request *r, const frame_placement *placement,
                         frame_result *result) {
  (void)placement;
  const hs_status st = run_frame(c, r, result->lists);
  if (st == HS_OK) result->count = *result->lists->features.count;
  return st;
}
