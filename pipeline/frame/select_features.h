/*
 * Selection among the lists of a frame on the CPU.
 */
#ifndef HARTSIFT_FRAME_SELECT_FEATURES_H
#define HARTSIFT_FRAME_SELECT_FEATURES_H

#include "pipeline/context/context.h"
#include "pipeline/context/frame_request.h"
#include "pipeline/context/workspace.h"

/* With max_features: keeps those features of the lists that it asks for. The first `described` have their descriptors. */
stage_status select_features(hs_context *context, const frame_request *request, workspace *lists, uint32_t described);

#endif
