/*
 * Leaving out, before they are described, features of a tile that max_features will drop whatever the other tiles have.
 *
 * Features that are certainly different ones are counted by their key. Once more than max_features have at least some key,
 * a feature below it cannot stay. Keys are counted in classes, so a few that will be dropped are described.
 */
#ifndef HARTSIFT_FRAME_TILE_PRUNE_H
#define HARTSIFT_FRAME_TILE_PRUNE_H

#include "pipeline/context/context.h"
#include "pipeline/context/workspace.h"

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
