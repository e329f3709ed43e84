/*
 * hartsift_geometry.h - verification of matches by homography, fundamental or essential matrix; part of hartsift.h.
 *
 * Finds the geometry that most matches of two images agree with, and these matches. Points are pixels of the original
 * images, the centre of the top-left pixel at (0, 0), as everywhere in this library. A point x = (x, y, 1) of
 * image a and its match x' of image b satisfy
 *
 *     homography    x' ~ H x            one plane, or a camera that only turned
 *     fundamental   x'^T F x = 0        any two views
 *     essential     x'^T Kb^-T E Ka^-1 x = 0   the same with known cameras, K = (fx 0 cx; 0 fy cy; 0 0 1), so that
 *                                       E = [t]x R for X_b = R X_a + t
 *
 * Matrices are nine doubles, row by row. The error of a match is the Sampson distance, in pixels, for every model: to
 * first order, how far the two points together must move to satisfy the model exactly. For a homography that keeps
 * sizes it is the distance |x' - H x| divided by sqrt 2.
 *
 * One set of points, options and seed gives the same bytes on every machine. All functions are re-entrant, block, run
 * on the calling thread and touch host memory only.
 */
#ifndef HARTSIFT_GEOMETRY_H
#define HARTSIFT_GEOMETRY_H

#include "hartsift_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Models of two-view geometry. */
typedef enum hs_geometry_model {
  HS_HOMOGRAPHY = 1,  /* maps points to points; from 4 matches */
  HS_FUNDAMENTAL = 2, /* maps points to epipolar lines; from 7 matches */
  HS_ESSENTIAL = 3    /* relative pose of two calibrated cameras; from 5 matches; needs both cameras */
} hs_geometry_model;

/* Intrinsic parameters of a pinhole camera, pixels. Lens distortion must be removed from the points beforehand. The
   struct will never change; another camera model gets another struct. */
typedef struct hs_camera {
  double fx, fy; /* focal lengths; above 0 */
  double cx, cy; /* principal point; the centre of the top-left pixel is (0, 0) */
} hs_camera;

/* Options of the search for a geometry. */
typedef struct hs_verify_options {
  size_t struct_size;      /* sizeof(hs_verify_options), set by hs_verify_options_init; fields are only appended */
  hs_geometry_model model; /* model to search for */
  double tolerance;        /* maximum error of an inlier, pixels; above 0; homography 3, others 2 */
  /* probability of having drawn a sample without outliers, for the best model so far or for a model with min_inliers,
     at which the search stops; 0..1, both excluded; default 0.9999 */
  double confidence;
  int32_t min_iterations; /* minimum number of samples; 0..max_iterations; default 50 */
  int32_t max_iterations; /* maximum number of samples; 1..10^8; default 10000 */
  /* minimum number of inliers of a model that is reported as found; 0 or more; homography 8, others 15. Fewer matches
     than this are not searched. It also shortens a search in which nothing agrees: for 24 matches and samples of seven,
     491 samples find 15 inliers if they exist. Wrong matches agree by chance, with a fundamental matrix about 10 of 30
     or 25 of 800: raise the number for many matches without a ratio test */
  int32_t min_inliers;
  /* 1: if most inliers of a fundamental matrix are in one plane, they do not determine it: complete the matrix from
     matches off the plane (Chum, Werner, Matas 2005); 0 or 1; default 1 */
  int32_t check_plane;
  uint64_t seed;                 /* seed of the random samples; default 0 */
  hs_camera camera_a, camera_b;  /* cameras of the images, for HS_ESSENTIAL only; all 0 */
  const hs_allocator *allocator; /* allocator of working memory; null: the C library's */
  char *message;                 /* null, or buffer for the reason of a failure (zero-terminated) */
  size_t message_bytes;          /* capacity of message */
  /* fundamental, essential. 1: search again among the inliers whose motion agrees with their neighbours' (disparity
     gradient at most 1: Burt and Julesz 1980; Pollard, Mayhew and Frisby 1985). The second search has a smaller
     tolerance, measured from their errors, and finally at least 2 pixels. It removes wrong matches that agree within a
     wide tolerance, for instance along rows of equal windows. If a plane explains at least half of the inliers of a
     fundamental matrix, and off the plane no more matches agree than by chance, only the plane's inliers are kept
     (plane_only). If too few inliers remain, the result of the first search is kept. 0: only the first search; 0 or 1;
     default 1 */
  int32_t refine;
  int32_t refine_matches; /* minimum number of inliers for a second search; 0 or more; default 30 */
} hs_verify_options;

/* Result of the search: the geometry that most matches agree with. */
typedef struct hs_geometry {
  hs_geometry_model model; /* model that was searched for */
  int32_t found;           /* 1: matrix and inliers are valid; 0: no model has min_inliers, the matrix is all 0, and
                              there are no inliers */
  /* H: last element 1 (if that is 0, Frobenius norm 1 instead). F: Frobenius norm 1, element of largest magnitude
     positive. E: singular values 1, 1, 0, sign as for F. The last singular value of F and E is 0 up to rounding */
  double matrix[9];
  size_t inlier_count; /* number of matches that agree with the matrix */
  double rms_error;    /* root mean square of the inliers' errors, pixels */
  /* F and E: number of inliers that one homography explains within the tolerance, found by a short search. If it is
     near inlier_count, the scene is a plane or the camera only turned, and F is not determined. H: inlier_count */
  size_t plane_inliers;
  int32_t iterations; /* number of samples of the first search, a multiple of 16 */
  /* 1 (F only): too few matches are off the plane to determine the epipole. Inliers, tolerance and rms_error are those
     of the plane, and many matrices fit, of which this is one. Else 0 */
  int32_t plane_only;
  /* maximum error of an inlier, pixels: the option's tolerance, or the smaller tolerance of the second search
     (refine) */
  double tolerance;
  int32_t reserved[6]; /* 0 */
} hs_geometry;

/* Fills *options with the defaults above for a model. HS_ERR_ARGUMENT: null or no such model. */
#define hs_verify_options_init(options, model)                                                                         \
  hs_verify_options_init_sized((options), sizeof(hs_verify_options), (model))
HS_API hs_status hs_verify_options_init_sized(hs_verify_options *options, size_t struct_size, hs_geometry_model model);

/* Estimates options->model from matches of points. points_a, points_b: count x 2 doubles (x, y), pixels, of the
   caller; point i of a matches point i of b. Matches with coordinates that are not finite or beyond 10^6 are never
   inliers. options must not be null. inliers: null, or `count` bytes of the caller, which get 1 for an inlier, else
   0. *geometry gets the result. If no geometry is found (too few matches, no agreement, all points equal or on one
   line), the status is HS_OK and found is 0.
   Time: half a millisecond for some hundred to 2000 matches that mostly agree. If nothing agrees: no time below
   min_inliers matches, 0.03 ms for up to 25 matches, and at most max_iterations x 0.2 us (essential: 2 us) with
   AVX-512; with SSE2 two to three times as long.
   Statuses: HS_ERR_ARGUMENT (null), HS_ERR_OPTION (struct_size not set, a field out of range, or a field set that
   this version does not know), HS_ERR_LIMIT (more than 2^26 matches), HS_ERR_MEMORY; *geometry, if not null, is all
   0 then. */
HS_API hs_status hs_verify_points(const double *points_a, const double *points_b, size_t count,
                                  const hs_verify_options *options, uint8_t *inliers, hs_geometry *geometry);

/* As hs_verify_points, for matches of features. pairs: `count` records of pair_stride_bytes (0: 8), each beginning with
   two uint32_t: the keypoint's index in a, and its match's index in b. The rest of a record is ignored, so
   hs_matches.pairs fits, with sizeof(hs_match_pair). HS_ERR_ARGUMENT also for an index outside its list. */
HS_API hs_status hs_verify(const hs_features *a, const hs_features *b, const void *pairs, size_t pair_stride_bytes,
                           size_t count, const hs_verify_options *options, uint8_t *inliers, hs_geometry *geometry);

/* The second camera's pose relative to the first: X_b = R X_a + t. */
typedef struct hs_pose {
  double rotation[9];    /* R, row-major, a proper rotation */
  double translation[3]; /* t, of unit length: the images do not determine the scale of the scene */
  size_t in_front;       /* number of used matches that were triangulated in front of both cameras */
  size_t used;           /* number of matches used: those marked as inliers, or all */
  int32_t reserved[8];   /* 0 */
} hs_pose;

/* Chooses from the four poses of an essential matrix the pose with the most matches in front of both cameras.
   essential: 9 doubles as in hs_geometry.matrix of HS_ESSENTIAL; cameras as for its estimation; points as in
   hs_verify_points; inliers: null for all, or `count` bytes, 0 for matches to leave out. Statuses: HS_ERR_ARGUMENT
   (null, an invalid camera or matrix); *pose is all 0 then. If no match is used: HS_OK, in_front 0, and any of the four
   poses. */
HS_API hs_status hs_relative_pose(const double *essential, const hs_camera *camera_a, const hs_camera *camera_b,
                                  const double *points_a, const double *points_b, size_t count, const uint8_t *inliers,
                                  hs_pose *pose);

/* Copies the positions of matched features to points_a and points_b, each count x 2 doubles of the caller, in the order
   of the pairs (see hs_verify). The result is the input of hs_relative_pose. If count is 0, all pointers may be null.
   Statuses: HS_ERR_ARGUMENT (null, a stride of 1..7 bytes, an index outside its list). */
HS_API hs_status hs_gather_points(const hs_features *a, const hs_features *b, const void *pairs,
                                  size_t pair_stride_bytes, size_t count, double *points_a, double *points_b);

#ifdef __cplusplus
}
#endif
#endif
