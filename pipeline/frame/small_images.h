/*
 * Small images of one size in the same launches of a GPU, because the launches of a frame take longer than the work on
 * a thumbnail.
 */
#ifndef HARTSIFT_FRAME_SMALL_IMAGES_H
#define HARTSIFT_FRAME_SMALL_IMAGES_H

#include "pipeline/source/source.h"

/* The largest useful group of images like this one; 1: no group. A power of two, at most FRAME_GROUP_MAX. */
int32_t small_images_most(const hs_context *context, const hs_image *image);

/* Whether two images may share a group. */
bool small_images_alike(const hs_source *a, const hs_source *b);

/* Runs pictures[count], all alike, without their masks, and lets views[count] show their features in the context's pinned
   results. Either all succeed or none. Statuses: as hs_extract. */
hs_status small_images_run(hs_context *context, const hs_source *const *pictures, int32_t count, hs_features *views);

#endif
