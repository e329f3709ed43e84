/* The split of a frame's octaves between a GPU and the CPU, and the measurement that chooses it. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os_threads.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"
#include "pipeline/context/engine.h"
#include "pipeline/context/image_view.h"
#include "pipeline/context/options.h"
#include "pipeline/frame/run_frame.h"
#include "stages/portable.h"
#include "stages/select.h"

/* Each split is timed in rounds of ROUND_TRIALS frames, by turns with all octaves on the GPU, because the clocks of
   both devices drift. The first split has one octave less than all; each next one has one less again, until all frames
   of a split's first round take GIVE_UP_RATIO times as long as on the GPU alone. */
enum { ROUND_TRIALS = 3 };
_Static_assert(SPLIT_TRIALS % ROUND_TRIALS == 0, "whole rounds");
static const double GIVE_UP_RATIO = 1.5;

/* Appends the CPU's features (those of the small octaves) to the GPU's. False: they exceed the capacity. */
static bool append(hs_context *c, const workspace *w, frame_result *result) {
  feature_records r;
  const uint32_t count = *w->features.count, capacity = c->engine->split->records(c, &r), first = result->count;
  if (count > capacity - first) {
    c->engine->split->want_capacity(c, count + count / 4 + 32);
    return false;
  }
  for (uint32_t i = 0; i < count; i++)
    r.keypoints[first + i] = workspace_keypoint(&w->keypoints, w->features.keypoint[i], w->features.orientation[i]);
  for (uint32_t i = 0; r.frames && i < count; i++) r.frames[first + i] = workspace_frame(w, i);
  if (count > 0 && r.descriptor_bytes > 0)
    memcpy((unsigned char *)r.descriptors + first * r.descriptor_bytes, w->descriptors, count * r.descriptor_bytes);
  result->count += count;
  return true;
}

/* ------------------------------------------------- selection among finished features */

/* Returns the bits of the response. Responses are not negative, so their bits as integers have the order of the
   values. */
static uint32_t response_key(const void *list, uint32_t i) {
  return hs_float_bits(((const hs_keypoint *)list)[i].response);
}

static uint32_t sigma_key(const void *list, uint32_t i) { return hs_float_bits(((const hs_keypoint *)list)[i].sigma); }

static uint32_t level_key(const void *list, uint32_t i) {
  const hs_keypoint *k = &((const hs_keypoint *)list)[i];
  return select_level_key(k->octave, k->level);
}

/* Returns whether records i - 1 and i are features of the same keypoint: they differ only in orientation. */
static bool joins(const void *list, uint32_t i) {
  const hs_keypoint *b = &((const hs_keypoint *)list)[i];
  hs_keypoint a = b[-1];
  a.orientation = b->orientation;
  return memcmp(&a, b, sizeof a) == 0;
}

uint32_t select_records(const feature_records *r, uint32_t count, uint32_t most, hs_selection selection) {
  const select_key key = selection == HS_SELECT_SCALE ? sigma_key : response_key;
  uint32_t kept = 0;
  if (count <= most) return count;
  if (selection == HS_SELECT_LEVELS) {
    const uint32_t first = select_first_level(r->keypoints, count, most, level_key, joins);
    for (uint32_t i = first; i < count; i++) feature_records_move(r, i, i - first);
    return count - first;
  }
  select_cut cut = select_find_cut(r->keypoints, count, most, key);
  for (uint32_t i = 0; i < count; i++) {
    if (!select_keeps(&cut, key(r->keypoints, i))) continue;
    feature_records_move(r, i, kept++);
  }
  return kept;
}

/* Selects the best features of both parts. Each part kept its own best max_features (with a grid only the CPU did), so
   the best of all are among them. */
static hs_status select_best(hs_context *c, const frame_request *r, frame_result *result) {
  feature_records records;
  const uint32_t most = (uint32_t)c->options.max_features;
  if (most == 0 || result->count <= most) return HS_OK;
  (void)c->engine->split->records(c, &records);
  if (options_use_grid(&c->options))
    return grid_choice_records(c, &records, r->source.width, r->source.height, &result->count);
  result->count = select_records(&records, result->count, most, c->options.selection);
  return HS_OK;
}

/* Adds up the counts of both parts. */
static void count_both(hs_context *c, const hs_statistics *on_cpu, uint32_t features) {
  c->statistics.frames++;
  c->statistics.candidates += on_cpu->candidates;
  c->statistics.keypoints += on_cpu->keypoints;
  c->statistics.features = features;
}

/* Runs the frame once with the first `octaves` on the GPU, fewer than the image has. *repeat: a list was too short; it
   has been grown. */
static hs_status run_split(hs_context *c, const frame_request *r, int32_t octaves, frame_result *result, bool *repeat) {
  const frame_placement placement = {.octaves = octaves};
  const hs_statistics before = c->statistics;
  frame_request small = *r;
  workspace work;
  *repeat = false;
  hs_status st = c->engine->split->begin(c, r, &placement);
  if (st != HS_OK) return st;
  small.skipped_octaves = octaves;
  small.may_tile = false;
  st = c->engine->split->level(c, &small.handed_over);
  if (st == HS_OK) st = run_frame(c, &small, &work);
  const hs_statistics on_cpu = c->statistics;
  const hs_status ended = c->engine->split->finish(c, &placement, result, repeat);
  if (st == HS_OK) st = ended;
  c->statistics.frames = before.frames; /* each part has counted a frame, but the complete frame counts once */
  if (st != HS_OK || *repeat) return st;
  *repeat = !append(c, &work, result);
  if (*repeat) {
    c->statistics.regrown_frames++;
    return HS_OK;
  }
  st = select_best(c, r, result);
  if (st == HS_OK) count_both(c, &on_cpu, result->count);
  return st;
}

static hs_status run(hs_context *c, const frame_request *r, int32_t octaves, int32_t all, frame_result *result) {
  const frame_placement whole = {0};
  const way_request request = {.on_device = true, .split = true};
  if (octaves >= all) return c->engine->split->run(c, r, &whole, result);
  hs_status st = HS_OK;
  for (bool repeat = true; repeat && st == HS_OK;) st = run_split(c, r, octaves, result, &repeat);
  const way_choice choice = plan_choose_way(&request);
  context_note_way(c, &choice); /* replaces the way that the CPU's part recorded */
  return st;
}

static int by_time(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double split_gain(const double *whole, const double *divided) {
  double a[SPLIT_TRIALS], b[SPLIT_TRIALS];
  memcpy(a, whole, sizeof a);
  memcpy(b, divided, sizeof b);
  qsort(a, SPLIT_TRIALS, sizeof *a, by_time);
  qsort(b, SPLIT_TRIALS, sizeof *b, by_time);
  const double spread_a = a[3 * SPLIT_TRIALS / 4] - a[SPLIT_TRIALS / 4],
               spread_b = b[3 * SPLIT_TRIALS / 4] - b[SPLIT_TRIALS / 4];
  return a[SPLIT_TRIALS / 2] - b[SPLIT_TRIALS / 2] - (spread_a > spread_b ? spread_a : spread_b);
}

/* Times ROUND_TRIALS frames with a split. One frame before them does not count: it may record a graph, grow lists and
   lay out the device's memory anew. */
static hs_status time_round(hs_context *c, const frame_request *r, int32_t octaves, int32_t all, double *seconds) {
  hs_status st = HS_OK;
  for (int trial = -1; trial < ROUND_TRIALS && st == HS_OK; trial++) {
    frame_result result;
    const double start = clock_s(CLOCK_MONOTONIC);
    st = run(c, r, octaves, all, &result);
    if (trial >= 0) seconds[trial] = clock_s(CLOCK_MONOTONIC) - start;
  }
  return st;
}

/* Times a split by turns with the GPU alone. *gain: as split_gain; *hopeless: the split takes so long that those with
   fewer octaves on the GPU are not worth a trial. */
static hs_status time_split(hs_context *c, const frame_request *r, int32_t octaves, int32_t all, double *gain,
                            bool *hopeless) {
  double whole[SPLIT_TRIALS], divided[SPLIT_TRIALS];
  hs_status st = HS_OK;
  for (int first = 0; first < SPLIT_TRIALS && st == HS_OK && !*hopeless; first += ROUND_TRIALS) {
    st = time_round(c, r, all, all, &whole[first]);
    if (st == HS_OK) st = time_round(c, r, octaves, all, &divided[first]);
    if (st != HS_OK || first > 0) continue;
    *hopeless = true;
    for (int i = 0; i < ROUND_TRIALS; i++) *hopeless = *hopeless && divided[i] > GIVE_UP_RATIO * whole[i];
  }
  if (st == HS_OK && !*hopeless) *gain = split_gain(whole, divided);
  return st;
}

/* Measures which split is fastest for pictures like this one: all octaves on the GPU unless another one gains more than
   its trials differ. */
static hs_status measure(hs_context *c, const frame_request *r, int32_t all, int32_t *split) {
  const hs_statistics before = c->statistics;
  double best = 0;
  hs_status st = HS_OK;
  *split = all;
  for (int32_t octaves = all - 1; octaves >= 1; octaves--) {
    double gain = 0;
    bool hopeless = false;
    st = time_split(c, r, octaves, all, &gain, &hopeless);
    if (st != HS_OK && hs_status_class_of(st) != HS_CLASS_DEVICE) {
      /* if the CPU lacks memory or threads for its octaves, further splits are impossible, but not the frame */
      context_clear_error(c);
      st = HS_OK;
      break;
    }
    if (st != HS_OK || hopeless) break;
    if (gain > best) {
      best = gain;
      *split = octaves;
    }
  }
  c->statistics.frames = before.frames; /* trials do not count as frames */
  return st;
}

hs_status gpu_cpu_split_open(hs_context *c, const hs_context *owner, const char *variant, char *message, size_t bytes) {
  split_table *table = owner ? owner->engine_shared : hs_memory_alloc(c->options.allocator, sizeof *table);
  if (!table) {
    hs_message_set(message, bytes, "out of memory: %zu bytes for measured splits", sizeof *table);
    return HS_ERR_MEMORY;
  }
  if (!owner) {
    memset(table, 0, sizeof *table);
    if (pthread_mutex_init(&table->lock, NULL) != 0) {
      hs_memory_release(c->options.allocator, table);
      hs_message_set(message, bytes, "cannot make a lock");
      return HS_ERR_THREAD;
    }
  }
  c->engine_shared = table;
  return c->engine->split->open(c, owner, variant, message, bytes);
}

void gpu_cpu_split_close(hs_context *c) {
  split_table *table = c->engine_shared;
  c->engine->split->close(c);
  c->engine_shared = NULL;
  if (c->is_worker || !table) return;
  pthread_mutex_destroy(&table->lock);
  hs_memory_release(c->options.allocator, table);
}

/* Returns the stored split for pictures of this size; 0: none. The caller holds the lock. */
static int32_t kept_for(const split_table *table, const frame_request *r) {
  for (int i = 0; i < SPLITS_KEPT; i++) {
    const kept_split *k = &table->kept[i];
    if (k->split > 0 && k->width == r->source.width && k->height == r->source.height) return k->split;
  }
  return 0;
}

/* Chooses the split: from the options, or measured and stored for this size. A worker has all octaves on the GPU: while
   it computes small octaves of a frame, other frames in flight already keep it busy, and the CPU feeds it. The
   measurement holds the lock, because threads that measured at the same time would disturb each other. */
static hs_status choose(hs_context *c, const frame_request *r, int32_t all, int32_t *split) {
  split_table *table = c->engine_shared;
  *split = c->options.split;
  if (*split > 0 || all == 0) return HS_OK;
  if (c->is_worker) {
    *split = all;
    return HS_OK;
  }
  hs_status st = HS_OK;
  pthread_mutex_lock(&table->lock);
  *split = kept_for(table, r);
  if (*split == 0) {
    st = measure(c, r, all, split);
    if (st == HS_OK) {
      table->kept[table->next] = (kept_split){r->source.width, r->source.height, *split};
      table->next = (table->next + 1) % SPLITS_KEPT;
    }
  }
  pthread_mutex_unlock(&table->lock);
  return st;
}

static hs_status run_divided(hs_context *c, const frame_request *r, frame_result *result) {
  pyramid_geometry geometry;
  int32_t split = 0;
  if (pyramid_geometry_of(r->source.width, r->source.height, &c->rules, &geometry) != STAGE_OK)
    return CONTEXT_FAIL(c, HS_ERR_LIMIT, "a %d x %d image does not fit the address space", r->source.width,
                        r->source.height);
  const hs_status st = choose(c, r, geometry.octave_count, &split);
  return st == HS_OK ? run(c, r, split, geometry.octave_count, result) : st;
}

hs_status gpu_cpu_split_run(hs_context *c, const frame_request *r, const frame_placement *placement,
                            frame_result *result) {
  frame_request equalized = *r;
  hs_status st = HS_OK;
  if (placement->source_on_device || placement->resident || placement->user_keypoints.count > 0)
    return c->engine->split->run(c, r, placement, result);
  /* the CPU may compute all octaves, so the host equalizes the picture */
  if (r->equalize) st = equalize_picture(c, &equalized.source);
  equalized.equalize = false;
  return st == HS_OK ? run_divided(c, &equalized, result) : st;
}

size_t gpu_cpu_split_report(const hs_context *c, char *text, size_t bytes) {
  char split[32] = "measured for each size";
  if (c->options.split > 0) snprintf(split, sizeof split, "%d on the device", c->options.split);
  const size_t at = c->engine->split->report(c, text, bytes);
  snprintf(text + at, bytes - at, "octaves: %s, the smaller ones by the CPU (descriptors: %s)\n", split,
           c->ops.variant[STAGE_DESCRIBE]);
  return at + strlen(text + at);
}
