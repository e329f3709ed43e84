/*
 * hartsift_match.h - exact matching of descriptors; part of hartsift.h.
 *
 * Every descriptor is compared with every other, without a tree or an approximation. Every backend gives the same
 * bytes: nearest and second nearest neighbours, distances, and the pairs that are kept.
 *
 * Distances. Euclidean, in the unit of the descriptors' own values: 8-bit ones have a norm of about 512. Squared
 * distances of 8-bit descriptors are integers below 2^23, so a float holds them exactly. For float descriptors the
 * square is fma(t, t, sum) over t = a[k] - b[k], k = 0 to 127 in that order. Of equal distances the lower index is
 * nearer. A descriptor at a distance that is not finite is no candidate.
 */
#ifndef HARTSIFT_MATCH_H
#define HARTSIFT_MATCH_H

#include "hartsift_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Restriction of candidates by position: the distance that the guide measures must be at most guide_tolerance. */
typedef enum hs_guide {
  HS_GUIDE_NONE = 0, /* no restriction of candidates */
  /* distance between the second image's position and H times the first image's position (x, y, 1) */
  HS_GUIDE_HOMOGRAPHY = 1,
  HS_GUIDE_FUNDAMENTAL = 2 /* Sampson distance to x2^T F x1 = 0 (Hartley and Zisserman, section 11.4.3) */
} hs_guide;

/* Which pairs hs_match keeps. */
typedef struct hs_match_options {
  size_t struct_size; /* sizeof(hs_match_options), set by hs_match_options_init; fields are only appended */
  /* keep a pair if its distance is below ratio times the distance to the second nearest; 0: no test; 0..1; 0.8 (Lowe,
     section 7.1). The test is computed as d1 < (ratio * ratio) * d2, with squared distances in double. With a guide, a
     candidate without a second nearest passes. Without a guide, if the second image has one feature, the test compares
     the features of the first image instead, so that at most one pair is kept */
  double ratio;
  double max_distance;    /* keep a pair if its distance is at most this, in the unit of the descriptors; 0: no limit;
                             default 0 */
  int32_t mutual;         /* 1: cross-check: each feature must be the other's match, and all tests must pass in both
                             directions, so that exchanging the images exchanges the members of the pairs. 0: one
                             direction; 0 or 1; default 1 */
  hs_guide guide;         /* restricts candidates by their positions; default HS_GUIDE_NONE */
  double guide_matrix[9]; /* guide's matrix from points of the first image to the second, row-major, any scale;
                             identity */
  /* maximum distance of a candidate, pixels of the second image; above 0; infinity: no restriction; default 4 */
  double guide_tolerance;
} hs_match_options;

/* Fills *options with the defaults above. Statuses: HS_ERR_ARGUMENT (null). */
#define hs_match_options_init(options) hs_match_options_init_sized((options), sizeof(hs_match_options))
HS_API hs_status hs_match_options_init_sized(hs_match_options *options, size_t struct_size);

/* One pair. 16 bytes. */
typedef struct hs_match_pair {
  uint32_t first, second; /* indices into the two lists of features */
  float distance;         /* distance between their descriptors */
  float next_distance;    /* distance from first's descriptor to its second nearest candidate; infinity if there is
                             none */
} hs_match_pair;

/* Matches, by ascending first. A feature of the first list is in at most one pair; with mutual, also a feature of the
   second. Start with {0}; the library owns the array until hs_matches_free, or until the next call that fills the same
   struct. */
typedef struct hs_matches {
  size_t count;                  /* number of pairs */
  hs_match_pair *pairs;          /* count entries */
  size_t capacity;               /* number of entries that the array can hold; set by the library */
  const hs_allocator *allocator; /* allocator of the array; must outlive it. Set by the library */
  int32_t reserved[8];           /* 0 */
} hs_matches;

/* Frees the array and clears the struct; null and {0} are allowed. */
HS_API void hs_matches_free(hs_matches *matches);

/* The two nearest candidates of one descriptor. 16 bytes. */
typedef struct hs_nearest {
  uint32_t nearest, second;              /* indices of the two candidates; HS_NO_FEATURE if one does not exist */
  float nearest_squared, second_squared; /* squared distances of the two candidates; infinity for HS_NO_FEATURE */
} hs_nearest;
/* The index that stands for no feature. */
#define HS_NO_FEATURE UINT32_MAX

/* Matches two lists of features in host memory, of the same descriptor type, each with fewer than 2^32 - 1 entries.
   context: its GPU does the work, or its threads with its instruction set; null: the calling thread, with memory of the
   C library. options: null for the defaults. matches: in and out, see hs_matches; unchanged on failure. Blocks.
   Keypoints are read only with a guide. The context's memory grows to the largest lists; then nothing is allocated if
   *matches has the capacity.
   Statuses: HS_ERR_ARGUMENT (null, or descriptors that are missing, of different types, or not comparable by their
   provenance, see hs_origin), HS_ERR_OPTION, HS_ERR_LIMIT (more features, or more than options.max_memory_bytes of
   workspace), HS_ERR_MEMORY, HS_ERR_DEVICE. */
HS_API hs_status hs_match(hs_context *context, const hs_features *first, const hs_features *second,
                          const hs_match_options *options, hs_matches *matches);

/* Finds, for every feature of `first`, the two nearest in `second`. nearest: [first->count], host memory of the
   caller. Only the guide of the options is used. Otherwise as hs_match. */
HS_API hs_status hs_find_nearest(hs_context *context, const hs_features *first, const hs_features *second,
                                 const hs_match_options *options, hs_nearest *nearest);

/* ------------------------------------------------------------------ more neighbours than two */

/* A neighbour of a feature. Always 8 bytes. */
typedef struct hs_neighbour {
  uint32_t index; /* index in the second list; HS_NO_FEATURE: no further candidate */
  float distance; /* distance between the descriptors; infinity for HS_NO_FEATURE */
} hs_neighbour;

/* Maximum k of hs_find_k_nearest. */
enum { HS_NEIGHBOURS_MAX = 1024 /* neighbours */ };

/* Finds, for every feature of `first`, the k nearest in `second`, by ascending squared distance, equal distances by
   index. k: 1..HS_NEIGHBOURS_MAX. neighbours: [first->count * k], host memory of the caller, one row for each feature;
   with fewer than k candidates the row ends with HS_NO_FEATURE at infinity. Only the guide of the options is used.
   Otherwise as hs_match. Statuses: as hs_match. */
HS_API hs_status hs_find_k_nearest(hs_context *context, const hs_features *first, const hs_features *second,
                                   const hs_match_options *options, int32_t k, hs_neighbour *neighbours);

/* Neighbours of every feature of a list: feature i has neighbours[starts[i]] to neighbours[starts[i + 1] - 1]. Start
   with {0}; the library owns both arrays until hs_neighbour_lists_free, or until the next call that fills the same
   struct. */
typedef struct hs_neighbour_lists {
  size_t feature_count;             /* number of features of the first list */
  size_t *starts;                   /* [feature_count + 1]; the last entry is the number of all neighbours */
  hs_neighbour *neighbours;         /* neighbours of all features, one feature after another */
  size_t starts_capacity, capacity; /* numbers of entries that the arrays can hold; set by the library */
  const hs_allocator *allocator;    /* allocator of the arrays; must outlive them. Set by the library */
  int32_t reserved[8];              /* 0 */
} hs_neighbour_lists;

/* Frees the arrays and clears the struct; null and {0} are allowed. */
HS_API void hs_neighbour_lists_free(hs_neighbour_lists *lists);

/* Finds, for every feature of `first`, all features in `second` within a radius, ordered as by hs_find_k_nearest.
   radius: largest distance, unit of the descriptors, 0 or more; infinity: all with a finite distance. lists: in and
   out; after a failure {0} or unchanged. Only the guide of the options is used. Otherwise as hs_match. Statuses: as
   hs_match; HS_ERR_MEMORY also if the lists, 8 bytes per neighbour, do not fit. */
HS_API hs_status hs_find_within(hs_context *context, const hs_features *first, const hs_features *second,
                                const hs_match_options *options, double radius, hs_neighbour_lists *lists);

#ifdef __cplusplus
}
#endif
#endif
