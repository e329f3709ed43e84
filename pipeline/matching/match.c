/* The public calls of matching: checks, nearest neighbours of both lists from the CPU or the device, and selection of
   pairs. */
#include "pipeline/matching/match_call.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "cpu/dispatch.h"
#include "cpu/schedule/float_environment.h"
#include "cpu/schedule/threads.h"
#include "pipeline/base/adopt.h"
#include "pipeline/base/features.h"
#include "pipeline/base/memory.h"
#include "pipeline/base/text.h"

_Static_assert(sizeof(hs_nearest) == sizeof(match_nearest) &&
                   offsetof(hs_nearest, second_squared) == offsetof(match_nearest, second_squared) &&
                   HS_NO_FEATURE == MATCH_NONE,
               "the public nearest is the stage's");
_Static_assert(sizeof(hs_match_pair) == sizeof(match_pair) &&
                   offsetof(hs_match_pair, next_distance) == offsetof(match_pair, next_distance),
               "the public pair is the stage's");
_Static_assert((int)HS_DESCRIPTOR_U8 == (int)MATCH_U8 && (int)HS_DESCRIPTOR_F32 == (int)MATCH_F32 &&
                   (int)HS_GUIDE_HOMOGRAPHY == (int)MATCH_HOMOGRAPHY &&
                   (int)HS_GUIDE_FUNDAMENTAL == (int)MATCH_FUNDAMENTAL &&
                   (int)HS_DESCRIPTOR_LENGTH == (int)MATCH_LENGTH,
               "values of the public enumerations are the stage's");

OPTIONS_END_WITH(hs_match_options, guide_tolerance);
static const options_kind kind = OPTIONS_KIND(hs_match_options, ratio);
static const hs_match_options defaults = {.struct_size = sizeof defaults,
                                          .ratio = 0.8,
                                          .mutual = 1,
                                          .guide_matrix = {1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0},
                                          .guide_tolerance = 4.0};

hs_status hs_match_options_init_sized(hs_match_options *options, size_t struct_size) {
  return options_give(options, struct_size, &defaults, kind);
}

void hs_matches_free(hs_matches *matches) {
  if (!matches) return;
  hs_memory_release(matches->allocator, matches->pairs);
  memset(matches, 0, sizeof *matches);
}

/* ------------------------------------------------------------------ checks */

/* Buffer for the reason of a refusal. */
typedef struct match_reason {
  char *message;
  size_t bytes;
} match_reason;

#define REFUSE(why, status, ...) (hs_message_set((why)->message, (why)->bytes, __VA_ARGS__), (status))

enum { MATCH_REASON_BYTES = 256 };

/* Sets *mine to the defaults, and replaces them by the caller's options. */
static hs_status adopt(const match_reason *why, const hs_match_options *callers, hs_match_options *mine) {
  char reason[ADOPT_REASON_BYTES];
  *mine = defaults;
  if (!callers || options_adopt(mine, callers, kind, reason) == HS_OK) return HS_OK;
  return REFUSE(why, HS_ERR_OPTION, "%s", reason);
}

static hs_status check_options(const match_reason *why, const hs_match_options *o) {
  if (!(o->ratio >= 0.0 && o->ratio <= 1.0))
    return REFUSE(why, HS_ERR_OPTION, "match options.ratio is %g, expected 0..1", o->ratio);
  if (!(o->max_distance >= 0.0))
    return REFUSE(why, HS_ERR_OPTION, "match options.max_distance is %g, expected 0 or more", o->max_distance);
  if (o->mutual != 0 && o->mutual != 1)
    return REFUSE(why, HS_ERR_OPTION, "match options.mutual is %d, expected 0 or 1", (int)o->mutual);
  if ((int)o->guide < HS_GUIDE_NONE || (int)o->guide > HS_GUIDE_FUNDAMENTAL)
    return REFUSE(why, HS_ERR_OPTION, "match options.guide is %d, expected 0..2", (int)o->guide);
  if (o->guide == HS_GUIDE_NONE) return HS_OK;
  if (!(o->guide_tolerance > 0.0))
    return REFUSE(why, HS_ERR_OPTION, "match options.guide_tolerance is %g, expected above 0", o->guide_tolerance);
  for (int i = 0; i < 9; i++)
    if (!isfinite(o->guide_matrix[i]))
      return REFUSE(why, HS_ERR_OPTION, "match options.guide_matrix[%d] is not finite", i);
  return HS_OK;
}

static hs_status check_list(const match_reason *why, const hs_features *f, bool guided, const char *name,
                            match_list *list) {
  if (f->count >= MATCH_NONE)
    return REFUSE(why, HS_ERR_LIMIT, "%s has %zu features, expected fewer than 2^32 - 1", name, f->count);
  if (!RESERVED_IS_CLEAR(f->reserved))
    return REFUSE(why, HS_ERR_ARGUMENT, "%s.reserved is set: start with {0}, or use a later library", name);
  if (f->count > 0 && f->descriptor_type != HS_DESCRIPTOR_U8 && f->descriptor_type != HS_DESCRIPTOR_F32)
    return REFUSE(why, HS_ERR_ARGUMENT, "%s has no descriptors (type %d)", name, (int)f->descriptor_type);
  if (f->count > 0 && !f->descriptors) return REFUSE(why, HS_ERR_ARGUMENT, "%s.descriptors is null", name);
  if (f->count > 0 && guided && !f->keypoints)
    return REFUSE(why, HS_ERR_ARGUMENT, "%s.keypoints is null, which the guide needs", name);
  *list = (match_list){f->keypoints, f->descriptors, (uint32_t)f->count};
  return HS_OK;
}

/* Returns the square of a limit. 0 means no limit, so the square of a tiny limit must not underflow to 0. */
static double limit_squared(double limit) {
  const double squared = limit * limit;
  return limit > 0.0 && squared < DBL_MIN ? DBL_MIN : squared;
}

static hs_status check(const match_reason *why, const hs_features *first, const hs_features *second,
                       const hs_match_options *options, match_request *r) {
  hs_match_options o;
  if (!first || !second) return REFUSE(why, HS_ERR_ARGUMENT, "a list of features is null");
  hs_status st = adopt(why, options, &o);
  if (st == HS_OK) st = check_options(why, &o);
  if (st != HS_OK) return st;
  memset(r, 0, sizeof *r);
  /* if the square of a tolerance exceeds double, the tolerance counts as infinite */
  const double tolerance_squared = o.guide_tolerance * o.guide_tolerance;
  if (o.guide != HS_GUIDE_NONE && tolerance_squared < INFINITY) {
    r->guide.kind = (match_guide_kind)o.guide;
    r->guide.tolerance_squared = tolerance_squared;
    memcpy(r->guide.matrix, o.guide_matrix, sizeof r->guide.matrix);
  }
  const bool guided = r->guide.kind != MATCH_UNGUIDED;
  st = check_list(why, first, guided, "the first list", &r->first);
  if (st == HS_OK) st = check_list(why, second, guided, "the second list", &r->second);
  if (st != HS_OK) return st;
  if (first->count > 0 && second->count > 0 && first->descriptor_type != second->descriptor_type)
    return REFUSE(why, HS_ERR_ARGUMENT, "one list has 8-bit descriptors, the other float ones");
  char reason[MATCH_REASON_BYTES];
  if (!origin_comparable(first, second, reason, sizeof reason)) return REFUSE(why, HS_ERR_ARGUMENT, "%s", reason);
  r->type = (match_type)(first->count > 0 ? first : second)->descriptor_type;
  r->limits = (match_limits){limit_squared(o.ratio), limit_squared(o.max_distance)};
  /* A list of one feature has no second nearest neighbour for the ratio test, so every feature would pass. So matches
     must then be mutual, which compares the features of the other list. With a guide this is not needed: a lone
     candidate has been selected from many others. */
  r->mutual = o.mutual != 0 || (o.ratio > 0.0 && second->count == 1 && !guided);
  return HS_OK;
}

hs_status match_check_alone(const hs_features *first, const hs_features *second, const hs_match_options *options,
                            match_request *request, char *message, size_t message_bytes) {
  const match_reason why = {message, message_bytes};
  return check(&why, first, second, options, request);
}

hs_status match_check(hs_context *c, const hs_features *first, const hs_features *second,
                      const hs_match_options *options, match_request *request) {
  char message[ERROR_TEXT_BYTES / 2] = "";
  const hs_status st = match_check_alone(first, second, options, request, message, sizeof message);
  return st == HS_OK ? st : MATCH_FAIL(c, st, "%s", message);
}

hs_status match_check_options(const hs_match_options *options, hs_match_options *full, char *message,
                              size_t message_bytes) {
  const match_reason why = {message, message_bytes};
  const hs_status st = adopt(&why, options, full);
  return st == HS_OK ? check_options(&why, full) : st;
}

/* ------------------------------------------------------------------ room */

/* Memory of a call: nearest neighbours in both directions, data of a guide, memory of the backend. */
typedef struct match_memory_for {
  match_nearest *forward, *backward; /* backward: null if not wanted */
  match_nearest *slice;              /* backward neighbours of one slice; null: slices are not needed */
  match_position *first, *second;
  unsigned char *work;
  unsigned char *memory; /* the single allocation that contains all parts */
} match_memory_for;

enum { MATCH_ALIGNMENT = 64 };

bool match_add_part(size_t *total, size_t count, size_t size, size_t *offset) {
  size_t bytes;
  *offset = *total;
  return hs_size_mul(count, size, &bytes) && hs_size_add(bytes, MATCH_ALIGNMENT - 1, &bytes) &&
         hs_size_add(*total, bytes & ~(size_t)(MATCH_ALIGNMENT - 1), total);
}

hs_status match_take_memory(hs_context *c, size_t bytes, unsigned char **memory) {
  if (!c) {
    *memory = hs_memory_alloc(NULL, bytes);
    return *memory ? HS_OK : HS_ERR_MEMORY;
  }
  const uint64_t limit = c->options.max_memory_bytes;
  if (limit > 0 && bytes > limit)
    return CONTEXT_FAIL(c, HS_ERR_LIMIT, "matching needs %zu bytes of workspace, max_memory_bytes is %llu", bytes,
                        (unsigned long long)limit);
  if (bytes > c->match_bytes) {
    hs_memory_release(c->options.allocator, c->match_memory);
    c->match_bytes = 0;
    c->match_memory = hs_memory_alloc(c->options.allocator, bytes);
    if (!c->match_memory)
      return CONTEXT_FAIL(c, HS_ERR_MEMORY, "cannot allocate %zu bytes of workspace for matching", bytes);
    c->match_bytes = bytes;
  }
  *memory = c->match_memory;
  return HS_OK;
}

static hs_status make_memory(hs_context *c, const match_request *r, bool backward, size_t positions, size_t work_bytes,
                             match_memory_for *parts) {
  size_t total = 0, at[6];
  const bool fits = match_add_part(&total, r->first.count, sizeof *parts->forward, &at[0]) &&
                    match_add_part(&total, backward ? r->second.count : 0, sizeof *parts->backward, &at[1]) &&
                    match_add_part(&total, positions ? r->first.count : 0, sizeof *parts->first, &at[2]) &&
                    match_add_part(&total, positions ? r->second.count : 0, sizeof *parts->second, &at[3]) &&
                    match_add_part(&total, work_bytes, 1, &at[4]) &&
                    match_add_part(&total, parts->slice ? r->second.count : 0, sizeof *parts->slice, &at[5]);
  if (!fits) return MATCH_FAIL(c, HS_ERR_LIMIT, "matching does not fit the address space");
  unsigned char *m = NULL;
  const hs_status st = match_take_memory(c, total, &m);
  if (st != HS_OK) return st;
  parts->memory = m;
  parts->forward = (match_nearest *)(void *)(m + at[0]);
  parts->backward = backward ? (match_nearest *)(void *)(m + at[1]) : NULL;
  parts->first = positions ? (match_position *)(void *)(m + at[2]) : NULL;
  parts->second = positions ? (match_position *)(void *)(m + at[3]) : NULL;
  parts->work = m + at[4];
  parts->slice = parts->slice ? (match_nearest *)(void *)(m + at[5]) : NULL;
  return HS_OK;
}

/* ------------------------------------------------------------------ the nearest */

/* Size of a slice of rows: small enough that the progress function is called often, large enough that joining the
   backward neighbours of slices costs little. SLICE_PAIRS: approximate number of pairs of features per slice. */
enum { SLICE_PAIRS = 1 << 28, SLICE_ROWS_MIN = 256 };

static uint32_t slice_rows(const hs_context *c, const match_request *r) {
  const uint64_t rows = SLICE_PAIRS / ((uint64_t)r->second.count + 1), least = SLICE_ROWS_MIN;
  const uint64_t wanted = rows < least ? least : rows;
  return c && c->progress && wanted < r->first.count ? (uint32_t)wanted : r->first.count;
}

/* Joins the backward neighbours of a slice, which begins at row `first`, to those of all rows. */
static void join_slice(const match_nearest *slice, uint32_t first, uint32_t count, match_nearest *backward) {
  for (uint32_t j = 0; j < count; j++) {
    const match_nearest *n = &slice[j];
    if (n->nearest != MATCH_NONE) match_take(&backward[j], first + n->nearest, n->nearest_squared);
    if (n->second != MATCH_NONE) match_take(&backward[j], first + n->second, n->second_squared);
  }
}

/* Matches all rows in slices. The order of candidates is total, so the result does not depend on the slices. all:
   arguments for all rows. */
static hs_status run_slices(hs_context *c, stage_queue *queue, const stage_ops *ops, const match_args *all,
                            uint32_t rows, match_nearest *slice) {
  const size_t bytes = MATCH_LENGTH * (all->type == MATCH_F32 ? sizeof(float) : 1);
  hs_status st = c ? context_progress(c, 0, all->first.count) : HS_OK;
  uint32_t first = 0;
  for (uint32_t j = 0; slice && j < all->second.count; j++) all->backward[j] = match_nearest_none();
  do {
    const uint32_t left = all->first.count - first, count = left < rows ? left : rows;
    match_args args = *all;
    if (first > 0) { /* the pointers of an empty list may be null */
      args.first.descriptors = (const unsigned char *)all->first.descriptors + first * bytes;
      args.first.positions = all->first.positions ? all->first.positions + first : NULL;
      args.forward = all->forward + first;
    }
    args.first.count = count;
    args.backward = slice ? slice : all->backward;
    args.second_is_packed = first > 0 && all->guide == MATCH_UNGUIDED;
    if (st == HS_OK && ops->match(queue, &args) != STAGE_OK) st = MATCH_FAIL(c, HS_ERR_INTERNAL, "matching failed");
    if (st == HS_OK && slice) join_slice(slice, first, all->second.count, all->backward);
    first += count;
    if (st == HS_OK && c) st = context_progress(c, first, all->first.count);
  } while (st == HS_OK && first < all->first.count);
  return st;
}

/* backward: the neighbours serve for mutual matches alone. Slices need all neighbours, because they are joined. */
static hs_status run_cpu(hs_context *c, const match_request *r, bool backward, match_memory_for *parts) {
  stage_ops chosen;
  const stage_ops *ops = c ? &c->ops : &chosen;
  stage_queue *queue = c ? c->queue : NULL;
  if (!c && !cpu_choose_ops(&chosen, NULL, NULL, 0)) return HS_ERR_OPTION;
  const bool guided = r->guide.kind != MATCH_UNGUIDED;
  const uint32_t rows = slice_rows(c, r);
  match_nearest asked; /* never read: the size depends only on whether backward is null */
  match_args args = {.type = r->type,
                     .first = {r->first.descriptors, NULL, r->first.count},
                     .second = {r->second.descriptors, NULL, r->second.count},
                     .guide = r->guide.kind,
                     .tolerance_squared = r->guide.tolerance_squared,
                     .backward = backward ? &asked : NULL,
                     .limits = backward && rows == r->first.count ? &r->limits : NULL};
  size_t work_bytes;
  if (!ops->match_work_bytes(&args, queue_threads(queue), &work_bytes))
    return MATCH_FAIL(c, HS_ERR_LIMIT, "matching does not fit the address space");
  parts->slice = backward && rows < r->first.count ? &asked : NULL; /* not null: make_memory allocates it */
  const hs_status st = make_memory(c, r, backward, guided, work_bytes, parts);
  if (st != HS_OK) return st;
  for (uint32_t i = 0; guided && i < r->first.count; i++)
    parts->first[i] = match_position_first(&r->guide, r->first.keypoints[i].x, r->first.keypoints[i].y);
  for (uint32_t i = 0; guided && i < r->second.count; i++)
    parts->second[i] = match_position_second(&r->guide, r->second.keypoints[i].x, r->second.keypoints[i].y);
  args.first.positions = parts->first;
  args.second.positions = parts->second;
  args.forward = parts->forward;
  args.backward = parts->backward;
  args.work = parts->work;
  return run_slices(c, queue, ops, &args, rows, parts->slice);
}

void match_drop_memory(const hs_context *c, unsigned char *memory) {
  if (!c) hs_memory_release(NULL, memory);
}

/* ------------------------------------------------------------------ pairs */

/* Ensures capacity for `count` pairs. */
static hs_status reserve(hs_context *c, size_t count, hs_matches *matches) {
  const hs_allocator *allocator = c ? c->options.allocator : NULL;
  size_t bytes;
  if (count <= matches->capacity) return HS_OK;
  hs_match_pair *pairs = hs_size_mul(count, sizeof *pairs, &bytes) ? hs_memory_alloc(allocator, bytes) : NULL;
  if (!pairs) return MATCH_FAIL(c, HS_ERR_MEMORY, "out of memory for %zu pairs", count);
  hs_memory_release(matches->allocator, matches->pairs);
  *matches = (hs_matches){.pairs = pairs, .capacity = count, .allocator = allocator};
  return HS_OK;
}

/* Collects the pairs of a request from forward [first.count] and, if mutual, backward [second.count]. *matches changes
   only on success. */
static hs_status collect(hs_context *c, const match_request *r, const match_nearest *forward,
                         const match_nearest *backward, hs_matches *matches) {
  size_t count = 0, k = 0;
  for (uint32_t i = 0; i < r->first.count; i++) count += match_keeps(&r->limits, forward, backward, i);
  const hs_status st = reserve(c, count, matches);
  if (st != HS_OK) return st;
  for (uint32_t i = 0; i < r->first.count; i++) {
    if (!match_keeps(&r->limits, forward, backward, i)) continue;
    const match_pair p = match_pair_of(i, &forward[i]);
    matches->pairs[k++] = (hs_match_pair){p.first, p.second, p.distance, p.next_distance};
  }
  matches->count = count;
  return HS_OK;
}

/* Runs a request on the CPU. Either matches or nearest is not null. */
static hs_status match_on_cpu(hs_context *c, const match_request *r, hs_matches *matches, hs_nearest *nearest) {
  match_memory_for parts = {0};
  hs_status st = run_cpu(c, r, matches && r->mutual, &parts);
  if (st == HS_OK && matches) st = collect(c, r, parts.forward, parts.backward, matches);
  if (st == HS_OK && nearest && r->first.count > 0)
    memcpy(nearest, parts.forward, r->first.count * sizeof *parts.forward);
  match_drop_memory(c, parts.memory);
  return st;
}

/* Runs a request on the context's device. */
static hs_status match_on_device(hs_context *c, const match_request *r, const match_placement *device,
                                 hs_matches *matches, hs_nearest *nearest) {
  const match_pair *pairs;
  size_t count;
  hs_status st = context_progress(c, 0, 1);
  if (st != HS_OK) return st;
  if (nearest) return c->engine->matching->nearest(c, r, device, (match_nearest *)(void *)nearest, NULL);
  if (!matches) return HS_OK; /* hs_find_nearest for an empty first list: there is nothing to search */
  st = c->engine->matching->pairs(c, r, device, &pairs, &count);
  if (st == HS_OK) st = reserve(c, count, matches);
  if (st != HS_OK) return st;
  if (count > 0) memcpy(matches->pairs, pairs, count * sizeof *pairs);
  matches->count = count;
  return HS_OK;
}

hs_status match_run(hs_context *c, const match_request *r, const match_placement *device, hs_matches *matches,
                    hs_nearest *nearest) {
  return c && c->engine->matching ? match_on_device(c, r, device, matches, nearest)
                                  : match_on_cpu(c, r, matches, nearest);
}

hs_status hs_match(hs_context *c, const hs_features *first, const hs_features *second, const hs_match_options *options,
                   hs_matches *matches) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  const match_placement device = {NULL, false};
  match_request request;
  if (c) context_clear_error(c);
  if (!matches) return MATCH_FAIL(c, HS_ERR_ARGUMENT, "matches is null");
  const hs_status st = match_check(c, first, second, options, &request);
  return st == HS_OK ? match_run(c, &request, &device, matches, NULL) : st;
}

hs_status hs_find_nearest(hs_context *c, const hs_features *first, const hs_features *second,
                          const hs_match_options *options, hs_nearest *nearest) {
  FLOAT_ENVIRONMENT_OF_LIBRARY;
  const match_placement device = {NULL, false};
  match_request request;
  if (c) context_clear_error(c);
  const hs_status st = match_check(c, first, second, options, &request);
  if (st != HS_OK) return st;
  if (!nearest && first->count > 0) return MATCH_FAIL(c, HS_ERR_ARGUMENT, "nearest is null");
  return match_run(c, &request, &device, NULL, nearest);
}
