/*
 * The levels of one tile: its octave's, and those of coarser octaves that its descriptors are pooled over.
 */
#ifndef HARTSIFT_FRAME_TILE_LEVELS_H
#define HARTSIFT_FRAME_TILE_LEVELS_H

#include "pipeline/context/context.h"
#include "pipeline/context/frame_request.h"
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

/* The rows of a picture that the tiles of its first octave want next, where the whole is not in memory: a band that
   goes down the picture as its file is decoded. */

typedef struct row_band {
  row_feed *feed;  /* null: the picture is in memory */
  uint8_t *memory; /* capacity rows of feed->row_bytes */
  int32_t capacity, height;
  int32_t first, end; /* the rows that are there */
} row_band;

/* Begins at the top of the picture. memory: `bytes` of it. False: feed->failure says why. */
bool row_band_begin(row_band *band, row_feed *feed, int32_t height, void *memory, size_t bytes);

/* Has rows [y0, y1), of which y0 was never smaller in a call before; those above it are forgotten. source->data becomes the
   place where row 0 would be. False: feed->failure says why. */
bool row_band_hold(row_band *band, int32_t y0, int32_t y1, source_view *source);

/* Reads what is left, for what is wrong there. False: feed->failure says what. */
bool row_band_finish(row_band *band);

#endif
