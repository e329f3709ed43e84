/*
 * hartsift_pairs.h - many pairs of a collection's images matched, and verified; part of hartsift.h.
 *
 *     hs_pairs *run;  hs_status st = hs_pairs_start(&run, context, &collection, pairs, count, &options);
 *     for (size_t i = 0; i < count; i++) {
 *       const hs_pair_result *r;
 *       st = hs_pairs_next(run, -1, &r);     of pairs[i]
 *     }
 *     hs_pairs_end(run);
 *
 * For each pair the same bytes as hs_match and hs_verify one after another, whatever the device, the number of threads
 * and the memory, in the order of the pairs. In between, the threads of the context work on different pairs, or verify
 * those that its GPU matches, many in one launch; the next images are read meanwhile. Where the collection does not fit
 * max_memory_bytes, pairs are processed in blocks of few images, and results are kept until it is their turn.
 */
#ifndef HARTSIFT_PAIRS_H
#define HARTSIFT_PAIRS_H

#include "hartsift_geometry.h"
#include "hartsift_match.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One image. Start with {0}. */
typedef struct hs_collection_image {
  const hs_features
      *features;        /* host memory of the caller, unchanged until hs_pairs_end; null: hs_collection.read gives
                                  them */
  size_t feature_count; /* without features: as many as read will give; memory is planned by it */
  hs_camera camera;     /* for HS_ESSENTIAL; fx 0: not known */
  int32_t reserved[8];  /* 0 */
} hs_collection_image;

/* The images. The caller's, unchanged until hs_pairs_end. */
typedef struct hs_collection {
  const hs_collection_image *images; /* image_count entries */
  size_t image_count;                /* below 2^32 */
  /* Fills the empty *features of an image that has none in the array; the library frees them. A failure applies to every
     pair of the image; message (zero-terminated, at most message_bytes) may say why. Called from one thread at a time, none
     of the caller's, once for an image, or again where memory was too small to keep it. May be null. */
  hs_status (*read)(void *user, uint32_t image, hs_features *features, char *message, size_t message_bytes);
  void *user;          /* the caller's, passed to read */
  int32_t reserved[8]; /* 0 */
} hs_collection;

/* Options for the work on each pair. */
typedef struct hs_pairs_options {
  size_t struct_size;            /* sizeof(hs_pairs_options), set by hs_pairs_options_init; fields are only appended */
  const hs_match_options *match; /* null: the defaults; without a guide. Copied */
  const hs_verify_options *verify; /* null: matches alone. Copied; allocator and message are not used, and the cameras
                              are the collection's: HS_ESSENTIAL is estimated where both are known, HS_FUNDAMENTAL where
                              not */
  int32_t guided;         /* 1: where a geometry was found, features are matched again among candidates that agree with
                              it within its tolerance, and verified again; the outcome replaces the first one if it has
                              as many inliers. Needs verify; 0 or 1; 0 */
  int32_t find_plane;     /* 1: where a homography explains half of the inliers of another model or more, it is
                              estimated too (hs_pair_result.plane); needs verify; 0 or 1; 0 */
  double plane_tolerance; /* of that homography, pixels; 0: the tolerance of verify; 0 or more; 0 */
  int32_t find_essential; /* 1: where both cameras are known an essential matrix is estimated too. It replaces the
                              fundamental matrix if it has at least .95 of that one's inliers (COLMAP's rule). Needs a
                              verify of HS_FUNDAMENTAL; 0 or 1; 0 */
  int32_t reserved;       /* 0 */
} hs_pairs_options;

/* Sets guide, guide_matrix and guide_tolerance of *options, so that candidates for matching agree with a geometry that was
   found, within geometry->tolerance (0: the tolerance of *verify). Of *verify, HS_ESSENTIAL also uses the cameras.
   hs_pairs_options.guided does the same, with the homography where the geometry is plane_only. A homography's tolerance is
   multiplied by sqrt 2, because guides measure in the second image alone.
   Statuses: HS_ERR_ARGUMENT (null, found 0), HS_ERR_OPTION (a struct_size that is not set). */
HS_API hs_status hs_guide_by_geometry(hs_match_options *options, const hs_geometry *geometry,
                                      const hs_verify_options *verify);

/* Fills *options with the defaults above. Statuses: HS_ERR_ARGUMENT (null). */
#define hs_pairs_options_init(options) hs_pairs_options_init_sized((options), sizeof(hs_pairs_options))
HS_API hs_status hs_pairs_options_init_sized(hs_pairs_options *options, size_t struct_size);

/* The result of a pair. The library's, host memory. */
typedef struct hs_pair_result {
  size_t index;         /* of the pair in the list */
  hs_image_pair images; /* pairs[index] */
  hs_status status;     /* HS_OK, or why the rest is empty: the image's reading failed, descriptors of two types,
                           HS_ERR_LIMIT where the two images alone are beyond max_memory_bytes, ... */
  const char *message;  /* the reason, for HS_OK "" */
  size_t match_count;   /* matches */
  const hs_match_pair *matches;   /* match_count, by ascending first */
  const uint8_t *inliers;         /* match_count bytes, 1 for an inlier; null without verification */
  const hs_geometry *geometry;    /* null without verification */
  const hs_geometry *plane;       /* of find_plane; null: not estimated */
  const hs_geometry *fundamental; /* of find_essential, where geometry is the essential matrix; else null */
  const hs_pose *pose;            /* of an essential matrix; null: none was found */
  int32_t watermark;              /* 1: the inliers are a caption, a logo or a frame: at least 70 % are in the border of
                              both images, which is a tenth of the diagonal wide, and one translation explains at least
                              70 % (COLMAP's rule); else 0, also where a list has no image_width */
  int32_t reserved;               /* 0 */
  size_t unguided_matches; /* if the guided pass replaced the first one: the first one's matches and, next, its inliers,
                              for hs_judge_pairs; else 0 */
  size_t unguided_inliers; /* see unguided_matches */
} hs_pair_result;

/* Result of verifying a pair. */
typedef struct hs_pair_geometry {
  hs_geometry model;       /* the inliers agree with it */
  hs_geometry plane;       /* of find_plane, if has_plane */
  hs_geometry fundamental; /* of find_essential, if model is the essential matrix; else all 0 */
  hs_pose pose;            /* if model is an essential matrix; else all 0 */
  int32_t has_plane;       /* 1: plane was estimated */
  int32_t watermark;       /* see hs_pair_result */
  int32_t reserved[6];     /* 0 */
} hs_pair_geometry;

/* Verifies matches of two images as a run over pairs does. matches: `count` of them, the caller's. options: as for the run;
   options->verify must not be null: its cameras are used for a and b (fx 0: not known), like its allocator and message.
   inliers: count bytes of the caller, written: 1 for an inlier. Re-entrant; blocks, on the calling thread.
   Statuses: HS_ERR_ARGUMENT (null, an index outside its list), HS_ERR_OPTION, HS_ERR_LIMIT, HS_ERR_MEMORY; *found is all
   0 then. */
HS_API hs_status hs_verify_pair(const hs_features *a, const hs_features *b, const hs_match_pair *matches, size_t count,
                                const hs_pairs_options *options, uint8_t *inliers, hs_pair_geometry *found);

/* A run over a list of pairs. */
typedef struct hs_pairs hs_pairs;

/* Starts to match `pairs`, count of them (indices of the collection's images), the caller's and unchanged until
   hs_pairs_end; an image may be in any number of them, but not twice in one. context: its threads, and its GPU if it has
   one, do the work; until hs_pairs_end it must not be used for anything else but hs_destroy. Its max_memory_bytes
   bounds what the run holds in host memory and on the device each; 0: half of the machine's and of the device's
   memory. Its allocator is called from several threads at once. options: null for the defaults. Does not block.
   Statuses: HS_ERR_ARGUMENT (null, an index outside the collection, a pair of an image with itself, an image with
   neither features nor read, a run on this context that has not ended), HS_ERR_OPTION, HS_ERR_LIMIT (2^32 - 1 pairs or
   more), HS_ERR_MEMORY, HS_ERR_THREAD, HS_ERR_DEVICE; *run is null then, and hs_last_error says why. */
HS_API hs_status hs_pairs_start(hs_pairs **run, hs_context *context, const hs_collection *collection,
                                const hs_image_pair *pairs, size_t count, const hs_pairs_options *options);

/* Waits for the next pair of the list. *result: valid until the next call on the run; null with HS_OK: all have been
   returned, or the next was not ready within wait_ms milliseconds (-1: waits as long as it takes). Statuses: HS_ERR_ARGUMENT
   (null, or the context was destroyed), HS_ERR_MEMORY, HS_ERR_DEVICE, HS_ERR_INTERNAL: the run cannot continue; the results
   returned so far are valid, and every further call fails with the same status. */
HS_API hs_status hs_pairs_next(hs_pairs *run, int32_t wait_ms, const hs_pair_result **result);

/* Why hs_pairs_next failed, "" if it did not. Valid until hs_pairs_end. */
HS_API const char *hs_pairs_last_error(const hs_pairs *run);

/* Ends a run, finished or not, and frees all of it; pairs in progress are finished first. null is
   allowed. */
HS_API void hs_pairs_end(hs_pairs *run);

/* Judgement whether verified pairs show the same place.
 *
 * Buildings repeat: pictures of two facades with the same windows can have a few dozen matches that agree with a geometry,
 * although they show different places. Such a pair contradicts the others. A pair with many inliers that are most of its
 * matches is sure; the inliers of sure pairs join features to tracks. If one to three sure pairs in a row connect the images
 * of a weak pair, the two features of its inliers should be on one track; if they hardly ever are, the pair is doubtful. A
 * weak pair that is the only link between two parts of a collection, or that may close a loop, contradicts nothing and
 * stays. It cannot judge sure pairs that are wrong (a symmetric building), and collections without sure pairs.
 */
typedef enum hs_pair_verdict {
  HS_PAIR_SUPPORTED = 0, /* tracks confirm it, or do not contradict it */
  HS_PAIR_SURE = 1,      /* it made the tracks */
  HS_PAIR_ONLY_LINK = 2, /* sure pairs do not connect its images, or only four or more in a row, so that it may close a
                            loop */
  HS_PAIR_DOUBTFUL = 3   /* sure pairs connect its images, and their tracks do not confirm it */
} hs_pair_verdict;

/* A verified pair of a collection. Start with {0}. */
typedef struct hs_judged_pair {
  hs_image_pair images;    /* indices of two images of the collection */
  size_t match_count;      /* matches before verification, without a guide */
  size_t inlier_count;     /* of them */
  hs_pair_verdict verdict; /* written, like the two below */
  size_t on_tracks;        /* inliers with both features on tracks of sure pairs; 0 for a sure pair */
  size_t supported;        /* of these, both on one track */
  int32_t reserved[4];     /* 0 */
} hs_judged_pair;

/* The caller's source of pairs' inliers. */
typedef struct hs_pair_inliers {
  const size_t *feature_counts; /* image_count entries; below 2^32 in all */
  size_t image_count;           /* of the collection */
  /* Writes 2 x inlier_count indices of pairs[pair]: first image's feature, second image's feature, ... Called once for each
     pair, sure pairs first, on the calling thread; a status other than HS_OK ends the call. */
  hs_status (*read)(void *user, size_t pair, uint32_t *inliers);
  void *user; /* the caller's, passed to read */
} hs_pair_inliers;

/* Options of the judgement. */
typedef struct hs_judge_options {
  size_t struct_size;    /* sizeof(hs_judge_options), set by hs_judge_options_init; fields are only appended */
  size_t sure_inliers;   /* fewest inliers of a sure pair; 100 */
  double sure_share;     /* their least share of the pair's matches; 0..1; 0.6 */
  double doubtful_share; /* inliers support a pair if both features are on one track, and deny it if they are on two. A
                              pair whose inliers are a smaller share of its matches is doubtful if at least one denies it
                              and less than least_support of them support it, or if ten or more deny it and fewer support
                              it. From this share to sure_share it is doubtful if four or more deny it and none supports
                              it; 0..1; 0.5 */
  double least_support;  /* share of inliers whose support is enough; 0..1; 0.15 */
  const hs_allocator *allocator; /* for working memory: 5 bytes a feature; null: the C library's */
  char *message;                 /* null, or where the reason of a failure goes (zero-terminated) */
  size_t message_bytes;          /* capacity there */
} hs_judge_options;

/* Fills *options with the defaults above. Statuses: HS_ERR_ARGUMENT (null). */
#define hs_judge_options_init(options) hs_judge_options_init_sized((options), sizeof(hs_judge_options))
HS_API hs_status hs_judge_options_init_sized(hs_judge_options *options, size_t struct_size);

/* Fills verdict, on_tracks and supported of `count` pairs, the caller's. The result does not depend on their order.
   options: null for the defaults. Blocks, on the calling thread. Statuses: HS_ERR_ARGUMENT (null, an image or feature
   outside the collection), HS_ERR_OPTION, HS_ERR_LIMIT, HS_ERR_MEMORY, and what source->read returned. */
HS_API hs_status hs_judge_pairs(const hs_pair_inliers *source, hs_judged_pair *pairs, size_t count,
                                const hs_judge_options *options);

#ifdef __cplusplus
}
#endif
#endif
