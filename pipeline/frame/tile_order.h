/*
 * Keypoints and features of an octave as its tiles left them, put in the defined order.
 */
#ifndef HARTSIFT_FRAME_TILE_ORDER_H
#define HARTSIFT_FRAME_TILE_ORDER_H

#include "pipeline/context/context.h"
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

/* The order of an octave's keypoints and features as its tiles left them: indices alone, threads share the work. */

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

/* Leaving out, before they are described, features of a tile that max_features will drop whatever the other tiles have.
   
   Features that are certainly different ones are counted by their key. Once more than max_features have at least some key,
   a feature below it cannot stay. Keys are counted in classes, so a few that will be dropped are described. */

enum { PRUNE_SHIFT = 19, PRUNE_CLASSES = 1 << (32 - PRUNE_SHIFT) };

typedef struct tile_prune {
  uint32_t most; /* features; 0: all stay */
  select_rule rule;
  uint32_t least; /* features with smaller keys are left out */
  uint32_t counts[PRUNE_CLASSES];
} tile_prune;

/* For a frame with these options. Over a grid nothing is left out: what stays of a cell depends on the others. */
void tile_prune_begin(tile_prune *prune, const hs_options *options);

/* Counts the features from item `first` on and removes those that cannot stay, with their descriptors of descriptor_bytes
   (0: they have none yet). core: null, or where the keypoints lie that no other tile finds too. */
void tile_prune_features(tile_prune *prune, const workspace *lists, size_t descriptor_bytes, uint32_t first,
                         const plane_region *core);

#endif
