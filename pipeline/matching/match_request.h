/*
 * Matching inside the library: a checked request, and the pairs that follow from the nearest of both lists.
 */
#ifndef HS_PIPELINE_MATCH_REQUEST_H
#define HS_PIPELINE_MATCH_REQUEST_H

#include "pipeline/context/context.h"
#include "stages/match.h"

/* One list as it came: host or device memory. */
typedef struct match_list {
  const hs_keypoint *keypoints; /* may be null without a guide */
  const void *descriptors;
  uint32_t count;
} match_list;

/* What a matching call asks for, checked. */
typedef struct match_request {
  match_type type;
  match_list first, second;
  match_guide guide; /* MATCH_UNGUIDED too where the tolerance is infinite */
  match_limits limits;
  bool mutual;
} match_request;

/* Checks lists and options (null: the defaults) and fills *request. context: null, or where failures are recorded. */
hs_status match_check(hs_context *context, const hs_features *first, const hs_features *second,
                      const hs_match_options *options, match_request *request);

/* The pairs of *request from forward [first.count] and, if mutual, backward [second.count], both host memory. *matches
   is changed only on success. Statuses: HS_ERR_MEMORY. */
hs_status match_collect(hs_context *context, const match_request *request, const match_nearest *forward,
                        const match_nearest *backward, hs_matches *matches);

#endif
