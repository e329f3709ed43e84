/*
 * A checked request for matching, the same for CPU and GPU.
 */
#ifndef HARTSIFT_CONTEXT_MATCH_REQUEST_H
#define HARTSIFT_CONTEXT_MATCH_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline/include/hartsift.h"
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

#endif
