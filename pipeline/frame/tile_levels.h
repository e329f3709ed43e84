/*
 * The levels of one tile: its octave's, and those of coarser octaves that its descriptors are pooled over.
 */
#ifndef HARTSIFT_FRAME_TILE_LEVELS_H
#define HARTSIFT_FRAME_TILE_LEVELS_H

#include "pipeline/context/context.h"
#include "pipeline/context/tile_plan.h"

/* The memory of a tile, and where it lies in the picture. */
typedef struct tile_levels {
  hs_context *context;
  const source_view *source;
  int32_t octave; /* of the plan's geometry */
  tile_margins margins;
  plane_region core; /* the tile, in samples of that octave */
  /* Of the octaves from that one on: whole octaves, of which only the tile is in memory. */
  octave_view views[TILE_OCTAVES_MAX];
} tile_levels;

/* Sets everything but the core for the tiles of an octave. */
void tile_levels_begin(tile_levels *tile, hs_context *context, const source_view *source, int32_t octave);

/* Makes the levels about a tile. */
stage_status tile_levels_make(tile_levels *tile, const plane_region *core);

/* Takes the samples of the next octave's base that lie in the tile, if there is a next octave. */
stage_status tile_levels_give_base(const tile_levels *tile);

#endif
