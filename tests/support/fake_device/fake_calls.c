/* Fake launchers of matching and of the primitives, which call the CPU's functions. */
#include <stdlib.h>
#include <string.h>

#include "cpu/dispatch.h"
#include "cpu/primitives/primitives_threads.h"
#include "cpu/ref/stages_ref.h"
#include "cuda/match/match_cuda.h"
#include "cuda/primitives/primitives_cuda.h"
#include "tests/support/fake_device/fake_device.h"

/* Returns the place where primitives run: the calling thread. */
static prim_backend here(void) { return (prim_backend){NULL, cpu_choose_prims()}; }

/* ------------------------------------------------------------------ matching */

size_t cuda_match_work_layout(uint32_t first_count, uint32_t second_count, bool guided, void *base,
                              cuda_match_work *work) {
  const size_t first = guided ? first_count : 0, second = guided ? second_count : 0;
  match_position *places = base;
  *work = (cuda_match_work){.first_positions = places, .second_positions = places ? places + first : NULL};
  return ((first + second) * sizeof *places + 255) / 256 * 256;
}

typedef struct places_step {
  match_guide guide;
  bool of_second;
  const unsigned char *keypoints;
  uint32_t count;
  match_position *places;
} places_step;

static stage_status places_run(const void *args) {
  const places_step *s = args;
  for (uint32_t i = 0; i < s->count; i++) {
    const float *at = (const float *)(const void *)(s->keypoints + (size_t)i * 24);
    s->places[i] =
        s->of_second ? match_position_second(&s->guide, at[0], at[1]) : match_position_first(&s->guide, at[0], at[1]);
  }
  return STAGE_OK;
}

stage_status cuda_match_positions_launch(const match_guide *guide, bool of_second, const void *keypoints,
                                         uint32_t count, match_position *places, cuda_stream stream) {
  const places_step step = {*guide, of_second, keypoints, count, places};
  return fake_submit(stream, places_run, &step, sizeof step);
}

static stage_status nearest_run(const void *arguments) {
  match_args args = *(const match_args *)arguments;
  size_t bytes;
  if (!match_work_bytes_ref(&args, 1, &bytes)) return STAGE_OVERFLOW;
  args.work = aligned_alloc(64, (bytes + 64) / 64 * 64);
  if (!args.work) return STAGE_OUT_OF_MEMORY;
  const stage_status st = match_ref(NULL, &args);
  free(args.work);
  return st;
}

stage_status cuda_match_nearest_launch(const match_args *args, const cuda_match_work *work, cuda_match_variant variant,
                                       cuda_stream stream) {
  (void)work;
  (void)variant;
  return fake_submit(stream, nearest_run, args, sizeof *args);
}

static stage_status pairs_run(const void *args) {
  const cuda_match_pairs_args *a = args;
  *a->pair_count = 0;
  for (uint32_t i = 0; i < a->count; i++)
    if (match_keeps(&a->limits, a->forward, a->backward, i))
      a->pairs[(*a->pair_count)++] = match_pair_of(i, &a->forward[i]);
  return STAGE_OK;
}

stage_status cuda_match_pairs_launch(const cuda_match_pairs_args *args, cuda_stream stream) {
  return fake_submit(stream, pairs_run, args, sizeof *args);
}

size_t cuda_match_rows_layout(const match_args *args, void *base, cuda_match_work *work) {
  (void)base;
  (void)work;
  return args->limits ? ((size_t)args->first.count + args->second.count) * MATCH_LENGTH : 0;
}

stage_status cuda_match_kept_launch(const match_args *args, const cuda_match_work *work, match_pair *pairs,
                                    uint32_t *pair_count, cuda_stream stream) {
  const cuda_match_pairs_args kept = {.limits = *args->limits,
                                      .forward = args->forward,
                                      .backward = args->backward,
                                      .count = args->first.count,
                                      .pairs = pairs,
                                      .pair_count = pair_count};
  match_args all = *args;
  all.limits = NULL;
  const stage_status st = cuda_match_nearest_launch(&all, work, CUDA_MATCH_TENSOR, stream);
  return st == STAGE_OK ? cuda_match_pairs_launch(&kept, stream) : st;
}

size_t cuda_match_image_layout(uint32_t count, void *base, cuda_match_image *image) {
  *image = (cuda_match_image){.descriptors = base, .count = count};
  return (size_t)count * MATCH_LENGTH;
}

stage_status cuda_match_image_launch(const cuda_match_image *image, cuda_stream stream) {
  (void)image;
  (void)stream;
  return STAGE_OK;
}

void cuda_match_task_layout(cuda_match_task *t, bool mutual, void *keys, size_t *key_bytes, void *nearest,
                            size_t *nearest_bytes) {
  (void)keys;
  *key_bytes += 1;
  match_nearest *at = nearest ? (match_nearest *)nearest + *nearest_bytes / sizeof *at : NULL;
  t->forward = at;
  t->backward = mutual && at ? at + t->first.count : NULL;
  *nearest_bytes += ((size_t)t->first.count + t->second.count) * sizeof *at;
}

static stage_status many_run(const void *args) {
  const cuda_match_many_args *a = args;
  memset(a->keys, 0xff, a->key_bytes);
  for (uint32_t i = 0; i < a->count; i++) {
    const cuda_match_task *t = &a->tasks[i];
    match_nearest *forward = malloc((t->first.count + 1u) * sizeof *forward);
    match_nearest *backward = malloc((t->second.count + 1u) * sizeof *backward);
    const match_args pair = {.type = MATCH_U8,
                             .first = {t->first.descriptors, NULL, t->first.count},
                             .second = {t->second.descriptors, NULL, t->second.count},
                             .forward = forward,
                             .backward = a->mutual ? backward : NULL};
    const bool there = forward && backward;
    if (there) (void)match_ref(NULL, &pair);
    *t->pair_count = 0;
    for (uint32_t k = 0; there && k < t->first.count; k++)
      if (match_keeps(&a->limits, forward, pair.backward, k))
        t->pairs[(*t->pair_count)++] = match_pair_of(k, &forward[k]);
    free(forward);
    free(backward);
    if (!there) return STAGE_OUT_OF_MEMORY;
  }
  return STAGE_OK;
}

stage_status cuda_match_many_launch(const cuda_match_many_args *args, cuda_stream stream) {
  return fake_submit(stream, many_run, args, sizeof *args);
}

/* ------------------------------------------------------------------ primitives */

size_t reduce_scratch_bytes(const reduce_args *args) {
  (void)args;
  return 256;
}

static stage_status reduce_run(const void *args) {
  const reduce_args *a = args;
  if (a->kind == REDUCE_RANGE) {
    const prim_range range = prim_reduce_range(here(), &a->view);
    if (a->first) *a->first = range.low;
    if (a->second) *a->second = range.high;
    return STAGE_OK;
  }
  const double sum = prim_reduce_sum(here(), &a->view);
  *a->first = a->kind == REDUCE_SUM ? sum : prim_plain_nan(sum / (double)(a->view.width * a->view.height));
  return STAGE_OK;
}

stage_status reduce_launch(const reduce_args *args, cuda_stream stream) {
  return fake_submit(stream, reduce_run, args, sizeof *args);
}

size_t tile_stats_scratch_bytes(const tile_stats_args *args) {
  (void)args;
  return 512;
}

static stage_status tiles_run(const void *args) {
  const tile_stats_args *a = args;
  const prim_tiles_args tiles = {a->view, a->tile_width, a->tile_height, a->threshold, a->tiles, (size_t)a->count};
  prim_tile_stats(here(), &tiles);
  return STAGE_OK;
}

stage_status tile_stats_launch(const tile_stats_args *args, cuda_stream stream) {
  return fake_submit(stream, tiles_run, args, sizeof *args);
}

static stage_status histogram_run(const void *args) {
  const histogram_args *a = args;
  prim_view mask = a->view;
  mask.data = a->mask;
  mask.stride_bytes = a->mask_stride_bytes;
  prim_histogram(here(), &a->view, &mask, a->counts);
  return STAGE_OK;
}

stage_status histogram_launch(const histogram_args *args, cuda_stream stream) {
  return fake_submit(stream, histogram_run, args, sizeof *args);
}

static stage_status equalize_run(const void *args) {
  const equalize_args *a = args;
  prim_equalize(here(), &a->view, a->out, a->out_stride_bytes);
  return STAGE_OK;
}

stage_status equalize_launch(const equalize_args *args, cuda_stream stream) {
  return fake_submit(stream, equalize_run, args, sizeof *args);
}

static stage_status convolve_run(const void *args) {
  const convolve_args *a = args;
  const prim_convolve_args signal = {a->signal, a->taps, a->tap_count, a->ends, a->out, a->out_stride_bytes};
  prim_convolve(here(), &signal);
  return STAGE_OK;
}

stage_status convolve_launch(const convolve_args *args, cuda_stream stream) {
  return fake_submit(stream, convolve_run, args, sizeof *args);
}
