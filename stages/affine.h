/*
 * Affine shape: the ellipse about a keypoint in which its gradients have no preferred direction, and the patch in which
 * the ellipse is a circle. Lindeberg & Garding, Image and Vision Computing 1997; Baumberg, CVPR 2000; Mikolajczyk &
 * Schmid, IJCV 2004.
 *
 * A shape is the direction of the long axis and the quotient of the axes' lengths. Its frame is F = sigma U
 * diag(quotient, 1), where U rotates by the direction of the long axis; the short axis stays sigma. The shape's moments
 * are the second moments of the gradients of a patch in which F is a circle, under a Gaussian of 3 F. The next frame is
 * F M^-1/2, without its rotation and scaled to the same short axis: its covariance is F adj(M) F^T. At the fixed point
 * the moments are equal in every direction. As in VLFeat, levels are not smoothed anew along the long axis.
 *
 * Orientations and descriptors then follow orient.h and describe.h. Their level is a patch too. Moments and
 * orientations have their patch from one level finer than the keypoint's, descriptors from the keypoint's level. All
 * arithmetic is float32 in a fixed order; the moments are integers.
 */
#ifndef HARTSIFT_STAGES_AFFINE_H
#define HARTSIFT_STAGES_AFFINE_H

#include "stages/describe.h"
#include "stages/patch.h"

/* A patch holds the window of its stage (orientation or descriptor) and one more sample on each side for gradients.
 * The radii equal orient_radius and describe_radius for a sigma of 1 / AFFINE_DISTANCE samples. */
enum {
  AFFINE_DISTANCE_EIGHTHS = 5,
  AFFINE_ORIENT_RADIUS = (8 * ORIENT_WINDOW_HALVES + AFFINE_DISTANCE_EIGHTHS) / (2 * AFFINE_DISTANCE_EIGHTHS), /* 7 */
  AFFINE_DESCRIBE_RADIUS = 17,
  AFFINE_ORIENT_SIDE = 2 * (AFFINE_ORIENT_RADIUS + 1) + 1,
  AFFINE_DESCRIBE_SIDE = 2 * (AFFINE_DESCRIBE_RADIUS + 1) + 1,
  /* Half the side of the descriptor's square, in half samples. AFFINE_DESCRIBE_RADIUS is half of the square's diagonal,
   * rounded to samples. */
  AFFINE_DESCRIBE_HALF = 8 * (int)DESCRIBE_CELL_SIGMA * (DESCRIBE_CELLS + 1) / AFFINE_DISTANCE_EIGHTHS,
  AFFINE_DESCRIBE_DIAGONAL_SQUARE = 2 * AFFINE_DESCRIBE_HALF * AFFINE_DESCRIBE_HALF,
  /* The patch of the moments: samples whose squared distance from the middle is at most AFFINE_SHAPE_DISC, in samples,
   * have weights. AFFINE_SHAPE_DISC is the square of 2.5 * 3 / 0.6, rounded down. */
  AFFINE_SHAPE_DISC = 156,
  AFFINE_SHAPE_RADIUS = 12,
  AFFINE_SHAPE_SIDE = 2 * (AFFINE_SHAPE_RADIUS + 1) + 1,
  AFFINE_PATCH_SLACK = 64, /* readable floats after the last row of a patch */
  AFFINE_STEPS = 10        /* maximum number of iterations */
};
#ifndef __cplusplus
_Static_assert((2 * AFFINE_DESCRIBE_RADIUS - 1) * (2 * AFFINE_DESCRIBE_RADIUS - 1) <= AFFINE_DESCRIBE_DIAGONAL_SQUARE &&
                   AFFINE_DESCRIBE_DIAGONAL_SQUARE <
                       (2 * AFFINE_DESCRIBE_RADIUS + 1) * (2 * AFFINE_DESCRIBE_RADIUS + 1),
               "the radius follows from the descriptor's window");
#endif
#define AFFINE_DISTANCE       (0.125f * AFFINE_DISTANCE_EIGHTHS) /* sampling distance of a patch, in sigma: 0.625 */
#define AFFINE_SHAPE_DISTANCE 0.6f                               /* of the patch of the moments */
#define AFFINE_WINDOW         3.0f /* standard deviation of the Gaussian that weighs the moments, in units of the frame */
#define AFFINE_ROUND          1.0404f /* converged: the squared axes of the moments differ by less than 2 % in length */
#define AFFINE_LONGEST        25.0f   /* the square of the maximum quotient of the axes: 5 */
/* log2 of the weight at the centre of the window. A weight multiplies a product of two differences, each at most 1 but
 * for rounding. The weights of a window (below 2 pi 5^2 samples) sum to less than 2^7.3 times the central weight, so
 * the moments stay below 2^28. */
#define AFFINE_WEIGHT_LOG2 20.0f

/* The samples of a patch that are read: in row j, columns first[j] to end[j] - 1. */
typedef struct patch_rows {
  int32_t first[AFFINE_DESCRIBE_SIDE], end[AFFINE_DESCRIBE_SIDE];
} patch_rows;

/* The long axis has the direction (cosine, sine) and the length quotient * sigma; the short axis has the length
 * sigma. */
typedef struct affine_shape {
  float cosine, sine, quotient;
} affine_shape;

/* Input: keypoints from first_keypoint on. They receive shapes, then features with orientations. Features from
 * first_feature on receive descriptors. octaves: indexed by octave - first_octave. */
typedef struct affine_args {
  const octave_view *octaves;
  int32_t first_octave, octave_count;
  uint32_t first_keypoint, first_feature;
  keypoint_list keypoints;
  feature_list features;
  affine_shape *shapes; /* [keypoint] */
  sift_params params;
  const vote_scales *scales;
  void *descriptors;
} affine_args;

/* Second moments of the gradients of a patch. */
typedef struct affine_moments {
  int32_t xx, xy, yy;
} affine_moments;

/* Returns the level of the patches for moments and orientations. */
HS_INLINE int32_t affine_finer_level(int32_t level) { return level > 0 ? level - 1 : 0; }

#define AFFINE_WEIGHT_FALL                                                                                             \
  ((-0.5f * LOG2_E_FLOAT) * ((AFFINE_SHAPE_DISTANCE / AFFINE_WINDOW) * (AFFINE_SHAPE_DISTANCE / AFFINE_WINDOW)))

/* Returns one factor of a weight: sample (i, j) from the middle has the weight affine_weight(i) * affine_weight(j). */
HS_INLINE float affine_weight(int32_t i) {
  return hs_exp2(hs_fmaf(AFFINE_WEIGHT_FALL, (float)(i * i), 0.5f * AFFINE_WEIGHT_LOG2));
}

/* Returns how many samples of row j have weights on each side of the middle; |j| <= AFFINE_SHAPE_RADIUS. */
HS_INLINE int32_t affine_reach(int32_t j) { return (int32_t)hs_sqrtf((float)(AFFINE_SHAPE_DISC - j * j)); }

/* Eigenvalues of (a b; b c): mean is half their sum, spread half their difference; (x, y) is the unit eigenvector of
 * the larger one. */
typedef struct affine_axes {
  float mean, spread, x, y;
} affine_axes;

HS_INLINE affine_axes affine_axes_of(float a, float b, float c) {
  affine_axes e;
  const float d = 0.5f * (a - c);
  e.mean = 0.5f * (a + c);
  e.spread = hs_sqrtf(hs_fmaf(d, d, b * b));
  const float x = d >= 0.0f ? d + e.spread : b, y = d >= 0.0f ? b : e.spread - d;
  const float length = hs_sqrtf(hs_fmaf(x, x, y * y));
  e.x = length > 0.0f ? x / length : 1.0f;
  e.y = length > 0.0f ? y / length : 0.0f;
  return e;
}

/* Makes one iteration. False: the shape is final, for one of three reasons: it has converged, the moments have no two
 * distinct directions, or the next shape would be too long. */
HS_INLINE bool affine_next_shape(affine_shape *s, const affine_moments *m) {
  const float xx = (float)m->xx, xy = (float)m->xy, yy = (float)m->yy, q = s->quotient;
  const affine_axes now = affine_axes_of(xx, xy, yy);
  if (!(now.mean + now.spread > AFFINE_ROUND * (now.mean - now.spread))) return false;
  /* diag(q, 1) adj(M) diag(q, 1): the next covariance, turned back by U */
  const affine_axes next = affine_axes_of((q * q) * yy, -(q * xy), xx);
  const float larger = next.mean + next.spread, smaller = next.mean - next.spread;
  if (!(larger <= AFFINE_LONGEST * smaller)) return false;
  const float cosine = hs_fmaf(s->cosine, next.x, -(s->sine * next.y));
  s->sine = hs_fmaf(s->sine, next.x, s->cosine * next.y);
  s->cosine = cosine;
  s->quotient = hs_sqrtf(larger / smaller);
  return true;
}

/* Returns the map of a patch about (x, y); x, y, sigma in samples of the source level. distance: between samples of the
 * patch, in sigma. */
HS_INLINE patch_map affine_map_of(float x, float y, float sigma, const affine_shape *s, float distance) {
  patch_map m;
  const float across = sigma * distance, along = across * s->quotient;
  m.x = x;
  m.y = y;
  m.a11 = along * s->cosine;
  m.a21 = along * s->sine;
  m.a12 = -(across * s->sine);
  m.a22 = across * s->cosine;
  return m;
}

/* Returns the value at (x, y), bilinear along x, then y. Positions outside take the value of the nearest position
 * inside. */
HS_INLINE float affine_sample(const plane_view *p, float x, float y) {
  const float right = (float)(p->width - 1), bottom = (float)(p->height - 1);
  x = x > 0.0f ? x : 0.0f;
  x = x < right ? x : right;
  y = y > 0.0f ? y : 0.0f;
  y = y < bottom ? y : bottom;
  const int32_t last_i = p->width > 1 ? p->width - 2 : 0, last_j = p->height > 1 ? p->height - 2 : 0;
  int32_t i = (int32_t)x, j = (int32_t)y;
  i = i < last_i ? i : last_i;
  j = j < last_j ? j : last_j;
  const float fx = x - (float)i, fy = y - (float)j;
  const size_t next = p->width > 1 ? 1 : 0, below = p->height > 1 ? p->stride : 0;
  const float *at = p->data + (size_t)j * p->stride + (size_t)i;
  const float upper = hs_fmaf(fx, at[next] - at[0], at[0]);
  const float lower = hs_fmaf(fx, at[below + next] - at[below], at[below]);
  return hs_fmaf(fy, lower - upper, upper);
}

/* Converts a direction in the patch to a direction in the image, in radians in [0, 2 pi). The function below converts
 * the opposite way. */
HS_INLINE float affine_angle_of(float x, float y) {
  float length, turn;
  hs_polar(x, y, 1.0f, &length, &turn);
  return hs_wrap_turn(turn) * TWO_PI_FLOAT;
}

HS_INLINE float affine_angle_in_image(const affine_shape *s, float angle) {
  float sine, cosine;
  hs_sincos_turn(hs_wrap_turn(angle * TURNS_A_RADIAN), &sine, &cosine);
  const float u = s->quotient * cosine;
  return affine_angle_of(hs_fmaf(s->cosine, u, -(s->sine * sine)), hs_fmaf(s->sine, u, s->cosine * sine));
}

HS_INLINE void affine_vector_in_patch(const affine_shape *s, float angle, float *u, float *v) {
  float sine, cosine;
  hs_sincos_turn(hs_wrap_turn(angle * TURNS_A_RADIAN), &sine, &cosine);
  *u = hs_fmaf(s->cosine, cosine, s->sine * sine);
  *v = s->quotient * hs_fmaf(s->cosine, sine, -(s->sine * cosine));
}

HS_INLINE float affine_angle_in_patch(const affine_shape *s, float angle) {
  float u, v;
  affine_vector_in_patch(s, angle, &u, &v);
  return affine_angle_of(u, v);
}

/* Writes the feature's frame sigma U diag(quotient, 1) R as a11, a12, a21, a22 in pixels. R turns the first column to
   the direction of the feature's orientation. */
HS_INLINE void affine_frame_of(const affine_shape *s, float sigma, float angle, float frame[4]) {
  float u, v;
  affine_vector_in_patch(s, angle, &u, &v);
  const float length = hs_sqrtf(hs_fmaf(u, u, v * v)), longer = sigma * s->quotient;
  const float c = u / length, d = v / length;
  frame[0] = hs_fmaf(s->cosine, longer * c, -(s->sine * (sigma * d)));
  frame[1] = -hs_fmaf(s->cosine, longer * d, s->sine * (sigma * c));
  frame[2] = hs_fmaf(s->sine, longer * c, s->cosine * (sigma * d));
  frame[3] = hs_fmaf(s->cosine, sigma * c, -(s->sine * (longer * d)));
}

/* Ranges of patch samples that moments, orientation and descriptor read: samples that count, and their neighbours. */

/* Sets row j to the integer columns from low to high, both counted from the patch's middle. */
HS_INLINE void patch_rows_set(patch_rows *rows, int32_t side, int32_t j, float low, float high) {
  const int32_t first = side / 2 - hs_floor_int(-low), end = side / 2 + hs_floor_int(high) + 1;
  rows->first[j] = first > 0 ? first : 0;
  rows->end[j] = end < side ? end : side;
  if (rows->end[j] < rows->first[j]) rows->end[j] = rows->first[j];
}

/* Returns the rows of the moments' disc and its neighbours. */
HS_INLINE patch_rows affine_shape_rows(void) {
  patch_rows rows;
  for (int32_t j = 0; j < AFFINE_SHAPE_SIDE; j++) {
    const int32_t row = j - AFFINE_SHAPE_SIDE / 2, inner = (row < 0 ? -row : row) - 1; /* the longer neighbouring row */
    const int32_t beside = inner >= 0 ? affine_reach(inner) : 0;
    const int32_t own = inner < AFFINE_SHAPE_RADIUS ? affine_reach(row) + 1 : 0, half = own > beside ? own : beside;
    rows.first[j] = AFFINE_SHAPE_SIDE / 2 - half;
    rows.end[j] = AFFINE_SHAPE_SIDE / 2 + half + 1;
  }
  return rows;
}

/* Sets the rows of the orientation's disc, one sample wider on each side. False: OpenCV's square window reads all
 * samples of the patch. */
HS_INLINE bool orient_rows(author_rule rule, patch_rows *rows) {
  const float half_width = ORIENT_WINDOW_RADIUS / AFFINE_DISTANCE + 1.0f;
  if (rule == RULE_OPENCV) return false;
  for (int32_t j = 0; j < AFFINE_ORIENT_SIDE; j++) {
    const int32_t row = j - AFFINE_ORIENT_SIDE / 2;
    const float dy = (float)row, square = half_width * half_width - dy * dy;
    const float half = square > 0.0f ? hs_sqrtf(square) : 0.0f;
    patch_rows_set(rows, AFFINE_ORIENT_SIDE, j, -half, half);
  }
  return true;
}

/* Clamps |v| to at least 2^-10: avoids a division by 0. A side of the square with such a slope is nearly parallel to
 * the rows, and meets them far outside the patch anyway. */
HS_INLINE float patch_slope_away_from_zero(float v) {
  const float least = 0x1p-10f;
  return v >= 0.0f ? (v > least ? v : least) : (v < -least ? v : -least);
}

/* Returns the rows of the descriptor's rotated square, widened on each side by one sample for gradients and a quarter
 * for rounding. angle: the feature's direction in the patch. */
HS_INLINE patch_rows describe_rows(float angle) {
  const float half = DESCRIBE_CELL_SIGMA / AFFINE_DISTANCE * (0.5f * (DESCRIBE_CELLS + 1)) + 1.25f;
  float s, c;
  patch_rows rows;
  hs_sincos_turn(hs_wrap_turn(angle * TURNS_A_RADIAN), &s, &c);
  s = patch_slope_away_from_zero(s);
  c = patch_slope_away_from_zero(c);
  /* the square has |dx c + dy s| < half and |dy c - dx s| < half */
  const float slope = -s / c, half_width = half / hs_fabsf(c), other_slope = c / s, other_half = half / hs_fabsf(s);
  for (int32_t j = 0; j < AFFINE_DESCRIBE_SIDE; j++) {
    const int32_t row = j - AFFINE_DESCRIBE_SIDE / 2;
    const float dy = (float)row, middle = slope * dy, other = other_slope * dy;
    const float low = middle - half_width, other_low = other - other_half;
    const float high = middle + half_width, other_high = other + other_half;
    patch_rows_set(&rows, AFFINE_DESCRIBE_SIDE, j, low > other_low ? low : other_low,
                   high < other_high ? high : other_high);
  }
  return rows;
}

#endif
