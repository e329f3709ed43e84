/*
 * Keypoints and features of an octave as its tiles left them, put in the defined order.
 */
#ifndef HARTSIFT_FRAME_TILE_ORDER_H
#define HARTSIFT_FRAME_TILE_ORDER_H

#include "pipeline/context/workspace.h"
#include "stages/ops.h"

/* The octave's part of the lists: from first_keypoint and first_feature to their ends. */
typedef struct tile_order {
  workspace *lists;
  stage_queue *queue; /* null: no threads */
  uint32_t first_keypoint, first_feature;
  int32_t height, scales;      /* of the octave */
  size_t descriptor_bytes;     /* of one */
  uint32_t *scratch;           /* BUFFER_ORDER */
  uint32_t *features;          /* BUFFER_FEATURE_ORDER: not in place, the items of the list in the defined order */
  bool in_place;               /* everything moves to its place; else only the order is told */
  uint32_t ordered, keypoints; /* not in place, of all octaves so far: features, and keypoints that they are of */
} tile_order;

/* Orders that part by level, row and column, each sample once: a keypoint that two tiles found is in the lists twice. */
void tile_order_octave(tile_order *order);

#endif
