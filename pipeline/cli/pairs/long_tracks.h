/*
 * match --database --tracks N: reduces inliers to the N longest tracks of each image. A track is a set of features
 * joined by inliers of verified pairs; its length is the number of its images. Long tracks determine cameras best, and
 * a mapper's time grows with the number of observations.
 */
#ifndef HARTSIFT_CLI_PAIRS_LONG_TRACKS_H
#define HARTSIFT_CLI_PAIRS_LONG_TRACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/include/hartsift_pairs.h"

/* Bytes per feature, and per feature of the largest image (for sorting). */
enum { LONG_TRACKS_FEATURE_BYTES = 12, LONG_TRACKS_SORT_BYTES = 8 };

typedef struct long_tracks {
  const size_t *feature_counts; /* features of each image; the caller's */
  size_t image_count;
  uint64_t *first_feature; /* index of each image's first feature in the numbering of all features */
  uint32_t *parent;        /* union-find parent of each feature; the root is the track */
  uint32_t *length;        /* of each root: number of images of its track */
  uint32_t *last_image;    /* of each root, while lengths are counted; then whether the track stays */
} long_tracks;

/* False: out of memory, or 2^32 features or more. long_tracks_end is needed in any case. */
bool long_tracks_begin(long_tracks *tracks, const size_t *feature_counts, size_t image_count);
void long_tracks_end(long_tracks *tracks);

/* Joins the inliers of a pair: 2 x count indices, below their images' feature_counts. */
void long_tracks_join(long_tracks *tracks, hs_image_pair images, const uint32_t *inliers, size_t count);

/* After all pairs: each image keeps its `wanted` longest tracks; a fixed shuffle decides among equal ones, to spread
   them over the image. A track stays if one of its images keeps it. False: out of memory. */
bool long_tracks_choose(long_tracks *tracks, size_t wanted);

/* Removes the inliers of other tracks from a pair's list, but leaves `fewest` if there were as many. Returns the
   number left, in their order. */
size_t long_tracks_filter(const long_tracks *tracks, hs_image_pair images, uint32_t *inliers, size_t count,
                          size_t fewest);

#endif
