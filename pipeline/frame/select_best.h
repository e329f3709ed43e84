/*
 * options.grid_columns and grid_rows: max_features spread over the cells of a grid, by the rule of
 * stages/select.h.
 */
#ifndef HARTSIFT_FRAME_SELECT_BEST_H
#define HARTSIFT_FRAME_SELECT_BEST_H

#include "pipeline/context/context.h"
#include "pipeline/context/engine.h"
#include "pipeline/context/frame_request.h"
#include "pipeline/context/workspace.h"

/* Reserves the host memory for ranking so many features. Statuses: HS_ERR_MEMORY, HS_ERR_LIMIT. */
hs_status grid_choice_reserve(hs_context *context, uint32_t features);

/* Selection among the lists of a frame, as stage_ops.select does it; room for *args->features.count was reserved. */
void grid_choice_lists(hs_context *context, const select_args *args, int32_t width, int32_t height);

/* Selection among finished features, in place; *count changes. Does nothing where options_use_grid is false. Statuses: as
   grid_choice_reserve. */
hs_status grid_choice_records(hs_context *context, const feature_records *records, int32_t width, int32_t height,
                              uint32_t *count);

/* The same for what a device frame left in the context's pinned memory. */
hs_status grid_choice_result(hs_context *context, const frame_request *request, frame_result *result);

/* Selection among the lists of a frame on the CPU. */

/* With max_features: keeps those features of the lists that it asks for. The first `described` have their descriptors. */
stage_status select_features(hs_context *context, const frame_request *request, workspace *lists, uint32_t described);

#endif
