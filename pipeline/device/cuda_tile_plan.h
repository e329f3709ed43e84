/*
 * The memory of a frame in tiles on a device: its plan, and where a tile's levels lie.
 *
 * A tile's levels are made on a crop of the picture, as if that were all there is: what is wrong about the crop's inner
 * edges, where the border rule must not hold, stays within the margins of tile_plan.h.
 */
#ifndef HARTSIFT_DEVICE_CUDA_TILE_PLAN_H
#define HARTSIFT_DEVICE_CUDA_TILE_PLAN_H

#include "pipeline/context/tile_plan.h"
#include "stages/image.h"

/* What the plan depends on besides. */
typedef struct cuda_tile_needs {
  size_t pixel_bytes; /* of the picture */
  bool blur_work;     /* some filter wants a work plane */
  size_t (*scratch_bytes)(uint32_t mask_words, uint32_t keypoints, uint32_t features);
} cuda_tile_needs;

/* Makes the plan with tiles of `side` samples: request with params and filters, and detect_reads_top. plan->request has the
   capacities of a tile's lists. False: a size does not fit. */
bool cuda_tile_plan_make(const plan_request *request, const cuda_tile_needs *needs, int32_t side, frame_plan *plan);

/* The crop for a tile of an octave, in its samples: x0 a multiple of 64, the others of 16, but for the octave's own ends. */
plane_region cuda_tile_crop(const plan_request *request, const pyramid_geometry *geometry, int32_t octave,
                            const plane_region *core);

/* The pixels that a crop of the first octave is made of. */
plane_region cuda_tile_pixels(const plan_request *request, const pyramid_geometry *geometry, const plane_region *crop);

/* The rows [*y0, *y1) of the picture for the tile `core` of the first octave, for its parts, and for the samples where
   candidates from it may end that move by one sample a step. */
void cuda_tile_rows(const plan_request *request, const pyramid_geometry *geometry, const plane_region *core,
                    int32_t *y0, int32_t *y1);

/* Bytes of the most of such rows, of row_bytes each. False: a size does not fit. */
bool cuda_tile_band_bytes(const frame_plan *plan, size_t row_bytes, size_t *bytes);

/* Bytes from row to row of a crop of the picture, and from row to row of the base of an octave but the first, in floats. */
size_t cuda_tile_pitch(const frame_plan *plan, size_t pixel_bytes);
size_t cuda_tile_base_stride(const frame_plan *plan, int32_t octave);

/* Pinned bytes of one tile's results. */
size_t cuda_tile_result_bytes(const frame_plan *plan);

#endif
