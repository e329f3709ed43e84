/*
 * Image pairs in COLMAP's database: queries, reading, and copying to another database. Used by the command in every
 * build; without SQLite each function returns HS_ERR_UNSUPPORTED.
 */
#ifndef HARTSIFT_FORMATS_COLMAP_COLMAP_PAIRS_H
#define HARTSIFT_FORMATS_COLMAP_COLMAP_PAIRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/include/hartsift.h"

/* State of the two entries (matches, verified matches) of a pair of images (a, b). */
typedef struct colmap_pair_state {
  int64_t matches, verified; /* number of rows; -1: the entry does not exist */
  bool is_damaged;           /* an entry is not a list of pairs of indices */
  int64_t largest[2];        /* largest feature index in a and in b, in both entries; -1: none */
} colmap_pair_state;

hs_status colmap_look_at_pair(hs_colmap_database *database, uint32_t image_a, uint32_t image_b,
                              colmap_pair_state *state);

/* Begin and end a transaction that only reads. All calls between see the same state, the file is locked once, and gaps
   between the pairs with entries are remembered. Other programs can read, but without a write-ahead log their commits
   wait: keep it short. */
void colmap_begin_reading(hs_colmap_database *database);
void colmap_end_reading(hs_colmap_database *database);

/* Reads the matches of a pair; their distances are 0. *matches: from the handle's allocator; the caller frees it with
   hs_memory_release. HS_ERR_FORMAT: the pair has no matches, or they are damaged. */
hs_status colmap_read_matches(hs_colmap_database *database, uint32_t image_a, uint32_t image_b, hs_match_pair **matches,
                              size_t *count);

/* Reads an image's keypoints as hs_colmap_read_features does, but no descriptors, which may be of any type. */
hs_status colmap_read_keypoints(hs_colmap_database *database, uint32_t image_id, hs_features *features);

/* Removes both entries of a pair. */
hs_status colmap_drop_pair(hs_colmap_database *database, uint32_t image_a, uint32_t image_b);

/* Finds the next pair with an entry, in the order of COLMAP's pair ids. after: id of the previous pair, -1 at first.
 *pair_id -1: there are no more. */
hs_status colmap_next_pair(hs_colmap_database *database, int64_t after, int64_t *pair_id, uint32_t images[2]);

/* A verified pair with inliers. */
typedef struct colmap_verified_pair {
  int64_t pair_id;
  uint32_t images[2];
  /* number of matches before verification, and of inliers; for a guided pair, of the first pass */
  size_t matches, inliers;
  size_t stored; /* number of inliers in the database */
  /* The list's length differs from the entry's count, or the pair id is invalid; the numbers above are 0 */
  bool is_damaged;
} colmap_verified_pair;

/* Finds the next verified pair in the order of COLMAP's pair ids, ignoring watermarks. after: id of the previous pair,
   -1 at first. pair->pair_id -1: there are no more. */
hs_status colmap_next_verified(hs_colmap_database *database, int64_t after, colmap_verified_pair *pair);

/* Reads the inliers of a pair into inliers[count][2], for the image with the lower id first. count: as from
   colmap_next_verified. */
hs_status colmap_read_inliers(hs_colmap_database *database, int64_t pair_id, uint32_t *inliers, size_t count);

/* Counts an image's keypoints; 0 if the data is shorter than its count says. */
hs_status colmap_count_held_keypoints(hs_colmap_database *database, uint32_t image_id, size_t *count);

/* Stores the numbers of the first pass of a guided pair in the table hartsift_guided. */
hs_status colmap_note_first_pass(hs_colmap_database *database, uint32_t image_a, uint32_t image_b, size_t matches,
                                 size_t inliers);

/* Moves a pair's geometry to the table hartsift_doubtful_pairs. Its entry gets configuration 1 (degenerate) without
   inliers. No effect on a pair without inliers. */
hs_status colmap_set_aside(hs_colmap_database *database, int64_t pair_id, size_t on_tracks, size_t supported);

/* Reduces a pair to inliers[count][2], and keeps a copy of its row in hartsift_doubtful_pairs. */
hs_status colmap_leave_inliers(hs_colmap_database *database, int64_t pair_id, const uint32_t *inliers, size_t count);

/* Restores all geometries that were set aside or lost inliers, except for pairs that another program has written since;
 * *count: number of geometries that were set aside. The table is then empty. */
hs_status colmap_take_back(hs_colmap_database *database, size_t *count);

/* Copies a pair's entries from another database. `from` and `to` are the image ids in the source and in `database`;
   their order may differ. Existing entries: as in hs_colmap_add_matches. HS_ERR_FORMAT: an entry is damaged, or has an
   index beyond its image's features; nothing is copied. The message is set on `database`. */
hs_status colmap_copy_pair(hs_colmap_database *database, const uint32_t to[2], hs_colmap_database *source,
                           const uint32_t from[2]);

/* Reads the camera of this number. *found: whether there is one. */
hs_status colmap_read_camera(hs_colmap_database *database, int64_t camera_id, hs_colmap_camera *camera, bool *found);

/* The frame of an image, and its camera. */
typedef struct colmap_frame {
  int64_t frame_id;  /* frame of the image; -1: none */
  int64_t camera_id; /* COLMAP's sensor_id of the camera */
  bool is_of_rig;    /* the rig has several cameras */
} colmap_frame;

hs_status colmap_read_frame(hs_colmap_database *database, uint32_t image_id, colmap_frame *frame);

/* True if a failure has ended the transaction, so that nothing more can be added. */
bool colmap_is_lost(const hs_colmap_database *database);

#endif
