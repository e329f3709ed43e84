/*
 * Frames in tiles on a device: its memory, and one tile from the picture to its features in pinned memory.
 * pipeline/frame/TILES.md has the way of such a frame.
 */
#ifndef HARTSIFT_DEVICE_CUDA_TILES_H
#define HARTSIFT_DEVICE_CUDA_TILES_H

#include "pipeline/context/engine.h"

/* Makes the plans of a frame that its device has no room for untiled: context->plan, the lists on the host, and with it the
   slab; and the memory on the device. `status` is what the untiled frame failed with, HS_ERR_LIMIT or HS_ERR_MEMORY; it is
   returned, with its message, where tiles are no remedy. Statuses: also HS_ERR_DEVICE. */
hs_status cuda_tiles_prepare(hs_context *context, const frame_request *request, hs_status status);

/* The rows [*y0, *y1) that the tile `core` of the first octave, and whatever is done for it, wants of a picture that
   comes in rows. They may be overwritten when the tile is finished. */
void cuda_tiles_rows(const hs_context *context, const plane_region *core, int32_t *y0, int32_t *y1);

/* Starts a tile, after those that were started before. Its slot's tile before is finished. Statuses: HS_ERR_DEVICE,
   HS_ERR_MEMORY; no tile is under way then. */
hs_status cuda_tile_begin(hs_context *context, const frame_request *request, const device_tile *tile);
/* Waits for it. Statuses as above. */
hs_status cuda_tile_finish(hs_context *context, const device_tile *tile, device_tile_result *result);
/* Waits until nothing reads the caller's picture: where tiles under way are not wanted any more. */
void cuda_tiles_abandon(hs_context *context);

/* After cuda_frame_query: bytes on the device and of the host (lists, scratch and pinned memory) where such a frame is
   worked off in tiles within max_memory_bytes; false, and nothing set, where it is not. */
bool cuda_tiles_query(hs_context *context, const frame_request *request, uint64_t *device_bytes, uint64_t *host_bytes);

/* Whether a frame of request->feed needs tiles and fits in them within max_memory_bytes: only then may it come in rows, with
   untiled_status HS_ERR_LIMIT. Then *device_bytes and *host_bytes as above. */
bool cuda_tiles_query_rows(hs_context *context, const frame_request *request, uint64_t *device_bytes,
                           uint64_t *host_bytes);

#endif
