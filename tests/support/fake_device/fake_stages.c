/* Fake launchers of a frame's stages, which call the CPU's stages. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/dispatch.h"
#include "cpu/ref/stages_ref.h"
#include "cpu/schedule/stage_jobs.h"
#include "cuda/keypoints/keypoints_cuda.h"
#include "cuda/pyramid/pyramid_cuda.h"
#include "cuda/runtime/device.h"
#include "tests/support/fake_device/fake_device.h"
#include "tests/support/fake_device/fake_tiles.h"

enum { WIDEST_RADIUS = 15 }; /* filters wider than this need a work plane */

static stage_ops cpu;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void choose(void) {
  if (!cpu_choose_ops(&cpu, NULL, NULL, 0)) abort();
}

/* Returns the CPU's stages, which run on the calling thread. */
static const stage_ops *ops(void) {
  pthread_once(&once, choose);
  return &cpu;
}

/* Allocates scratch memory of base and level steps; null when out of memory. */
static float *new_work(plane_view plane, int32_t radius) {
  size_t floats = plane.stride * (size_t)plane.height + 64;
  if (ops()->pyramid_work_floats) floats += ops()->pyramid_work_floats(plane.width, plane.height, radius, 1);
  return aligned_alloc(64, (floats * sizeof(float) + 63) / 64 * 64);
}

/* Moves a pointer to the slab of picture i of a group. */
static void *shifted(const void *pointer, size_t i, size_t stride_bytes) {
  return pointer ? (unsigned char *)(uintptr_t)pointer + i * stride_bytes : NULL;
}

static plane_view plane_of(plane_view plane, size_t i, size_t stride_bytes) {
  plane.data = shifted(plane.data, i, stride_bytes);
  return plane;
}

static size_t pictures(picture_group group) { return group.count > 1 ? (size_t)group.count : 1; }

/* ------------------------------------------------------------------ pyramid */

bool blur_needs_work(int32_t radius) { return radius > WIDEST_RADIUS; }

/* A level step: its filter, and optional outputs. */
typedef struct level_step {
  blur_launch_args args;
  gaussian_filter filter;
} level_step;

static stage_status level_of_picture(const level_step *step, size_t i) {
  const size_t apart = step->args.group.stride_bytes;
  const plane_view in = plane_of(step->args.in, i, apart), out = plane_of(step->args.out, i, apart);
  plane_view work = out;
  work.data = new_work(out, step->filter.radius);
  if (!work.data) return STAGE_OUT_OF_MEMORY;
  const blur_args blur = {in, out, work, step->args.border, &step->filter, {0}};
  stage_status st = ops()->blur(NULL, &blur);
  free(work.data);
  const halve_args halve = {out, plane_of(step->args.halved, i, apart), {0}};
  if (st == STAGE_OK && halve.out.data) st = ops()->halve(NULL, &halve);
  const plane_view dog = plane_of(step->args.dog, i, apart);
  for (int32_t y = 0; dog.data && y < out.height; y++)
    for (int32_t x = 0; x < out.width; x++) {
      const size_t at = (size_t)y * out.stride + (size_t)x;
      dog.data[at] = out.data[at] - in.data[at];
    }
  return st;
}

static stage_status level_run(const void *args) {
  const level_step *step = args;
  stage_status st = STAGE_OK;
  for (size_t i = 0; i < pictures(step->args.group) && st == STAGE_OK; i++) st = level_of_picture(step, i);
  return st;
}

stage_status blur_launch(const blur_launch_args *args, cuda_stream stream) {
  const level_step step = {*args, *args->filter};
  return fake_submit(stream, level_run, &step, sizeof step);
}

stage_status uber_level_launch(const blur_launch_args *args, cuda_stream stream) { return blur_launch(args, stream); }

static stage_status dog_run(const void *args) {
  const plane_view *planes = args, dog = planes[2];
  for (int32_t y = 0; y < dog.height; y++)
    for (int32_t x = 0; x < dog.width; x++) {
      const size_t at = (size_t)y * dog.stride + (size_t)x;
      dog.data[at] = planes[1].data[at] - planes[0].data[at];
    }
  return STAGE_OK;
}

stage_status dog_launch(const plane_view *lower, const plane_view *upper, const plane_view *dog, cuda_stream stream) {
  const plane_view planes[] = {*lower, *upper, *dog};
  return fake_submit(stream, dog_run, planes, sizeof planes);
}

bool chain_fits(const chain_launch_args *args) {
  return args->border == BORDER_REFLECT_101 && args->octave.width * args->octave.height < 10000;
}

stage_status chain_launch(const chain_launch_args *args, cuda_stream stream) {
  stage_status st = STAGE_OK;
  for (int32_t s = args->first_level; s < args->first_level + args->count && st == STAGE_OK; s++) {
    blur_launch_args level = {.in = octave_level(&args->octave, s - 1),
                              .out = octave_level(&args->octave, s),
                              .border = args->border,
                              .filter = &args->filters[s],
                              .group = args->group};
    if (s == args->first_level + args->count - 1) level.halved = args->halved;
    st = blur_launch(&level, stream);
  }
  return st;
}

typedef struct base_step {
  base_args args;
  gaussian_filter filter;
  picture_group group;
} base_step;

static stage_status base_run(const void *args) {
  const base_step *step = args;
  stage_status st = STAGE_OK;
  for (size_t i = 0; i < pictures(step->group) && st == STAGE_OK; i++) {
    const size_t apart = step->group.stride_bytes;
    base_args one = step->args;
    one.filter = &step->filter;
    one.source.data = shifted(one.source.data, i, apart);
    one.gray = plane_of(one.gray, i, apart);
    one.doubled = plane_of(one.doubled, i, apart);
    one.out = plane_of(one.out, i, apart);
    one.work = one.out;
    one.work.data = new_work(one.out, step->filter.radius);
    st = one.work.data ? ops()->base(NULL, &one) : STAGE_OUT_OF_MEMORY;
    free(one.work.data);
  }
  return st;
}

stage_status base_group_launch(const base_args *args, picture_group group, cuda_stream stream) {
  const base_step step = {*args, *args->filter, group};
  return fake_submit(stream, base_run, &step, sizeof step);
}

bool base_is_fused(const base_args *args) {
  return args->source.type == SOURCE_U8 && args->source.layout == SOURCE_GRAY && args->first_octave < 0 &&
         args->grid == GRID_ALIGNED && !blur_needs_work(args->filter->radius);
}

int32_t base_band_rows(const base_args *args, int32_t band, int32_t bands) {
  return (int32_t)((int64_t)args->source.height * (band + 1) / bands);
}

/* The last band makes the whole base, because only then are all rows uploaded. */
stage_status base_band_launch(const base_args *args, int32_t band, int32_t bands, cuda_stream stream) {
  const picture_group one = {1, 0};
  return band == bands - 1 ? base_group_launch(args, one, stream) : STAGE_OK;
}

static stage_status handover_run(const void *args) {
  uint32_t *const *flag = args;
  **flag = 1;
  return STAGE_OK;
}

typedef struct gray_step {
  source_view source;
  uint8_t *out;
  size_t out_stride_bytes;
  picture_group group;
} gray_step;

static stage_status gray_run(const void *args) {
  const gray_step *step = args;
  const source_view *v = &step->source;
  const size_t channels = source_channels(v->layout);
  const bool blue_first = v->layout == SOURCE_BGR || v->layout == SOURCE_BGRA;
  for (size_t i = 0; i < pictures(step->group); i++)
    for (int32_t y = 0; y < v->height; y++)
      for (int32_t x = 0; x < v->width; x++) {
        const uint8_t *in = shifted(v->data, i, step->group.stride_bytes);
        uint8_t *out = shifted(step->out, i, step->group.stride_bytes);
        in += (size_t)y * v->stride_bytes + (size_t)x * channels;
        out[(size_t)y * step->out_stride_bytes + (size_t)x] =
            channels < 3 ? in[0] : (uint8_t)gray_of_rgb_int(in[blue_first ? 2 : 0], in[1], in[blue_first ? 0 : 2]);
      }
  return STAGE_OK;
}

stage_status gray_launch(const source_view *source, uint8_t *out, size_t out_stride_bytes, picture_group group,
                         cuda_stream stream) {
  const gray_step step = {*source, out, out_stride_bytes, group};
  return fake_submit(stream, gray_run, &step, sizeof step);
}

stage_status handover_launch(uint32_t *flag, cuda_stream stream) {
  return fake_submit(stream, handover_run, &flag, sizeof flag);
}

/* ------------------------------------------------------------------ search */

typedef struct search_step {
  extrema_launch_args args;
  extrema_octave octaves[OCTAVES_MAX];
} search_step;

static stage_status search_run(const void *args) {
  const search_step *step = args;
  const size_t count = step->args.group > 1 ? (size_t)step->args.group : 1, apart = step->args.group_stride_bytes;
  stage_status st = STAGE_OK;
  for (size_t i = 0; i < count; i++)
    for (int32_t o = 0; o < step->args.octave_count && st == STAGE_OK; o++) {
      extrema_args one = {step->octaves[o].octave, step->octaves[o].candidates, step->args.params, NULL};
      one.octave.levels = shifted(one.octave.levels, i, apart);
      one.candidates.words = shifted(one.candidates.words, i, apart);
      st = extrema_ref(NULL, &one);
    }
  return st;
}

stage_status extrema_launch(const extrema_launch_args *args, cuda_stream stream) {
  search_step step = {.args = *args};
  memcpy(step.octaves, args->octaves, sizeof step.octaves[0] * (size_t)args->octave_count);
  return fake_submit(stream, search_run, &step, sizeof step);
}

/* ------------------------------------------------------------------ keypoints */

/* A stage that runs on every view of a group. */
typedef struct view_step {
  cuda_frame_view view;
  stage_status (*run)(const cuda_frame_view *view, const struct view_step *step, size_t i);
  const cuda_outputs *outputs;
  cuda_frame_counts *counts;
} view_step;

static stage_status views_run(const void *args) {
  const view_step *step = args;
  stage_status st = STAGE_OK;
  for (size_t i = 0; i < cuda_group_count(&step->view) && st == STAGE_OK; i++)
    st = step->run(step->view.group > 1 ? &step->view.group_views[i] : &step->view, step, i);
  return st;
}

static stage_status submit_views(const view_step *step, cuda_stream stream) {
  return fake_submit(stream, views_run, step, sizeof *step);
}

/* The scratch has fewer arrays than on a GPU: only counters, one of which is used. */
size_t cuda_keypoint_scratch_layout(const cuda_keypoint_capacity *capacity, void *base, cuda_keypoint_scratch *s) {
  s->counters = base;
  s->counter_bytes = 256;
  s->candidate_count = base;
  (void)capacity;
  return 256;
}

static stage_status reset_view(const cuda_frame_view *v, const view_step *step, size_t i) {
  const size_t apart = step->view.group_stride_bytes;
  memset(shifted(step->view.scratch.counters, i, apart), 0, v->scratch.counter_bytes);
  if (v->settled_words) memset(shifted(v->settled_words, i, apart), 0, sizeof(uint32_t) * (size_t)v->mask_words);
  return STAGE_OK;
}

/* group_views are not yet filled while a group is recorded, so only the first view is used. */
static stage_status reset_run(const void *args) {
  const view_step *step = args;
  for (size_t i = 0; i < cuda_group_count(&step->view); i++) (void)reset_view(&step->view, step, i);
  return STAGE_OK;
}

stage_status cuda_keypoint_reset_launch(const cuda_frame_view *view, cuda_stream stream) {
  const view_step step = {.view = *view};
  return fake_submit(stream, reset_run, &step, sizeof step);
}

static mask_view mask_of(const cuda_frame_view *v, uint32_t *words, int32_t o) {
  return (mask_view){words + v->mask_offset[o], mask_words_per_row(v->octaves[o].width)};
}

/* Counts every word, including words between octaves, as the kernel does. */
static stage_status refine_view(const cuda_frame_view *v, const view_step *step, size_t i) {
  (void)step;
  (void)i;
  for (uint32_t w = 0; w < v->mask_words; w++)
    *v->scratch.candidate_count += (uint32_t)__builtin_popcount(v->candidate_words[w]);
  if (v->part.tiled) fake_refine_part(v);
  for (int32_t o = 0; o < v->octave_count && !v->part.tiled; o++) {
    const refine_args args = {v->octaves[o], mask_of(v, v->candidate_words, o), mask_of(v, v->settled_words, o),
                              v->params};
    const stage_status st = refine_ref(NULL, &args);
    if (st != STAGE_OK) return st;
  }
  return STAGE_OK;
}

stage_status cuda_refine_launch(const cuda_frame_view *view, cuda_refine_variant variant, cuda_stream stream) {
  const view_step step = {.view = *view, .run = refine_view};
  (void)variant;
  return submit_views(&step, stream);
}

static stage_status locate_view(const cuda_frame_view *v, const view_step *step, size_t i) {
  (void)step;
  (void)i;
  *v->keypoints.count = 0;
  if (v->part.tiled) fake_locate_part(v);
  for (int32_t o = 0; o < v->octave_count && !v->part.tiled; o++) {
    const locate_args args = {v->octaves[o], mask_of(v, v->settled_words, o), v->params, v->filter, v->keypoints};
    const stage_status st = locate_ref(NULL, &args);
    if (st != STAGE_OK) return st;
  }
  return STAGE_OK;
}

stage_status cuda_locate_launch(const cuda_frame_view *view, cuda_stream stream) {
  const view_step step = {.view = *view, .run = locate_view};
  return submit_views(&step, stream);
}

/* Returns the arguments for the CPU's functions on affine shapes. */
static affine_args shape_args(const cuda_frame_view *v, void *descriptors) {
  return (affine_args){.octaves = v->octaves,
                       .first_octave = v->first_octave,
                       .octave_count = v->octave_count,
                       .keypoints = v->keypoints,
                       .shapes = v->shapes,
                       .params = v->params,
                       .scales = v->scales,
                       .descriptors = descriptors};
}

static stage_status shape_view(const cuda_frame_view *v, const view_step *step, size_t i) {
  const affine_args args = shape_args(v, NULL);
  (void)step;
  (void)i;
  return affine_shape_run(NULL, ops(), &args);
}

stage_status cuda_affine_shape_launch(const cuda_frame_view *view, cuda_stream stream) {
  const view_step step = {.view = *view, .run = shape_view};
  return submit_views(&step, stream);
}

/* Runs a stage with scratch memory. */
static stage_status run_warped(stage_status (*run)(stage_queue *, const stage_ops *, const affine_args *, float *),
                               const affine_args *args) {
  float *work = malloc(affine_work_floats(1) * sizeof *work);
  if (!work) abort();
  const stage_status st = run(NULL, ops(), args, work);
  free(work);
  return st;
}

static stage_status orient_view(const cuda_frame_view *v, const view_step *step, size_t i) {
  (void)step;
  (void)i;
  if (v->shapes) {
    affine_args shaped = shape_args(v, NULL);
    shaped.features = v->oriented;
    *v->oriented.count = 0;
    return run_warped(affine_orient_run, &shaped);
  }
  const orient_args args = {v->octaves, v->first_octave, 0, v->keypoints, v->oriented, v->params, v->scales};
  *v->oriented.count = 0;
  return ops()->orient(NULL, &args);
}

stage_status cuda_orient_launch(const cuda_frame_view *view, cuda_orient_variant variant, cuda_stream stream) {
  const view_step step = {.view = *view, .run = orient_view};
  (void)variant;
  return submit_views(&step, stream);
}

/* Moves the features that a grid keeps to the front of the list. */
static stage_status select_over_grid(const cuda_frame_view *v) {
  const uint32_t n = *v->features.count;
  uint32_t kept = 0;
  if (n > v->features.capacity || n <= v->max_features) return STAGE_OK;
  grid_item *items = malloc(2 * sizeof *items * n);
  uint32_t *keys = malloc(sizeof *keys * n);
  if (!items || !keys) abort();
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t k = v->features.keypoint[i];
    keys[i] = hs_float_bits(v->selection == SELECT_STRONGEST ? v->keypoints.response[k] : v->keypoints.sigma[k]);
    items[i] = grid_item_of(grid_cell(&v->grid, v->keypoints.x[k], v->keypoints.y[k]), keys[i], i);
  }
  grid_choice choice = grid_choose(items, items + n, n, v->max_features);
  for (uint32_t i = 0; i < n; i++) {
    if (!grid_keeps(&choice, i, keys[i])) continue;
    v->features.keypoint[kept] = v->features.keypoint[i];
    v->features.orientation[kept++] = v->features.orientation[i];
  }
  *v->features.count = kept;
  free(items);
  free(keys);
  return STAGE_OK;
}

/* Copies the listed features, then keeps some of them by the view's rule. */
static stage_status select_listed(const cuda_frame_view *v, uint32_t listed) {
  uint32_t described;
  memcpy(v->features.keypoint, v->oriented.keypoint, sizeof(uint32_t) * listed);
  memcpy(v->features.orientation, v->oriented.orientation, sizeof(float) * listed);
  *v->features.count = *v->oriented.count;
  if (v->grid.columns > 0) return select_over_grid(v);
  const select_args args = {.keypoints = v->keypoints,
                            .features = v->features,
                            .max_features = v->max_features,
                            .rule = v->selection,
                            .kept_described = &described};
  return ops()->select(NULL, &args);
}

/* Selects for one view, also in a group, because selection is launched for each picture. The list of kept features has
 * no room for more than it keeps, so features are chosen in a list that holds all. */
static stage_status select_run(const void *arguments) {
  const view_step *step = arguments;
  cuda_frame_view all = step->view;
  const feature_list *kept = &step->view.features;
  const uint32_t room = all.oriented.capacity, count = *all.oriented.count, listed = count < room ? count : room;
  all.features.keypoint = calloc(room, sizeof *all.features.keypoint);
  all.features.orientation = calloc(room, sizeof *all.features.orientation);
  all.features.capacity = room;
  if (!all.features.keypoint || !all.features.orientation) abort();
  const stage_status st = select_listed(&all, listed);
  const uint32_t left = *kept->count < listed ? *kept->count : listed;
  const uint32_t fitting = left < kept->capacity ? left : kept->capacity;
  memcpy(kept->keypoint, all.features.keypoint, sizeof *kept->keypoint * fitting);
  memcpy(kept->orientation, all.features.orientation, sizeof *kept->orientation * fitting);
  free(all.features.keypoint);
  free(all.features.orientation);
  return st;
}

stage_status cuda_select_launch(const cuda_frame_view *view, cuda_stream stream) {
  const view_step step = {.view = *view};
  return fake_submit(stream, select_run, &step, sizeof step);
}

static stage_status describe_view(const cuda_frame_view *v, const view_step *step, size_t i) {
  const size_t bytes = DESCRIBE_LENGTH * (v->params.descriptor_float ? sizeof(float) : 1);
  void *descriptors = shifted(step->outputs->descriptors, i, v->features.capacity * bytes);
  if (v->shapes) {
    affine_args shaped = shape_args(v, descriptors);
    shaped.features = v->features;
    return run_warped(affine_describe_run, &shaped);
  }
  const describe_args args = {v->octaves,  v->first_octave, v->octave_count, 0,          v->keypoints,
                              v->features, v->params,       v->scales,       descriptors};
  return ops()->describe(NULL, &args);
}

stage_status cuda_describe_launch(const cuda_frame_view *view, cuda_describe_variant variant,
                                  const cuda_outputs *outputs, cuda_stream stream) {
  const view_step step = {.view = *view, .run = describe_view, .outputs = outputs};
  (void)variant;
  return submit_views(&step, stream);
}

/* Does nothing: the CPU describes features in the list's order. */
stage_status cuda_work_order_launch(const cuda_frame_view *view, cuda_stream stream) {
  (void)view;
  (void)stream;
  return STAGE_OK;
}

static stage_status results_view(const cuda_frame_view *v, const view_step *step, size_t i) {
  cuda_feature_record *records = step->outputs->records + i * v->features.capacity;
  uint32_t count = *v->features.count;
  step->counts[i] = (cuda_frame_counts){*v->scratch.candidate_count, *v->keypoints.count, *v->oriented.count, count};
  if (count > v->features.capacity) count = v->features.capacity;
  for (uint32_t n = 0; n < count; n++) {
    const keypoint_list *k = &v->keypoints;
    const uint32_t p = v->features.keypoint[n];
    records[n] = (cuda_feature_record){k->x[p],        k->y[p],      k->sigma[p], v->features.orientation[n],
                                       k->response[p], k->octave[p], k->level[p]};
    if (v->shapes)
      affine_frame_of(&v->shapes[p], k->sigma[p], v->features.orientation[n],
                      step->outputs->frames[i * v->features.capacity + n].a);
  }
  return STAGE_OK;
}

stage_status cuda_results_launch(const cuda_frame_view *view, const cuda_outputs *outputs, cuda_frame_counts *counts,
                                 cuda_stream stream) {
  const view_step step = {.view = *view, .run = results_view, .outputs = outputs, .counts = counts};
  return submit_views(&step, stream);
}
