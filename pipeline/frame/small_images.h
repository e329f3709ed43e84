/*
 * Small images of one size in the same launches of a GPU: a thousand thumbnails do not pay for a thousand frames'
 * launches.
 */
#ifndef HS_PIPELINE_BATCH_FRAME_H
#define HS_PIPELINE_BATCH_FRAME_H

#include "pipeline/context/context.h"

/* Most images like this one that are worth a batch, 1: none besides it. A power of two, at most CUDA_BATCH_MAX. */
int32_t batch_frame_most(const hs_context *context, const hs_image *image);

/* Whether two images may share a batch. */
bool batch_frame_alike(const hs_image *a, const hs_image *b);

/* Runs images[count], all alike, and lets views[count] show their features in the context's pinned results. Either all
   succeed or none. Statuses: as hs_extract. */
hs_status batch_frame_run(hs_context *context, const hs_image *const *images, int32_t count, hs_features *views);

#endif
