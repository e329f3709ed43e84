/*
 * Matching inside the library: checks a call's arguments, and runs it on the context's device.
 */
#ifndef HARTSIFT_MATCHING_MATCH_CALL_H
#define HARTSIFT_MATCHING_MATCH_CALL_H

#include "pipeline/context/context.h"
#include "pipeline/context/engine.h"
#include "stages/match.h"
#include "stages/ops.h"

/* Checks lists and options (null: the defaults) and fills *request. context: records failures; may be null. */
hs_status match_check(hs_context *context, const hs_features *first, const hs_features *second,
                      const hs_match_options *options, match_request *request);

/* Like match_check, without a context, for any thread. message: reason of a failure. */
hs_status match_check_alone(const hs_features *first, const hs_features *second, const hs_match_options *options,
                            match_request *request, char *message, size_t message_bytes);

/* Sets *full to the defaults, replaces them by the options (null: none), and checks the result. */
hs_status match_check_options(const hs_match_options *options, hs_match_options *full, char *message,
                              size_t message_bytes);

/* Runs a checked request: fills *matches or nearest[], whichever is not null. device: memory space of the lists, for a
   context on a GPU. *matches changes only on success. */
hs_status match_run(hs_context *context, const match_request *request, const match_placement *device,
                    hs_matches *matches, hs_nearest *nearest);

/* Records a failure if the context is not null; the value of the expression is the status. */
#define MATCH_FAIL(context, status, ...)                                                                               \
  ((context) ? context_fail((context), (status), __FILE__, __LINE__, __VA_ARGS__) : (status))

/* match_take_memory sets *memory to `bytes` bytes for a call, aligned to 64. With a context it is memory of the
   context, which grows and is kept. Without one it belongs to the call, and match_drop_memory frees it. Statuses:
   HS_ERR_LIMIT (max_memory_bytes), HS_ERR_MEMORY. */
hs_status match_take_memory(hs_context *context, size_t bytes, unsigned char **memory);
void match_drop_memory(const hs_context *context, unsigned char *memory);

/* Adds `count` entries of `size` bytes to the total of such memory. *offset: offset of the entries. False: the total
   does not fit size_t. */
bool match_add_part(size_t *total, size_t count, size_t size, size_t *offset);

/* Matching of one pair on one thread, for a caller with many pairs. The memory grows and is kept. The panels of a list
   are packed once for all successive pairs that share the list. */

/* A matcher. Initialise as {.ops, .allocator}; end with match_one_thread_free. */
typedef struct one_thread_matcher {
  const stage_ops *ops;
  const hs_allocator *allocator;
  unsigned char *nearest, *work;
  size_t nearest_bytes, work_bytes;
  uint64_t packed; /* number of the list whose panels are in `work`; 0: none */
  match_type packed_type;
  double packed_ratio; /* ratio_squared of the limits, 0 without limits */
} one_thread_matcher;

/* Nearest neighbours of the first list's features and, if the request is mutual, of the second's. They belong to the
   matcher and are valid until its next call. */
typedef struct one_thread_nearest {
  const match_nearest *forward, *backward; /* backward: null unless the request is mutual */
} one_thread_nearest;

/* Runs a checked request. first_number: identifies the first list, not 0; an equal number means the same list with the
   same content. wants_second: false: the second nearest of pairs that are kept may be wrong. Statuses: HS_ERR_LIMIT
   (beyond the address space), HS_ERR_MEMORY, HS_ERR_INTERNAL. */
hs_status match_one_thread(one_thread_matcher *matcher, const match_request *request, uint64_t first_number,
                           bool wants_second, one_thread_nearest *nearest);

/* Returns the bytes that a matcher needs for lists of these sizes; UINT64_MAX: beyond the address space. */
uint64_t match_one_thread_bytes(const stage_ops *ops, match_type type, size_t first_count, size_t second_count);

void match_one_thread_free(one_thread_matcher *matcher);

/* Neighbours from rows of squared distances, and lists of neighbours, which grow. */

/* ---- neighbours from one row of `count` squared distances: only distances below the bound count */

/* Finds the k nearest in order, with distances, and writes them to nearest[k]. If there are fewer, the others are
   neighbour_none. */
void neighbours_nearest(const float *squares, uint32_t count, float bound, uint32_t k, match_neighbour *nearest);

uint32_t neighbours_count(const float *squares, uint32_t count, float bound);

/* Lists all neighbours below the bound by index, with squared distances. */
void neighbours_list(const float *squares, uint32_t count, float bound, match_neighbour *found);

/* Sorts neighbours, and converts their squares to distances. */
void neighbours_finish(match_neighbour *found, size_t count);

/* ---- the lists of a call; context: records failures, may be null */

/* Makes empty lists for feature_count features. Statuses: HS_ERR_MEMORY. */
hs_status neighbour_lists_begin(hs_context *context, hs_neighbour_lists *lists, size_t feature_count);

/* Ensures capacity for `count` neighbours in total; existing neighbours stay. Statuses: HS_ERR_MEMORY. */
hs_status neighbour_lists_grow(hs_context *context, hs_neighbour_lists *lists, size_t count);

/* A neighbours_take function for the lists that a device passes row by row. */
hs_status neighbour_lists_take(hs_context *context, void *lists, uint32_t first_row, uint32_t rows,
                               const uint32_t *counts, match_neighbour **found);

#endif
