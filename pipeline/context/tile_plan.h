/*
 * The plan of a frame that is processed in tiles, because untiled it would exceed the allowed memory.
 *
 * pipeline/frame/TILES.md describes how such a frame is processed. This header has the halo of each level around a
 * tile, and the layout of the slab: levels of one tile, bases of the current and the next octave, lists.
 */
#ifndef HARTSIFT_CONTEXT_TILE_PLAN_H
#define HARTSIFT_CONTEXT_TILE_PLAN_H

#include "pipeline/context/plan.h"

enum {
  /* Candidates of a tile are followed up to this many samples beyond it. The few that move further are escaped
     candidates. */
  TILE_HALO = 1,
  TILE_ALIGNMENT = 16, /* samples; tiles and their levels begin on cache lines */
  TILE_SIDE_MIN = 32,  /* minimum and maximum side of a tile that a plan may choose */
  TILE_SIDE_MAX = 4096,
  TILE_SLACK_FLOATS = 64 /* floats before and after a level, because vector loads may read past its ends */
};

/* Width of the halo around a tile for each level, in samples: [0] of the tile's octave, and then of the octaves over
   which its descriptors are pooled. left: on the left side, where rows begin; other: on the other three sides. */
typedef struct tile_halos {
  int32_t octaves; /* number of octaves: the tile's octave and the coarser ones */
  int32_t levels[TILE_OCTAVES_MAX];
  int32_t left[TILE_OCTAVES_MAX][LEVELS_MAX], other[TILE_OCTAVES_MAX][LEVELS_MAX];
} tile_halos;

/* Returns the halos of the tiles of an octave. octaves_left: number of octaves from that octave on. */
tile_halos tile_halos_of(const plan_request *request, int32_t octaves_left);

/* Returns the region of a level of octave `index` (as in tile_halos) that is made for the tile `core`, in samples of
   that octave. */
plane_region tile_region(const tile_halos *halos, const pyramid_geometry *geometry, int32_t octave,
                         const plane_region *core, int32_t index, int32_t level);

/* Finds the origin of the memory of the tile's levels, in samples of octave `index`. */
void tile_origin(const tile_halos *halos, const plan_request *request, const pyramid_geometry *geometry, int32_t octave,
                 const plane_region *core, int32_t index, int32_t *x, int32_t *y);

/* Finds the rows [*y0, *y1) of the picture for the tile `core` of the first octave: the rows from which its levels are
   made, also around the samples where its candidates may end, which move by one sample per step. */
void tile_rows(const tile_halos *halos, const plan_request *request, const pyramid_geometry *geometry,
               const plane_region *core, int32_t *y0, int32_t *y1);

/* Makes the plan with the largest tiles for which plan->host_bytes is at most `most`; if no size is small enough, with
   the smallest tiles. Statuses: HS_ERR_LIMIT: a size does not fit the address space. */
hs_status plan_make_tiled(const plan_request *request, uint64_t most, frame_plan *plan);

/* Returns the next smaller side of a tile: three quarters of a power of two; or two thirds of a side that is already
   three quarters of one. */
int32_t plan_smaller_tile(int32_t side);

/* Makes the host's plan of a frame whose tiles are processed on a device: the lists, escaped candidates, and the
   scratch for sorting keypoints and features. During the first octave that scratch holds band_bytes of rows of the
   picture instead. */
hs_status plan_make_tile_lists(const plan_request *request, size_t band_bytes, frame_plan *plan);

#endif
