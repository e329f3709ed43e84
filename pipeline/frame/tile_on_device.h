/*
 * Tiles that a device works off: its keypoints and features among those of the frame, on the host.
 */
#ifndef HARTSIFT_FRAME_TILE_ON_DEVICE_H
#define HARTSIFT_FRAME_TILE_ON_DEVICE_H

#include "pipeline/context/engine.h"

/* engine_tiles.begin and finish. The context's error says why where they are not STAGE_OK. */
stage_status tile_on_device_begin(hs_context *context, const frame_request *request, const device_tile *tile);
stage_status tile_on_device_finish(hs_context *context, const device_tile *tile, device_tile_result *result);

/* Appends the keypoints that the filter keeps, with their features; threads of the queue share the copies. The lists' counts
   go on where there is no room, and what stands in them is of no use then. Returns how many keypoints were kept. */
uint32_t tile_on_device_append(stage_queue *queue, const device_tile_result *result, const place_filter *filter,
                               size_t descriptor_bytes, workspace *lists);

#endif
