/* State of a database's pairs before and after */
#ifndef HARTSIFT_CLI_PAIRS_PAIR_STATES_H
#define HARTSIFT_CLI_PAIRS_PAIR_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/cli/common/progress.h"
#include "pipeline/cli/pairs/pair_list.h"
#include "pipeline/cli/pairs/pair_output.h"
#include "pipeline/include/hartsift_pairs.h"

/* ---- Existing entries of pairs, and the work for each: none, matching, or verifying existing matches. */

typedef struct pair_wish {
  bool replaces; /* existing entries are replaced */
  bool verifies; /* matches without geometry are verified */
} pair_wish;

/* Filled by pair_states_sort, in the order of the list of pairs. */
typedef struct sorted_pairs {
  pair_list to_match, to_verify;
  bool *is_stale;  /* by pair to match: has entries that do not fit the features; removed when new ones are stored */
  size_t done;     /* unchanged pairs */
  size_t replaced; /* pairs to match with entries, with pair_wish.replaces */
  size_t without_geometry; /* of these, without geometry */
} sorted_pairs;

/* Sorts pairs. Damaged entries, and indices beyond the features, count as none and are reported. Prints the reason
   of a failure; sorted_pairs_free is needed in any case. */
cli_exit pair_states_sort(const pair_source *source, const pair_list *pairs, pair_wish wish, sorted_pairs *sorted);

void sorted_pairs_free(sorted_pairs *sorted);

/* ---- After `match --database`: verified pairs that the collection contradicts are moved to a table of this library
   (pipeline/formats/FORMATS.md); the next run restores them before it judges again. */

typedef struct doubtful_plan {
  hs_colmap_database *database;
  const database_images *images;
  const stop_signals *signals; /* a signal ends the work without changes */
  uint64_t max_memory_bytes;   /* 0: no limit */
  size_t tracks;               /* longest tracks of each image that keep their inliers; 0: all */
  bool keeps;                  /* only restores pairs that were set aside */
  bool is_quiet, has_json;
} doubtful_plan;

/* Commits. Prints the result or the reason of a failure. */
cli_exit doubtful_pairs_settle(const doubtful_plan *plan);

/* ------------------------------------------------------------------ long tracks (long_tracks.c)

   match --database --tracks N: the inliers that a mapper gets where every image keeps its N longest tracks. A track is what
   the inliers of verified pairs join, its length the number of its images. Long tracks fix cameras best, and a mapper's
   time grows with the number of observations. */

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
