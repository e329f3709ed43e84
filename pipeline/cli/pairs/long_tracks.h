/*
 * match --database --tracks N: which inliers a mapper gets where every image keeps its N longest tracks. A track is what
 * the inliers of verified pairs join, its length the number of its images. Long tracks fix cameras best, and a mapper's
 * time grows with the number of observations.
 */
#ifndef HARTSIFT_CLI_PAIRS_LONG_TRACKS_H
#define HARTSIFT_CLI_PAIRS_LONG_TRACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/include/hartsift_pairs.h"

/* Bytes of memory of each feature, and of each of the image that has the most. */
enum { LONG_TRACKS_FEATURE_BYTES = 12, LONG_TRACKS_SORT_BYTES = 8 };

typedef struct long_tracks {
  const size_t *feature_counts; /* of each image; the caller's */
  size_t image_count;
  uint64_t *first_feature; /* of each image, in the numbering of all features */
  uint32_t *parent;        /* of each feature; the root stands for the track */
  uint32_t *length;        /* of each root: images of its track */
  uint32_t *last_image;    /* of each root, while lengths are counted; then whether the track stays */
} long_tracks;

/* False: no memory, or 2^32 features and more. Freed by long_tracks_end in any case. */
bool long_tracks_begin(long_tracks *tracks, const size_t *feature_counts, size_t image_count);
void long_tracks_end(long_tracks *tracks);

/* Joins the inliers of a pair: 2 x count indices, below their images' feature_counts. */
void long_tracks_join(long_tracks *tracks, hs_image_pair images, const uint32_t *inliers, size_t count);

/* After all pairs: each image keeps its `wanted` longest tracks; among equal ones a fixed shuffle decides, so that they are
   spread over the image. A track stays if one of its images keeps it. False: no memory. */
bool long_tracks_choose(long_tracks *tracks, size_t wanted);

/* Takes the inliers of other tracks off a pair's list, but leaves `fewest` where there were as many. Returns how many stay,
   in their order. */
size_t long_tracks_filter(const long_tracks *tracks, hs_image_pair images, uint32_t *inliers, size_t count,
                          size_t fewest);

#endif
