/*
 * Matching inside the library: the check of what a call asks for, and its run on the context's processor.
 */
#ifndef HARTSIFT_MATCHING_MATCH_CALL_H
#define HARTSIFT_MATCHING_MATCH_CALL_H

#include "pipeline/context/engine.h"

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

#endif
