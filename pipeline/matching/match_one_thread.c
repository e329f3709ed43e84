/*
 * Matching of one pair on one thread.
 *
 * A guided request runs unchanged. For other requests the two lists are exchanged: the stage packs its second list,
 * while successive pairs usually share their first list. The order of candidates is total, so this changes no result.
 */
#include "pipeline/matching/match_call.h"

#include <string.h>

#include "pipeline/base/memory.h"

enum { PART_ALIGNMENT = 64 };

static size_t padded(size_t bytes) { return (bytes + PART_ALIGNMENT - 1) / PART_ALIGNMENT * PART_ALIGNMENT; }

static hs_status grow(const hs_allocator *allocator, size_t bytes, unsigned char **memory, size_t *capacity) {
  if (bytes <= *capacity) return HS_OK;
  hs_memory_release(allocator, *memory);
  *memory = hs_memory_alloc(allocator, bytes);
  *capacity = *memory ? bytes : 0;
  return *memory ? HS_OK : HS_ERR_MEMORY;
}

void match_one_thread_free(one_thread_matcher *m) {
  hs_memory_release(m->allocator, m->nearest);
  hs_memory_release(m->allocator, m->work);
  *m = (one_thread_matcher){.ops = m->ops, .allocator = m->allocator};
}

/* Returns the bytes of the nearest neighbours of both lists. Counts are below 2^32, so the sums fit 64 bits. */
static size_t nearest_bytes(size_t first, size_t second) {
  return padded(first * sizeof(match_nearest)) + padded(second * sizeof(match_nearest));
}

static size_t guide_bytes(size_t first, size_t second) {
  return padded(first * sizeof(match_position)) + padded(second * sizeof(match_position));
}

uint64_t match_one_thread_bytes(const stage_ops *ops, match_type type, size_t first_count, size_t second_count) {
  match_nearest asked; /* never read: the size depends only on whether backward is null */
  const match_args args = {.type = type,
                           .first = {NULL, NULL, (uint32_t)second_count},
                           .second = {NULL, NULL, (uint32_t)first_count},
                           .backward = &asked};
  const match_limits ratio = {.ratio_squared = 0.5}; /* so that distances may be bounded first */
  match_args ways[3] = {args, args, args};
  ways[1].limits = &ratio;
  ways[2] = (match_args){.type = type,
                         .first = {NULL, NULL, (uint32_t)first_count},
                         .second = {NULL, NULL, (uint32_t)second_count},
                         .guide = MATCH_FUNDAMENTAL,
                         .backward = &asked};
  size_t most = 0;
  for (int way = 0; way < 3; way++) {
    size_t work;
    if (!ops->match_work_bytes(&ways[way], 1, &work)) return UINT64_MAX;
    if (work > most) most = work;
  }
  return (uint64_t)most + nearest_bytes(first_count, second_count);
}

/* Writes the guide's data of the features to `memory`, after the nearest neighbours. */
static void fill_guides(const match_request *r, unsigned char *memory, match_args *args) {
  match_position *first = (match_position *)(void *)memory,
                 *second = (match_position *)(void *)(memory + padded(r->first.count * sizeof(match_position)));
  for (uint32_t i = 0; i < r->first.count; i++)
    first[i] = match_position_first(&r->guide, r->first.keypoints[i].x, r->first.keypoints[i].y);
  for (uint32_t i = 0; i < r->second.count; i++)
    second[i] = match_position_second(&r->guide, r->second.keypoints[i].x, r->second.keypoints[i].y);
  args->first.positions = first;
  args->second.positions = second;
}

static hs_status prepare_work(one_thread_matcher *m, const match_args *args) {
  size_t bytes;
  if (!m->ops->match_work_bytes(args, 1, &bytes)) return HS_ERR_LIMIT;
  if (bytes > m->work_bytes) m->packed = 0;
  return grow(m->allocator, bytes, &m->work, &m->work_bytes);
}

hs_status match_one_thread(one_thread_matcher *m, const match_request *r, uint64_t first_number, bool wants_second,
                           one_thread_nearest *nearest) {
  const bool guided = r->guide.kind != MATCH_UNGUIDED, exchanged = !guided;
  const match_side first = {r->first.descriptors, NULL, r->first.count},
                   second = {r->second.descriptors, NULL, r->second.count};
  const size_t found = nearest_bytes(first.count, second.count);
  const size_t positions = guided ? guide_bytes(first.count, second.count) : 0;
  hs_status status = grow(m->allocator, found + positions, &m->nearest, &m->nearest_bytes);
  if (status != HS_OK) return status;
  /* two empty lists need no memory, so pointers into it may be null */
  if (found == 0) {
    *nearest = (one_thread_nearest){NULL, NULL};
    return HS_OK;
  }
  match_nearest *of_first = (match_nearest *)(void *)m->nearest,
                *of_second = (match_nearest *)(void *)(m->nearest + padded(first.count * sizeof(match_nearest)));
  match_args args = {.type = r->type,
                     .first = exchanged ? second : first,
                     .second = exchanged ? first : second,
                     .guide = r->guide.kind,
                     .tolerance_squared = r->guide.tolerance_squared,
                     .forward = exchanged ? of_second : of_first,
                     .backward = exchanged ? of_first : (r->mutual ? of_second : NULL),
                     .limits = r->mutual ? &r->limits : NULL,
                     .exchanged = exchanged};
  if (guided) fill_guides(r, m->nearest + found, &args);
  status = prepare_work(m, &args);
  if (status != HS_OK) return status;
  args.work = m->work;
  /* the way of packing depends on the ratio */
  const double ratio = args.limits ? args.limits->ratio_squared : 0.0;
  args.second_is_packed =
      exchanged && m->packed == first_number && m->packed_type == r->type && m->packed_ratio == ratio;
  m->packed = exchanged ? first_number : 0;
  m->packed_type = r->type;
  m->packed_ratio = ratio;
  *nearest = (one_thread_nearest){of_first, r->mutual ? of_second : NULL};
  stage_status (*const match)(stage_queue *, const match_args *) =
      wants_second ? m->ops->match : m->ops->match_without_second;
  return match(NULL, &args) == STAGE_OK ? HS_OK : HS_ERR_INTERNAL;
}
