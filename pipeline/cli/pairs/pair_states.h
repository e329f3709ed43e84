/* State of the pairs of a database before and after matching. */
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
  bool replaces; /* existing entries of pairs are replaced */
  bool verifies; /* matches without a geometry are verified */
} pair_wish;

/* Result of pair_states_sort. The pairs keep the order of the list. */
typedef struct sorted_pairs {
  pair_list to_match, to_verify;
  bool *is_stale;  /* [pair to match]: its entries do not fit the features, and are removed when new ones are stored */
  size_t done;     /* number of pairs that stay unchanged */
  size_t replaced; /* number of pairs to match that have entries, which are replaced (pair_wish.replaces) */
  size_t without_geometry; /* number of those without a geometry */
} sorted_pairs;

/* Sorts pairs by the state of their entries. Damaged entries, and those with indices beyond the features, count as
   missing and are reported. Prints the reason of a failure; call sorted_pairs_free in any case. */
cli_exit pair_states_sort(const pair_source *source, const pair_list *pairs, pair_wish wish, sorted_pairs *sorted);

void sorted_pairs_free(sorted_pairs *sorted);

/* ---- After `match --database`: verified pairs that the collection contradicts are moved to a table of this library
   (pipeline/formats/FORMATS.md); the next run restores them before it judges again. */

typedef struct doubtful_plan {
  hs_colmap_database *database;
  const database_images *images;
  const stop_signals *signals; /* a signal ends the work without changes to the database */
  uint64_t max_memory_bytes;   /* 0: no limit */
  size_t tracks;               /* number of longest tracks per image whose inliers stay; 0: all */
  bool keeps; /* whether all pairs are kept: none is judged, and pairs that were set aside are restored */
  bool is_quiet, has_json;
} doubtful_plan;

/* Judges the pairs and commits. Prints the result, or the reason of a failure. */
cli_exit doubtful_pairs_settle(const doubtful_plan *plan);

/* ------------------------------------------------------------------ long tracks (long_tracks.c)

   match --database --tracks N: each image keeps only its N longest tracks, so that a mapper gets fewer inliers. A track
   is a set of features that inliers of verified pairs join; its length is the number of its images. Long tracks fix
   cameras best, and a mapper's time grows with the number of observations. */

/* Bytes of memory per feature, and further bytes per feature of the image that has the most. */
enum { LONG_TRACKS_FEATURE_BYTES = 12, LONG_TRACKS_SORT_BYTES = 8 };

typedef struct long_tracks {
  const size_t *feature_counts; /* [image]: number of its features; owned by the caller */
  size_t image_count;
  uint64_t *first_feature; /* [image]: number of its first feature; the features of all images are numbered together */
  uint32_t *parent;        /* [feature]: its parent in a tree; the root represents the track */
  uint32_t *length;        /* [root]: number of images of its track */
  uint32_t *last_image;    /* [root]: last image that was counted; afterwards, whether the track stays */
} long_tracks;

/* Allocates the tracks. False: out of memory, or 2^32 features or more. Call long_tracks_end in any case. */
bool long_tracks_begin(long_tracks *tracks, const size_t *feature_counts, size_t image_count);
void long_tracks_end(long_tracks *tracks);

/* Joins the features of a pair's inliers. inliers[count][2]: indices, below the feature_counts of their images. */
void long_tracks_join(long_tracks *tracks, hs_image_pair images, const uint32_t *inliers, size_t count);

/* Call after all pairs. Selects the `wanted` longest tracks of each image; among tracks of equal length a fixed shuffle
   decides, so that they are spread over the image. A track stays if it is selected for one of its images. False: out of
   memory. */
bool long_tracks_choose(long_tracks *tracks, size_t wanted);

/* Removes the inliers of other tracks from a pair's list, but leaves at least `fewest` if there were as many. Returns
   how many stay; they keep their order. */
size_t long_tracks_filter(const long_tracks *tracks, hs_image_pair images, uint32_t *inliers, size_t count,
                          size_t fewest);

#endif
