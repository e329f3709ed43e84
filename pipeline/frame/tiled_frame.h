/*
 * One frame in tiles, within max_memory_bytes: the lists of the untiled frame, to the byte. TILES.md has the way.
 */
#ifndef HARTSIFT_FRAME_TILED_FRAME_H
#define HARTSIFT_FRAME_TILED_FRAME_H

#include "pipeline/context/context.h"
#include "pipeline/context/frame_request.h"
#include "pipeline/context/workspace.h"

/* Fills the lists of the workspace, and its order where features stand in another one. The context's plan is a tiled
   one. Where a list has no room the counts say how much there should be, and nothing else in the lists is
   defined. *candidates: as detect_args has them. */
stage_status tiled_frame_run(hs_context *context, const frame_request *request, workspace *lists, uint64_t *candidates);

#endif
