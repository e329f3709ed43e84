/*
 * Affine shape: the ellipse about a keypoint in which its gradients have no preferred direction, and the patch in which
 * the ellipse is a circle. Lindeberg & Garding, Image and Vision Computing 1997; Baumberg, CVPR 2000; Mikolajczyk &
 * Schmid, IJCV 2004.
 *
 * A shape is the direction of the long axis and the quotient of the axes' lengths. Its frame is F = sigma U
 * diag(quotient, 1), where U rotates by the direction of the long axis; the short axis stays sigma. The shape's moments
 * are the second moments of the gradients of the keypoint's level under a Gaussian of 3 F. The covariance of the next
 * shape is the inverse of the moments. At the fixed point F warps the surroundings so that the moments are equal in
 * every direction. As in VLFeat, levels are not smoothed anew along the long axis.
 *
 * Orientations and descriptors then follow orient.h and describe.h. Their level is a patch in which F has become a
 * circle. All arithmetic is float32 in a fixed order; the moments are integers.
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
  AFFINE_STEPS = 10 /* maximum number of iterations */
};
#ifndef __cplusplus
_Static_assert((2 * AFFINE_DESCRIBE_RADIUS - 1) * (2 * AFFINE_DESCRIBE_RADIUS - 1) <= AFFINE_DESCRIBE_DIAGONAL_SQUARE &&
                   AFFINE_DESCRIBE_DIAGONAL_SQUARE <
                       (2 * AFFINE_DESCRIBE_RADIUS + 1) * (2 * AFFINE_DESCRIBE_RADIUS + 1),
               "the radius follows from the descriptor's window");
#endif
#define AFFINE_DISTANCE          (0.125f * AFFINE_DISTANCE_EIGHTHS) /* sampling distance of a patch, in sigma: 0.625 */
#define AFFINE_WINDOW            3.0f /* standard deviation of the Gaussian that weighs the moments, in units of the frame */
#define AFFINE_WINDOW_DEVIATIONS 2.5f    /* radius of that Gaussian's window, in standard deviations */
#define AFFINE_ROUND             1.0404f /* converged: the squared axes of the moments differ by less than 2 % in length */
#define AFFINE_LONGEST           25.0f /* the square of the maximum quotient of the axes: 5 */
/* log2 of the weight at the centre of the window. A weight multiplies a product of two differences, each at most 1. The
 * weights of a window (at most 2 pi 9 5 2^2 samples) sum to less than 2^10.5 times the central weight, so the moments
 * stay below 2^31. */
#define AFFINE_WEIGHT_LOG2 20.0f

/* The samples of a patch that later stages read: in row j, columns first[j] to end[j] - 1. */
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

/* The window of the moments on a level: every step-th sample about (cx, cy). The weight of the sample at (dx, dy) from
 * the keypoint is 2^(xx dx^2 + xy dx dy + yy dy^2 + AFFINE_WEIGHT_LOG2) if that exceeds 2^lowest. */
typedef struct affine_window {
  float x, y; /* position of the middle sample relative to the keypoint */
  int32_t cx, cy, step;
  float per_step; /* 1 / step, exact: steps are powers of two */
  int32_t rows;   /* maximum number of rows with weights above and below the middle, in steps */
  float xx, xy, yy, lowest;
  float shear, widest, taper; /* weights of row dy are 0 farther than sqrt(widest + taper dy^2) from dx = shear dy */
} affine_window;

/* Second moments of the gradients under the window. */
typedef struct affine_moments {
  int32_t xx, xy, yy;
} affine_moments;

/* Returns the window of a shape. x, y, sigma: in samples of the level. */
HS_INLINE affine_window affine_window_of(float x, float y, float sigma, const affine_shape *s) {
  affine_window w;
  const float shorter = AFFINE_WINDOW * sigma, longer = shorter * s->quotient;
  const float p = (-0.5f * LOG2_E_FLOAT) / (longer * longer), q = (-0.5f * LOG2_E_FLOAT) / (shorter * shorter);
  const float cc = s->cosine * s->cosine, ss = s->sine * s->sine;
  w.xx = hs_fmaf(p, cc, q * ss);
  w.yy = hs_fmaf(p, ss, q * cc);
  w.xy = (2.0f * (p - q)) * (s->cosine * s->sine);
  w.step = 1;
  while (sigma >= 2.0f * (float)w.step) w.step *= 2;
  w.per_step = 1.0f / (float)w.step;
  w.cx = hs_floor_int(x + 0.5f);
  w.cy = hs_floor_int(y + 0.5f);
  w.x = (float)w.cx - x;
  w.y = (float)w.cy - y;
  const float fall = (-0.5f * LOG2_E_FLOAT) * (AFFINE_WINDOW_DEVIATIONS * AFFINE_WINDOW_DEVIATIONS),
              per_xx = 1.0f / w.xx;
  w.lowest = AFFINE_WEIGHT_LOG2 + fall;
  w.shear = (-0.5f * w.xy) * per_xx;
  w.widest = fall * per_xx;
  w.taper = (p * q) * -(per_xx * per_xx);
  const float high = AFFINE_WINDOW_DEVIATIONS * hs_sqrtf(hs_fmaf(longer * longer, ss, (shorter * shorter) * cc));
  w.rows = hs_floor_int(high * w.per_step) + 1;
  return w;
}

/* A row of the window. The exponent of the weight at dx is fma(fma(xx, dx, slope), dx, level). first, last: the first
 * and last column, in steps from the middle; beyond them the exponent is below affine_window.lowest. */
typedef struct affine_row {
  float slope, level;
  int32_t first, last;
} affine_row;

HS_INLINE affine_row affine_row_of(const affine_window *w, float dy) {
  affine_row r;
  const float square = dy * dy, middle = hs_fmaf(w->shear, dy, -w->x), wide = hs_fmaf(w->taper, square, w->widest);
  const float half_width = wide > 0.0f ? hs_sqrtf(wide) : 0.0f;
  r.slope = w->xy * dy;
  r.level = hs_fmaf(w->yy, square, AFFINE_WEIGHT_LOG2);
  r.first = hs_floor_int((middle - half_width) * w->per_step);
  r.last = hs_floor_int((middle + half_width) * w->per_step) + 1;
  return r;
}

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
  const float xx = (float)m->xx, xy = (float)m->xy, yy = (float)m->yy;
  /* the moments in the frame */
  const float u = hs_fmaf(s->cosine, xx, s->sine * xy), v = hs_fmaf(s->cosine, xy, s->sine * yy);
  const float along = hs_fmaf(u, s->cosine, v * s->sine), mixed = hs_fmaf(v, s->cosine, -(u * s->sine));
  const float across = (xx + yy) - along;
  const affine_axes now = affine_axes_of((s->quotient * s->quotient) * along, s->quotient * mixed, across);
  if (!(now.mean + now.spread > AFFINE_ROUND * (now.mean - now.spread))) return false;
  const affine_axes next = affine_axes_of(yy, -xy, xx);
  const float larger = next.mean + next.spread, smaller = next.mean - next.spread;
  if (!(larger <= AFFINE_LONGEST * smaller)) return false;
  s->cosine = next.x;
  s->sine = next.y;
  s->quotient = hs_sqrtf(larger / smaller);
  return true;
}

/* Returns the map of a patch about (x, y); x, y, sigma in samples of the source level. */
HS_INLINE patch_map affine_map_of(float x, float y, float sigma, const affine_shape *s) {
  patch_map m;
  const float across = sigma * AFFINE_DISTANCE, along = across * s->quotient;
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

/* Ranges of patch samples that orientation and descriptor read: samples that vote, and their neighbours. */

/* Sets row j to the integer columns from low to high, both counted from the patch's middle. */
HS_INLINE void patch_rows_set(patch_rows *rows, int32_t side, int32_t j, float low, float high) {
  const int32_t first = side / 2 - hs_floor_int(-low), end = side / 2 + hs_floor_int(high) + 1;
  rows->first[j] = first > 0 ? first : 0;
  rows->end[j] = end < side ? end : side;
  if (rows->end[j] < rows->first[j]) rows->end[j] = rows->first[j];
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
