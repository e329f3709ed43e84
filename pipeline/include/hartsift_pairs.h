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
 * Each result has the same bytes as hs_match followed by hs_verify (but see skip_next_distance), whatever the devices,
 * the number of threads and the memory. Results come in the order of the pairs. The context's threads work on several
 * pairs in parallel; on GPUs many pairs are matched in one launch, and the threads verify them. The next images are
 * read meanwhile. If the collection exceeds max_memory_bytes, pairs are processed in blocks of few images, and results
 * are kept until all earlier ones have been returned.
 */
#ifndef HARTSIFT_PAIRS_H
#define HARTSIFT_PAIRS_H

#include "hartsift_geometry.h"
#include "hartsift_match.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One image of a collection. Start with {0}. */
typedef struct hs_collection_image {
  /* features of the image: host memory of the caller, unchanged until hs_pairs_end; null: hs_collection.read supplies
     them */
  const hs_features *features;
  size_t feature_count; /* number of features that read will supply, for planning memory; used if features is null */
  hs_camera camera;     /* camera of the image; fx 0: unknown. Used for essential matrices */
  int32_t reserved[8];  /* 0 */
} hs_collection_image;

/* Images of a collection. They belong to the caller, and must stay unchanged until hs_pairs_end. */
typedef struct hs_collection {
  const hs_collection_image *images; /* image_count entries */
  size_t image_count;                /* number of images; below 2^32 */
  /* Fills the empty *features of an image whose `features` is null; the library frees them. A failure applies to every
     pair of the image; the function may write the reason to message (zero-terminated, at most message_bytes). Called by
     one thread at a time, never by a thread of the caller. Called once per image, or again if memory was too small to
     keep the image. May be null. */
  hs_status (*read)(void *user, uint32_t image, hs_features *features, char *message, size_t message_bytes);
  void *user;          /* pointer of the caller, passed to read */
  int32_t reserved[8]; /* 0 */
} hs_collection;

/* Options for the work on each pair. */
typedef struct hs_pairs_options {
  size_t struct_size;            /* sizeof(hs_pairs_options), set by hs_pairs_options_init; fields are only appended */
  const hs_match_options *match; /* options of matching, copied; a guide is not allowed; null: the defaults */
  /* options of verification; null: no verification. Copied without allocator, message and cameras; the collection has
     the cameras. HS_ESSENTIAL is estimated if both cameras are known, else HS_FUNDAMENTAL */
  const hs_verify_options *verify;
  /* 1: if a geometry was found, features are matched again, only among candidates within its tolerance, and verified
     again; the second result replaces the first if it has at least as many inliers. Needs verify; 0 or 1; default 0 */
  int32_t guided;
  /* 1: if a homography explains at least half of the inliers of another model, the homography is estimated too
     (hs_pair_result.plane). Needs verify; 0 or 1; default 0 */
  int32_t find_plane;
  double plane_tolerance; /* tolerance of that homography, pixels; 0: the tolerance of verify; 0 or more; default 0 */
  /* 1: if both cameras are known, an essential matrix is estimated too. It replaces the fundamental matrix if it has at
     least 0.95 times as many inliers (COLMAP's rule). Needs verify with HS_FUNDAMENTAL; 0 or 1; default 0 */
  int32_t find_essential;
  /* 1: next_distance of matches is 0, and a CPU need not compute it, which saves time; everything else stays the same.
     0 or 1; default 0 */
  int32_t skip_next_distance;
  /* context_count further contexts; null: none. The GPU of each takes pairs too, within its context's
     max_memory_bytes (contexts on one GPU share its memory); a CPU context lets the run's threads match. Results have
     the same bytes. They must stay open until hs_pairs_end, as the run's context; destroying one ends the run */
  struct hs_context *const *contexts;
  size_t context_count; /* number of further contexts; 0..HS_PAIRS_CONTEXTS_MAX; default 0 */
} hs_pairs_options;

/* Maximum number of further contexts of a run. */
enum { HS_PAIRS_CONTEXTS_MAX = 64 /* further contexts */ };

/* Sets guide, guide_matrix and guide_tolerance of *options to a geometry that was found: matching then considers only
   candidates within geometry->tolerance (0: the tolerance of *verify). For HS_ESSENTIAL the cameras of *verify are used
   too. hs_pairs_options.guided does the same; for a plane_only geometry it uses the homography. The tolerance of a
   homography is multiplied by sqrt 2, because guides measure the error in the second image alone.
   Statuses: HS_ERR_ARGUMENT (null, found 0), HS_ERR_OPTION (struct_size not set). */
HS_API hs_status hs_guide_by_geometry(hs_match_options *options, const hs_geometry *geometry,
                                      const hs_verify_options *verify);

/* Fills *options with the defaults above. Statuses: HS_ERR_ARGUMENT (null). */
#define hs_pairs_options_init(options) hs_pairs_options_init_sized((options), sizeof(hs_pairs_options))
HS_API hs_status hs_pairs_options_init_sized(hs_pairs_options *options, size_t struct_size);

/* Result of a pair. Host memory of the library. */
typedef struct hs_pair_result {
  size_t index;         /* index of the pair in the list */
  hs_image_pair images; /* pairs[index] */
  hs_status status;     /* HS_OK, or why the fields below are empty: the image could not be read, the descriptors have
                           two types, the two images alone exceed max_memory_bytes (HS_ERR_LIMIT), ... */
  const char *message;  /* reason of a failure; "" for HS_OK */
  size_t match_count;   /* number of matches */
  const hs_match_pair *matches;   /* match_count matches, by ascending first */
  const uint8_t *inliers;         /* match_count bytes, 1 for an inlier; null without verification */
  const hs_geometry *geometry;    /* verified geometry; null without verification */
  const hs_geometry *plane;       /* homography of find_plane; null: not estimated */
  const hs_geometry *fundamental; /* fundamental matrix, if find_essential replaced it by the essential matrix in
                                     `geometry`; else null */
  const hs_pose *pose;            /* pose, if `geometry` is an essential matrix; null: none was found */
  /* 1: the images agree only in a caption, a logo or a frame (COLMAP's rule): at least 70 % of the inliers are in both
     images within a border of a tenth of the diagonal, and one translation explains at least 70 % of the inliers. Else
     0, also if a list has no image_width */
  int32_t watermark;
  int32_t device; /* context that matched the pair: 0: the run's, i: contexts[i - 1] of hs_pairs_options */
  /* number of matches before the guided pass, if its result replaced the first; else 0. hs_judge_pairs needs both
     numbers */
  size_t unguided_matches;
  size_t unguided_inliers; /* number of inliers before the guided pass, if its result replaced the first; else 0 */
} hs_pair_result;

/* Result of verifying a pair. */
typedef struct hs_pair_geometry {
  hs_geometry model;       /* the model; `inliers` agree with it */
  hs_geometry plane;       /* homography of find_plane; valid if has_plane is 1 */
  hs_geometry fundamental; /* fundamental matrix, if find_essential replaced it by the essential matrix in `model`;
                              else all 0 */
  hs_pose pose;            /* pose, if model is an essential matrix; else all 0 */
  int32_t has_plane;       /* 1: plane was estimated */
  int32_t watermark;       /* see hs_pair_result */
  int32_t reserved[6];     /* 0 */
} hs_pair_geometry;

/* Verifies matches of two images with the rules of a run over pairs. matches: `count` matches of the caller. options:
   as for the run, but options->verify must not be null, and its cameras (fx 0: unknown), allocator and message are
   used. inliers: `count` bytes of the caller, which get 1 for an inlier, else 0. Re-entrant; blocks, on the calling
   thread. Statuses: HS_ERR_ARGUMENT (null, an index outside its list), HS_ERR_OPTION, HS_ERR_LIMIT, HS_ERR_MEMORY;
   *found is all 0 then. */
HS_API hs_status hs_verify_pair(const hs_features *a, const hs_features *b, const hs_match_pair *matches, size_t count,
                                const hs_pairs_options *options, uint8_t *inliers, hs_pair_geometry *found);

/* A run over a list of pairs. */
typedef struct hs_pairs hs_pairs;

/* Starts to match `count` pairs of images of the collection. The list `pairs` belongs to the caller and must stay
   unchanged until hs_pairs_end. An image may be in any number of pairs, but not twice in one. The threads of `context`
   do the work, and its GPU if it has one; until hs_pairs_end the context may only be passed to hs_destroy. Its
   max_memory_bytes limits the run's host memory and, separately, its device memory; 0: half of the machine's and of the
   device's memory. Its allocator is called from several threads at once. options: null for the defaults. Does not
   block.
   Statuses: HS_ERR_ARGUMENT (null, an index outside the collection, a pair of an image with itself, an image without
   features if read is null, another run on this context), HS_ERR_OPTION, HS_ERR_LIMIT (2^32 - 1 pairs or more),
   HS_ERR_MEMORY, HS_ERR_THREAD, HS_ERR_DEVICE; *run is null then, and hs_last_error says why. */
HS_API hs_status hs_pairs_start(hs_pairs **run, hs_context *context, const hs_collection *collection,
                                const hs_image_pair *pairs, size_t count, const hs_pairs_options *options);

/* Waits for the next pair of the list. *result is valid until the next call on the run. wait_ms: time limit in
   milliseconds; -1: none. HS_OK with *result null: all pairs have been returned, or the time is over. Statuses:
   HS_ERR_ARGUMENT (null, or the context was destroyed), HS_ERR_MEMORY, HS_ERR_DEVICE, HS_ERR_INTERNAL. After a failure
   the run cannot continue: every further call fails with the same status, but results returned so far stay valid. */
HS_API hs_status hs_pairs_next(hs_pairs *run, int32_t wait_ms, const hs_pair_result **result);

/* Returns the number of contexts whose GPU failed during the run while others took its pairs, or had so little free
   memory at the start, less than a quarter of another GPU's, that it was left out. If no other context works,
   hs_pairs_next fails instead. *last: null, or gets the number of the context that failed last, as
   hs_pair_result.device; -1: none. message: null, or gets the reason of that failure. */
HS_API int32_t hs_pairs_lost_devices(hs_pairs *run, int32_t *last, char *message, size_t message_bytes);

/* Returns the reason why hs_pairs_next failed; "" if it did not. Valid until hs_pairs_end. */
HS_API const char *hs_pairs_last_error(const hs_pairs *run);

/* Ends a run, finished or not, and frees all its memory. Waits for pairs in progress. null is allowed. */
HS_API void hs_pairs_end(hs_pairs *run);

/* Judgement whether verified pairs show the same place.
 *
 * Buildings repeat: pictures of two facades with the same windows can have some dozen matches that agree with a
 * geometry, although they show different places. Such a pair contradicts the others. A pair is sure if it has many
 * inliers and these are most of its matches; the inliers of sure pairs join features to tracks. If a chain of one to
 * three sure pairs connects the images of a weak pair, the two features of each of its inliers should be on the same
 * track. If this holds for hardly any inlier, the pair is doubtful. A weak pair stays if it is the only link between
 * two parts of a collection, or may close a loop, because then it contradicts nothing. Sure pairs that are wrong (a
 * symmetric building), and collections without sure pairs, cannot be judged.
 */
typedef enum hs_pair_verdict {
  HS_PAIR_SUPPORTED = 0, /* tracks confirm the pair, or do not contradict it */
  HS_PAIR_SURE = 1,      /* the inliers of this pair are used to form tracks */
  /* no chain of sure pairs connects the images, or only chains of four or more, so the pair may close a loop */
  HS_PAIR_ONLY_LINK = 2,
  HS_PAIR_DOUBTFUL = 3 /* sure pairs connect its images, and the tracks do not confirm the pair */
} hs_pair_verdict;

/* A verified pair of a collection. Start with {0}. */
typedef struct hs_judged_pair {
  hs_image_pair images;    /* indices of two images of the collection */
  size_t match_count;      /* number of matches before verification, without a guide */
  size_t inlier_count;     /* number of inliers among them */
  hs_pair_verdict verdict; /* written: the verdict */
  size_t on_tracks;        /* written: inliers whose two features are both on tracks of sure pairs; 0 for a sure pair */
  size_t supported;        /* written: inliers whose two features are on the same track */
  int32_t reserved[4];     /* 0 */
} hs_judged_pair;

/* The caller's source of pairs' inliers. */
typedef struct hs_pair_inliers {
  const size_t *feature_counts; /* [image_count]: features of each image; their sum is below 2^32 */
  size_t image_count;           /* number of images of the collection */
  /* Writes 2 x inlier_count feature indices of the pair's inliers: for each the first image's, then the second
     image's. Called once for each pair, sure pairs first, on the calling thread. A status other than HS_OK ends
     hs_judge_pairs. */
  hs_status (*read)(void *user, size_t pair, uint32_t *inliers);
  void *user; /* pointer of the caller, passed to read */
} hs_pair_inliers;

/* Options of the judgement. */
typedef struct hs_judge_options {
  size_t struct_size;  /* sizeof(hs_judge_options), set by hs_judge_options_init; fields are only appended */
  size_t sure_inliers; /* minimum number of inliers of a sure pair; default 100 */
  double sure_share;   /* minimum share of a sure pair's matches that are inliers; 0..1; default 0.6 */
  /* share of a pair's matches that are inliers, below which less evidence makes the pair doubtful; 0..1; 0.5. An inlier
     supports a pair if its two features are on the same track, and contradicts it if they are on different tracks.
     Below this share, a pair is doubtful if at least one inlier contradicts it and less than least_support of its
     inliers support it, or if ten or more contradict it and fewer support it. From this share to sure_share, a pair is
     doubtful if four or more inliers contradict it and none supports it */
  double doubtful_share;
  double least_support; /* minimum share of supporting inliers of a pair that is not doubtful; 0..1; default 0.15 */
  const hs_allocator *allocator; /* allocator of working memory, 5 bytes per feature; null: the C library's */
  char *message;                 /* null, or buffer for the reason of a failure (zero-terminated) */
  size_t message_bytes;          /* capacity of message */
} hs_judge_options;

/* Fills *options with the defaults above. Statuses: HS_ERR_ARGUMENT (null). */
#define hs_judge_options_init(options) hs_judge_options_init_sized((options), sizeof(hs_judge_options))
HS_API hs_status hs_judge_options_init_sized(hs_judge_options *options, size_t struct_size);

/* Sets verdict, on_tracks and supported of `count` pairs of the caller. The result does not depend on their order.
   options: null for the defaults. Blocks, on the calling thread. Statuses: HS_ERR_ARGUMENT (null, an image or feature
   outside the collection), HS_ERR_OPTION, HS_ERR_LIMIT, HS_ERR_MEMORY, and the status that source->read returned. */
HS_API hs_status hs_judge_pairs(const hs_pair_inliers *source, hs_judged_pair *pairs, size_t count,
                                const hs_judge_options *options);

#ifdef __cplusplus
}
#endif
#endif
