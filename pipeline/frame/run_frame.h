/*
 * One frame, stage after stage.
 */
#ifndef HARTSIFT_FRAME_RUN_FRAME_H
#define HARTSIFT_FRAME_RUN_FRAME_H

#include "pipeline/context/context.h"
#include "pipeline/context/engine.h"
#include "pipeline/context/frame_request.h"
#include "pipeline/context/workspace.h"

/* Runs the frame; *result holds its lists until the context's next call. A list that overflowed is grown and the
   frame repeated, so the result never depends on a capacity. */
hs_status run_frame(hs_context *context, const frame_request *request, workspace *result);

/* engine.run of the CPU. */
hs_status cpu_engine_run(hs_context *context, const frame_request *request, const frame_placement *placement,
                         frame_result *result);

/* Makes the Gaussian levels 0..S of the first `octaves` octaves, 1 or more; *result holds them until the context's next
   call. Statuses: as run_frame. */
hs_status run_pyramid(hs_context *context, const frame_request *request, int32_t octaves, workspace *result);

/* One frame in tiles, within max_memory_bytes: the lists of the untiled frame, to the byte. TILES.md has the way. */

/* Fills the lists of the workspace, and its order where features stand in another one. The context's plan is a tiled
   one. Where a list has no room the counts say how much there should be, and nothing else in the lists is
   defined. *candidates: as detect_args has them. */
stage_status tiled_frame_run(hs_context *context, const frame_request *request, workspace *lists, uint64_t *candidates);

#endif
