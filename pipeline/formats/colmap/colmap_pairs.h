/*
 * What COLMAP's database holds of pairs of images: looked at, read, and copied to another database. For the command, in
 * every build; without SQLite all of it is HS_ERR_UNSUPPORTED.
 */
#ifndef HARTSIFT_FORMATS_COLMAP_COLMAP_PAIRS_H
#define HARTSIFT_FORMATS_COLMAP_COLMAP_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/include/hartsift.h"

/* The entries of a pair of images a and b. */
typedef struct colmap_pair_state {
  int64_t matches, verified; /* rows; -1: no entry */
  bool is_damaged;           /* an entry that is not a list of pairs of indices */
  int64_t largest[2];        /* index of a feature in a and in b, over both entries; -1: none */
} colmap_pair_state;

hs_status colmap_look_at_pair(hs_colmap_database *database, uint32_t image_a, uint32_t image_b,
                              colmap_pair_state *state);

/* Reads the matches of a pair, indices in a and in b; distances are 0. *matches: memory of the handle's allocator, to be
   released with hs_memory_release. HS_ERR_FORMAT: there are none, or they are damaged. */
hs_status colmap_read_matches(hs_colmap_database *database, uint32_t image_a, uint32_t image_b, hs_match_pair **matches,
                              size_t *count);

/* Reads the keypoints of an image as hs_colmap_read_features does, whatever descriptors it has; none are read. */
hs_status colmap_read_keypoints(hs_colmap_database *database, uint32_t image_id, hs_features *features);

/* Removes both entries of a pair. */
hs_status colmap_drop_pair(hs_colmap_database *database, uint32_t image_a, uint32_t image_b);

/* The next pair by COLMAP's numbers of pairs that has an entry; after: -1 at first. *pair_id: -1: there is none. */
hs_status colmap_next_pair(hs_colmap_database *database, int64_t after, int64_t *pair_id, uint32_t images[2]);

/* A verified pair with inliers. */
typedef struct colmap_verified_pair {
  int64_t pair_id;
  uint32_t images[2];
  size_t matches, inliers; /* of the matches before verification; of a guided pair's first pass */
  size_t stored;           /* inliers in the database */
  bool is_damaged;         /* the list is of another length than the entry says, or the number is no pair's: the counts
                              above are 0 */
} colmap_verified_pair;

/* The next one by COLMAP's numbers of pairs, watermarks left out; after: -1 at first. pair->pair_id: -1: there is none. */
hs_status colmap_next_verified(hs_colmap_database *database, int64_t after, colmap_verified_pair *pair);

/* Reads the inliers of a pair of ascending images: 2 x count indices, count as colmap_next_verified gave it. */
hs_status colmap_read_inliers(hs_colmap_database *database, int64_t pair_id, uint32_t *inliers, size_t count);

/* How many keypoints an image has; 0 where the entry holds fewer than it says. */
hs_status colmap_count_held_keypoints(hs_colmap_database *database, uint32_t image_id, size_t *count);

/* Remembers what a guided pair's first pass found, in the table hartsift_guided. */
hs_status colmap_note_first_pass(hs_colmap_database *database, uint32_t image_a, uint32_t image_b, size_t matches,
                                 size_t inliers);

/* Moves a pair's geometry to the table hartsift_doubtful_pairs, and leaves configuration 1 (degenerate) without inliers.
   Does nothing to a pair without inliers. */
hs_status colmap_set_aside(hs_colmap_database *database, int64_t pair_id, size_t on_tracks, size_t supported);

/* Leaves a pair `count` of its inliers, 2 x count indices, and keeps a copy of its row in hartsift_doubtful_pairs. */
hs_status colmap_leave_inliers(hs_colmap_database *database, int64_t pair_id, const uint32_t *inliers, size_t count);

/* Moves all geometries back that were set aside or lost inliers, except where another program has written to the pair
   since; *count: how many were set aside. The table is empty then. */
hs_status colmap_take_back(hs_colmap_database *database, size_t *count);

/* Copies the entries of a pair from another database. Its images have the numbers `from` there and `to` here; the order
   of the two may change. Entries that the pair has here: as in hs_colmap_add_matches. HS_ERR_FORMAT: an entry is
   damaged, or has an index beyond the features of its image, and nothing is copied. The reason is `database`'s. */
hs_status colmap_copy_pair(hs_colmap_database *database, const uint32_t to[2], hs_colmap_database *source,
                           const uint32_t from[2]);

/* The frame that an image belongs to, and the camera. */
typedef struct colmap_frame {
  int64_t frame_id;  /* -1: none */
  int64_t camera_id; /* COLMAP's sensor_id */
  bool is_of_rig;    /* of several cameras */
} colmap_frame;

hs_status colmap_read_frame(hs_colmap_database *database, uint32_t image_id, colmap_frame *frame);

/* Whether a failure ended the transaction: nothing more can be added. */
bool colmap_is_lost(const hs_colmap_database *database);

#endif
