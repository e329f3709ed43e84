/*
 * Matching inside the library: the check of what a call asks for, and its run on the context's processor.
 */
#ifndef HARTSIFT_MATCHING_MATCH_CALL_H
#define HARTSIFT_MATCHING_MATCH_CALL_H

#include "pipeline/context/context.h"
#include "pipeline/context/engine.h"
#include "stages/match.h"
#include "stages/ops.h"

/* Checks lists and options (null: the defaults) and fills *request. context: null, or where failures are recorded. */
hs_status match_check(hs_context *context, const hs_features *first, const hs_features *second,
                      const hs_match_options *options, match_request *request);

/* The same without a context, from any thread; message: why it failed. */
hs_status match_check_alone(const hs_features *first, const hs_features *second, const hs_match_options *options,
                            match_request *request, char *message, size_t message_bytes);

/* The options (null: the defaults) over the defaults, checked. */
hs_status match_check_options(const hs_match_options *options, hs_match_options *full, char *message,
                              size_t message_bytes);

/* Runs a checked request: fills *matches or nearest[], whichever is not null. device: where its lists lie, for a context
   of a GPU. *matches is changed only on success. */
hs_status match_run(hs_context *context, const match_request *request, const match_placement *device,
                    hs_matches *matches, hs_nearest *nearest);

/* A failure of a call that may have no context. */
#define MATCH_FAIL(context, status, ...)                                                                               \
  ((context) ? context_fail((context), (status), __FILE__, __LINE__, __VA_ARGS__) : (status))

/* Memory of a call, aligned to 64 bytes: the context's, kept and grown, or for no context the call's own, which
   match_drop_memory frees. HS_ERR_LIMIT (max_memory_bytes), HS_ERR_MEMORY. */
hs_status match_take_memory(hs_context *context, size_t bytes, unsigned char **memory);
void match_drop_memory(const hs_context *context, unsigned char *memory);

/* Adds count entries to a running total of such memory; false when that does not fit. *offset: where they begin. */
bool match_place_part(size_t *total, size_t count, size_t size, size_t *offset);

/* Matching of one pair on one thread, for a caller that has many: memory that grows and stays, and the panels of a list
   packed once for all pairs in a row that have it. */

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

/* Rows of squares to neighbours in order, and lists of them that grow. */

/* ---- one row of squares, `count` of them, of which those below the bound are wanted */

/* The k nearest in order with their distances into nearest[k]; what is missing is neighbour_none. */
void neighbours_nearest(const float *squares, uint32_t count, float bound, uint32_t k, match_neighbour *nearest);

uint32_t neighbours_count(const float *squares, uint32_t count, float bound);

/* All of them, by index, with their squares. */
void neighbours_list(const float *squares, uint32_t count, float bound, match_neighbour *found);

/* Puts them in order and squares into distances. */
void neighbours_finish(match_neighbour *found, size_t count);

/* ---- the lists of a call; context: null, or where failures are recorded */

/* Empty lists for that many features. HS_ERR_MEMORY. */
hs_status neighbour_lists_begin(hs_context *context, hs_neighbour_lists *lists, size_t feature_count);

/* Room for so many neighbours in all; those that are there stay. HS_ERR_MEMORY. */
hs_status neighbour_lists_grow(hs_context *context, hs_neighbour_lists *lists, size_t count);

/* neighbours_take: the device hands its lists in row by row. */
hs_status neighbour_lists_take(hs_context *context, void *lists, uint32_t first_row, uint32_t rows,
                               const uint32_t *counts, match_neighbour **found);

#endif
