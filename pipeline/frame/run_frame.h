/*
 * One frame, stage after stage.
 */
#ifndef HARTSIFT_FRAME_RUN_FRAME_H
#define HARTSIFT_FRAME_RUN_FRAME_H

#include "pipeline/context/engine.h"

/* Runs the frame; *result holds its lists until the context's next call. A list that overflowed is grown and the
   frame repeated, so the result never depends on a capacity. */
hs_status run_frame(hs_context *context, const frame_request *request, workspace *result);

/* engine.run of the CPU. */
hs_status cpu_engine_run(hs_context *context, const frame_request *request, const frame_placement *placement,
                         frame_result *result);

/* Makes the Gaussian levels 0..S of the first `octaves` octaves, 1 or more; *result holds them until the context's next
   call. Statuses: as run_frame. */
hs_status run_pyramid(hs_context *context, const frame_request *request, int32_t octaves, workspace *result);

#endif
