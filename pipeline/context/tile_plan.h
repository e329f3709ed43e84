/*
 * The plan of a frame processed in tiles because untiled it would need more memory than is allowed.
 *
 * pipeline/frame/TILES.md describes the way of such a frame. This header has the halo of each level
 * around a tile, and the layout of the slab: levels of one tile, bases of the present and the next octave, lists.
 */
#ifndef HARTSIFT_CONTEXT_TILE_PLAN_H
#define HARTSIFT_CONTEXT_TILE_PLAN_H

#include "pipeline/context/plan.h"

enum {
  /* Candidates of a tile are followed so many samples beyond it. The few that go on are escaped candidates. */
  TILE_HALO = 1,
  TILE_ALIGNMENT = 16, /* samples: tiles and their levels begin on cache lines */
  TILE_SIDE_MIN = 32,  /* of a tile that a plan may choose */
  TILE_SIDE_MAX = 4096,
  TILE_SLACK_FLOATS = 64 /* before and behind a level, which vector loads may run over */
};

/* Samples about a tile that are made of each level of its octave, [0], and of those that its descriptors are pooled
   over: to the left, where rows begin, and in the other directions. */
typedef struct tile_halos {
  int32_t octaves; /* 1 + how many of the coarser ones */
  int32_t levels[TILE_OCTAVES_MAX];
  int32_t left[TILE_OCTAVES_MAX][LEVELS_MAX], other[TILE_OCTAVES_MAX][LEVELS_MAX];
} tile_halos;

/* Of the tiles of an octave; octaves_left: it and the coarser ones. */
tile_halos tile_halos_of(const plan_request *request, int32_t octaves_left);

/* What is made of a level of octave `index` (as in tile_halos) for the tile `core`, in samples of that octave. */
plane_region tile_region(const tile_halos *halos, const pyramid_geometry *geometry, int32_t octave,
                         const plane_region *core, int32_t index, int32_t level);

/* Where the memory of the tile's levels begins, in samples of octave `index`. */
void tile_origin(const tile_halos *halos, const plan_request *request, const pyramid_geometry *geometry, int32_t octave,
                 const plane_region *core, int32_t index, int32_t *x, int32_t *y);

/* The rows [*y0, *y1) of the picture that levels about the tile `core` of the first octave are made of, and about the
   samples where candidates from it may end that move by one sample a step. */
void tile_rows(const tile_halos *halos, const plan_request *request, const pyramid_geometry *geometry,
               const plane_region *core, int32_t *y0, int32_t *y1);

/* Makes the plan with the largest tiles that keep plan->host_bytes to `most`; with the smallest where none do. Statuses:
   HS_ERR_LIMIT: a size does not fit the address space. */
hs_status plan_make_tiled(const plan_request *request, uint64_t most, frame_plan *plan);

/* The next side to try where tiles of this one do not fit: three quarters of it, or two thirds of those. */
int32_t plan_smaller_tile(int32_t side);

/* The host's plan of a frame whose tiles are processed on a device: the lists, escaped candidates, and the scratch for
   sorting keypoints and features. While the first octave is processed that scratch holds band_bytes of rows of the
   picture instead. */
hs_status plan_make_tile_lists(const plan_request *request, size_t band_bytes, frame_plan *plan);

#endif
