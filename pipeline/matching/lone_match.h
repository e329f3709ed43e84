/*
 * Matching of one pair on one thread, for a caller that has many: memory that grows and stays, and the panels of a list
 * packed once for all pairs in a row that have it.
 */
#ifndef HARTSIFT_MATCHING_LONE_MATCH_H
#define HARTSIFT_MATCHING_LONE_MATCH_H

#include "pipeline/context/match_request.h"
#include "stages/ops.h"

/* Starts as {.ops, .allocator}; ended by lone_match_free. */
typedef struct lone_matcher {
  const stage_ops *ops;
  const hs_allocator *allocator;
  unsigned char *nearest, *work;
  size_t nearest_bytes, work_bytes;
  uint64_t packed; /* the list whose panels `work` holds; 0: none */
  match_type packed_type;
} lone_matcher;

/* The nearest of first's features and, if the request is mutual, of second's: the matcher's until its next call. */
typedef struct lone_nearest {
  const match_nearest *forward, *backward; /* backward: null unless mutual */
} lone_nearest;

/* Runs a checked request. first_number: which list the first one is, the same for the same list as long as its content
   stays, never 0. Statuses: HS_ERR_LIMIT (beyond the address space), HS_ERR_MEMORY, HS_ERR_INTERNAL. */
hs_status lone_match_run(lone_matcher *matcher, const match_request *request, uint64_t first_number,
                         lone_nearest *nearest);

/* Bytes that a matcher needs for lists of these sizes; UINT64_MAX: beyond the address space. */
uint64_t lone_match_bytes(const stage_ops *ops, match_type type, size_t first_count, size_t second_count);

void lone_match_free(lone_matcher *matcher);

#endif
