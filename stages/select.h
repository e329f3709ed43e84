/*
 * Selection: exactly max_features features, the strongest or the largest, ties by the defined order.
 */
#ifndef HS_STAGES_SELECT_H
#define HS_STAGES_SELECT_H

#include "stages/keypoint.h"

/* Keeps max_features of the features and closes the gaps, order kept; nothing happens when there are no more than
   that. Descriptors of the first described_count features move with them; *kept_described gets how many of those stay. */
typedef struct select_args {
  keypoint_list keypoints;
  feature_list features;
  uint32_t max_features;
  bool by_scale;             /* by sigma instead of response */
  unsigned char *descriptors;
  size_t descriptor_bytes;   /* of one */
  uint32_t described_count;
  uint32_t *kept_described;
} select_args;

#endif
