/*
 * The order of an octave's keypoints and features as its tiles left them: indices alone, threads share the work.
 */
#ifndef HARTSIFT_FRAME_TILE_SORT_H
#define HARTSIFT_FRAME_TILE_SORT_H

#include "pipeline/context/workspace.h"
#include "stages/ops.h"

enum { TILE_SORT_CHUNKS = 64 };

/* What is sorted, and in which memory. Numbers are those of the lists, less first_keypoint or first_feature. */
typedef struct tile_sort {
  const keypoint_list *keypoint_list;
  const feature_list *feature_list;
  stage_queue *queue; /* null: no threads */
  uint32_t first_keypoint, first_feature;
  uint32_t keypoints, features;
  int32_t height, scales;                /* of the octave */
  uint32_t *spare, *sorted, *start;      /* [keypoints] each */
  uint32_t *source;                      /* [features] */
  uint32_t *counters;                    /* [height * scales] */
  int32_t chunks;                        /* set by tile_sort_keypoints */
  uint32_t once;                         /* likewise: keypoints without those that stand there a second time */
  uint32_t before[TILE_SORT_CHUNKS + 1]; /* items of the chunks before each */
} tile_sort;

/* sorted: the keypoints by level, row and column, with those that stand there a second time behind all others; once: how
   many others there are. */
void tile_sort_keypoints(tile_sort *sort);

/* After that: start, each keypoint's first feature, and source, the features in the order of the sorted keypoints.
   Returns how many those of the first `once` have. */
uint32_t tile_sort_features(tile_sort *sort);

#endif
