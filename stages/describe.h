/*
 * Descriptor: 4 x 4 cells of 8 gradient directions in the patch turned to the feature's orientation.
 * Lowe, IJCV 2004, section 6.
 *
 * Each sample of the window votes trilinearly into a padded histogram of 6 x 6 cells of 10 bins (360; Li, Jia, Zhang,
 * ICPADS 2017); the bins are wrapped, the padding cropped, and the 128 sums normalised in exact integers up to the
 * last division.
 */
#ifndef HS_STAGES_DESCRIBE_H
#define HS_STAGES_DESCRIBE_H

#include "stages/orient.h"

enum {
  DESCRIBE_CELLS = 4,                                                        /* cells along a side */
  DESCRIBE_BINS = 8,                                                         /* directions in a cell */
  DESCRIBE_LENGTH = DESCRIBE_CELLS * DESCRIBE_CELLS * DESCRIBE_BINS,         /* 128 */
  DESCRIBE_PADDED_BINS = DESCRIBE_BINS + 2,                                  /* 10 */
  DESCRIBE_PADDED_CELLS = DESCRIBE_CELLS + 2,                                /* 6 */
  DESCRIBE_ROW = DESCRIBE_PADDED_CELLS * DESCRIBE_PADDED_BINS,               /* 60: from a row of cells to the next */
  DESCRIBE_PADDED_LENGTH = DESCRIBE_PADDED_CELLS * DESCRIBE_ROW              /* 360 */
};
#define DESCRIBE_CELL_SIGMA 3.0f         /* width of a cell, in the keypoint's sigma */
#define DESCRIBE_WINDOW_CELLS 3.5355339f /* sqrt(2) * (4 + 1) / 2: the window's radius, in cells */

/* features first_feature.. of the list -> descriptors, 128 entries each (u8 or float), at the feature's own index.
   octaves: indexed by octave - first_octave; those of the features treated hold their levels. */
typedef struct describe_args {
  const octave_view *octaves;
  int32_t first_octave;
  uint32_t first_feature;
  keypoint_list keypoints;
  feature_list features;
  sift_params params;
  const vote_scales *scales;
  void *descriptors;
} describe_args;

/* The window of one feature, in samples of its octave. */
typedef struct describe_window {
  float x, y;             /* centre of the patch */
  int32_t cx, cy;         /* the sample the window lies about */
  int32_t radius;
  float cosine, sine;     /* of the orientation, over the cell's width */
  float turn;             /* the orientation in turns */
  float falloff;          /* weight = exp2(-distance^2 * falloff): a Gaussian of 2 cells */
} describe_window;

HS_INLINE int32_t describe_radius(float sigma) {
  return hs_floor_int((DESCRIBE_CELL_SIGMA * sigma) * DESCRIBE_WINDOW_CELLS + 0.5f);
}

/* x, y, sigma in samples of the octave; orientation in radians in [0, 2 pi). */
HS_INLINE describe_window describe_window_of(float x, float y, float sigma, float orientation, author_rule rule) {
  describe_window w;
  const float cell = DESCRIBE_CELL_SIGMA * sigma;
  float s, c;
  w.turn = hs_wrap_turn(orientation / TWO_PI_FLOAT);
  hs_sincos_turn(w.turn, &s, &c);
  w.cosine = c / cell;
  w.sine = s / cell;
  w.falloff = (0.125f * LOG2_E_FLOAT) / (cell * cell);
  w.radius = describe_radius(sigma);
  if (rule == RULE_OPENCV) {
    w.cx = hs_round_half_even(x);
    w.cy = hs_round_half_even(y);
    w.x = (float)w.cx;
    w.y = (float)w.cy;
  } else {
    w.cx = hs_floor_int(x + 0.5f);
    w.cy = hs_floor_int(y + 0.5f);
    w.x = x;
    w.y = y;
  }
  return w;
}

/* Where a sample at (dx, dy) from the centre lies, in cells from the corner of the padded histogram: the centre of
   padded cell (r, c) is at (r, c). Inside: strictly between 0 and 5 both ways; only then it votes. */
HS_INLINE bool describe_place(const describe_window *w, float dx, float dy, float *row, float *column) {
  *column = hs_fmaf(dy, w->sine, dx * w->cosine) + 2.5f;
  *row = hs_fmaf(dy, w->cosine, -(dx * w->sine)) + 2.5f;
  return *row > 0.0f && *row < 5.0f && *column > 0.0f && *column < 5.0f;
}

/* The eight votes of a sample: index of the first, and the votes at row, column, direction + 0 or 1: v[4 r + 2 c + d]. */
typedef struct describe_votes {
  int32_t index;
  int32_t v[8];
} describe_votes;

/* gx, gy: gradient; weight = w(dx) w(dy) 2^q; row and column as describe_place gave them, inside. */
HS_INLINE describe_votes describe_votes_of(const describe_window *w, float gx, float gy, float weight, float row,
                                           float column) {
  describe_votes votes;
  float magnitude, turn;
  hs_polar(gx, gy, &magnitude, &turn);
  /* Lowe's bins count against the y-down sense, from the feature's orientation. */
  float direction = w->turn - turn;
  direction = direction < 0.0f ? direction + 1.0f : direction;
  direction = direction * (float)DESCRIBE_BINS;
  const int32_t r = hs_floor_int(row), c = hs_floor_int(column), d = hs_floor_int(direction);
  const float fr = row - (float)r, fc = column - (float)c, fd = direction - (float)d;
  const float v = magnitude * weight;
  const float v1 = v * fr, v0 = v - v1;
  const float v11 = v1 * fc, v10 = v1 - v11, v01 = v0 * fc, v00 = v0 - v01;
  const float v111 = v11 * fd, v101 = v10 * fd, v011 = v01 * fd, v001 = v00 * fd;
  votes.index = r * DESCRIBE_ROW + c * DESCRIBE_PADDED_BINS + d;
  votes.v[0] = hs_round_half_even(v00 - v001);
  votes.v[1] = hs_round_half_even(v001);
  votes.v[2] = hs_round_half_even(v01 - v011);
  votes.v[3] = hs_round_half_even(v011);
  votes.v[4] = hs_round_half_even(v10 - v101);
  votes.v[5] = hs_round_half_even(v101);
  votes.v[6] = hs_round_half_even(v11 - v111);
  votes.v[7] = hs_round_half_even(v111);
  return votes;
}

/* Bin i (0..127) of the cropped histogram: direction 8 is direction 0 again, 9 is 1. */
HS_INLINE int32_t describe_crop(const int32_t *padded, int32_t i) {
  const int32_t d = i % DESCRIBE_BINS, cell = i / DESCRIBE_BINS;
  const int32_t at = (cell / DESCRIBE_CELLS + 1) * DESCRIBE_ROW + (cell % DESCRIBE_CELLS + 1) * DESCRIBE_PADDED_BINS + d;
  return d < 2 ? padded[at] + padded[at + DESCRIBE_BINS] : padded[at];
}

/* The clip floor(0.2 norm) of Lowe's normalisation, exactly: floor(sqrt(S / 25)) for S the sum of squares. */
HS_INLINE int32_t describe_clip(uint64_t sum_of_squares) { return (int32_t)hs_isqrt64(sum_of_squares / 25u); }

/* What one descriptor is divided by: the norm of the clipped bins, or their sum for RootSIFT; 0 for an empty one. */
HS_INLINE float describe_divisor(uint64_t clipped_squares, uint64_t clipped_sum, bool root) {
  return root ? (float)clipped_sum : (float)hs_sqrt_double((double)clipped_squares);
}

/* One value of unit norm. */
HS_INLINE float describe_value(int32_t clipped, float divisor, bool root) {
  const float v = divisor > 0.0f ? (float)clipped / divisor : 0.0f;
  return root ? hs_sqrtf(v) : v;
}

/* Its 8-bit form: halves up, OpenCV's to even. */
HS_INLINE int32_t describe_byte(float value, author_rule rule) {
  const float scaled = 512.0f * value;
  const int32_t b = rule == RULE_OPENCV ? hs_round_half_even(scaled) : hs_floor_int(scaled + 0.5f);
  return b < 255 ? b : 255;
}

/* Where bin i goes in VLFeat's order (its own inverse). */
HS_INLINE int32_t describe_vlfeat_index(int32_t i) { return (i & ~7) | ((8 - (i & 7)) & 7); }

#endif
