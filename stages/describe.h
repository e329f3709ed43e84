/*
 * Descriptor: 4 x 4 cells of 8 gradient directions in the patch rotated to the feature's orientation.
 * Lowe, IJCV 2004, section 6.
 *
 * Each sample of the window votes trilinearly into a padded histogram of 6 x 6 cells of 10 bins (360; Li, Jia, Zhang,
 * ICPADS 2017; the tenth takes no vote here); the bins are wrapped, the padding cropped, and the 128 sums normalised.
 * Their squares are added as exact integers; all later steps are float32.
 *
 * Pooled over domain sizes (Dong and Soatto, CVPR 2015), as in COLMAP: the histogram of each size is clipped,
 * normalised to unit norm and rounded to integers again; the sum of these integers replaces the histogram. So
 * descriptors of different sizes have equal weight, and the order of the sizes does not matter.
 */
#ifndef HARTSIFT_STAGES_DESCRIBE_H
#define HARTSIFT_STAGES_DESCRIBE_H

#include "stages/orient.h"

/* A change of the number of bins, to another power of two, also needs changes of: the shifts in describe_simd.c
 * (compute_votes), the order of VLFeat (describe_vlfeat_index), the lanes that write in describe_cuda (describe_write),
 * MATCH_LENGTH and the bound of its squares in match.h, HS_DESCRIPTOR_LENGTH, and every format whose program has 128
 * entries. */
enum {
  DESCRIBE_CELLS = 4,                                                /* cells along a side */
  DESCRIBE_BINS = 8,                                                 /* directions in a cell */
  DESCRIBE_LENGTH = DESCRIBE_CELLS * DESCRIBE_CELLS * DESCRIBE_BINS, /* 128 */
  DESCRIBE_PADDED_BINS = DESCRIBE_BINS + 2,                          /* 10 */
  DESCRIBE_PADDED_CELLS = DESCRIBE_CELLS + 2,                        /* 6 */
  DESCRIBE_ROW = DESCRIBE_PADDED_CELLS * DESCRIBE_PADDED_BINS,       /* 60: stride between rows of cells */
  DESCRIBE_PADDED_LENGTH = DESCRIBE_PADDED_CELLS * DESCRIBE_ROW      /* 360 */
};
#define DESCRIBE_CELL_SIGMA   3.0f       /* width of a cell, in the keypoint's sigma */
#define DESCRIBE_WINDOW_CELLS 3.5355339f /* sqrt(2) * (4 + 1) / 2: the window's radius, in cells */

/* Features first_feature.. of the list -> descriptors, 128 entries each (u8 or float), stored at the feature's index.
 * octaves: indexed by octave - first_octave; the octaves of these features must hold their levels, and with pooling
 * also the next domain_octaves octaves, as far as the image has them. */
typedef struct describe_args {
  const octave_view *octaves;
  int32_t first_octave, octave_count;
  uint32_t first_feature;
  keypoint_list keypoints;
  feature_list features;
  sift_params params;
  const vote_scales *scales;
  void *descriptors;
} describe_args;

/* The window of one feature, in samples of its octave. */
typedef struct describe_window {
  float x, y;     /* centre of the patch */
  int32_t cx, cy; /* the sample at the window's centre */
  int32_t radius;
  float cosine, sine; /* of the orientation, divided by the cell's width */
  float direction;    /* the orientation, in bins of direction */
  float falloff;      /* weight = exp2(-distance^2 * falloff): a Gaussian of 2 cells */
} describe_window;

HS_INLINE int32_t describe_radius(float sigma) {
  return hs_floor_int((DESCRIBE_CELL_SIGMA * sigma) * DESCRIBE_WINDOW_CELLS + 0.5f);
}

/* x, y, sigma in samples of the octave; orientation in radians in [0, 2 pi). */
HS_INLINE describe_window describe_window_of(float x, float y, float sigma, float orientation, author_rule rule) {
  describe_window w;
  const float cell = DESCRIBE_CELL_SIGMA * sigma;
  float s, c;
  const float turn = hs_wrap_turn(orientation * TURNS_A_RADIAN), per_cell = 1.0f / cell;
  hs_sincos_turn(turn, &s, &c);
  w.direction = (float)DESCRIBE_BINS * turn;
  w.cosine = c * per_cell;
  w.sine = s * per_cell;
  w.falloff = (0.125f * LOG2_E_FLOAT) * (per_cell * per_cell);
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

/* Maximum number of octaves between a keypoint and its coarsest window. */
HS_INLINE int32_t domain_octaves(const domain_sizes *d, int32_t scales) {
  return d->count > 0 ? (scales + d->levels[d->count - 1]) / scales : 0; /* level S: the largest size is the last */
}

/* A size is sampled where the blur relates to it as the keypoint's level relates to the keypoint: the same number of
 * levels up or down. If two octaves have the level (level S is level 0 of the next octave, with four times the
 * samples), the coarser one is used. The octave is never finer than the keypoint's, whose level 0 serves smaller sizes,
 * and never beyond the last octave's level S. */
HS_INLINE void domain_level(const domain_sizes *d, int32_t size, int32_t scales, int32_t octave_count,
                            int32_t *octave_index, int32_t *level) {
  *level += d->levels[size];
  if (*level < 0) *level = 0;
  while (*level >= scales && *octave_index + 1 < octave_count) {
    *level -= scales;
    (*octave_index)++;
  }
  if (*level > scales) *level = scales;
}

/* The plane of a feature's window, with position and size in samples of that octave. */
typedef struct describe_site {
  int32_t octave_index, level;
  float x, y, sigma;
} describe_site;

HS_INLINE describe_site describe_site_in(const keypoint_list *k, uint32_t i, int32_t octave, float shift) {
  describe_site s;
  s.x = sample_of_place(k->x[i], octave, shift);
  s.y = sample_of_place(k->y[i], octave, shift);
  s.sigma = k->sigma[i] * hs_power_of_two(-octave);
  return s;
}

/* For keypoint i at its own size. */
HS_INLINE describe_site describe_site_of(const keypoint_list *k, uint32_t i, const sift_params *p,
                                         int32_t first_octave) {
  describe_site s = describe_site_in(k, i, k->octave[i], p->grid_shift);
  s.octave_index = k->octave[i] - first_octave;
  s.level = k->level[i];
  return s;
}

/* For keypoint i at size `size` of p->domain. */
HS_INLINE describe_site domain_site_of(const keypoint_list *k, uint32_t i, const sift_params *p, int32_t first_octave,
                                       int32_t octave_count, int32_t size) {
  int32_t octave_index = k->octave[i] - first_octave, level = k->level[i];
  domain_level(&p->domain, size, p->scales, octave_count, &octave_index, &level);
  describe_site s = describe_site_in(k, i, first_octave + octave_index, p->grid_shift);
  s.sigma = p->domain.size[size] * s.sigma;
  s.octave_index = octave_index;
  s.level = level;
  return s;
}

/* Position of a sample at (dx, dy) from the centre, in cells from the corner of the padded histogram: the centre of
 * padded cell (r, c) is at (r, c). Inside: strictly between 0 and 5 in both coordinates; only then it votes. */
HS_INLINE bool describe_place(const describe_window *w, float dx, float dy, float *row, float *column) {
  *column = hs_fmaf(dy, w->sine, hs_fmaf(dx, w->cosine, 2.5f));
  *row = hs_fmaf(dy, w->cosine, hs_fmaf(dx, -w->sine, 2.5f));
  return *row > 0.0f && *row < 5.0f && *column > 0.0f && *column < 5.0f;
}

/* The eight votes of a sample: index of the first, and the votes at row, column, direction + 0 or 1: v[4 r + 2 c + d]. */
typedef struct describe_votes {
  int32_t index;
  int32_t v[8];
} describe_votes;

/* Splits a row's share v of a sample over two columns and two directions: products rounded once, whose differences are
 * the votes, so that the votes add up to exactly the rounded v. Only the first may be negative, by at most 2. */
HS_INLINE void describe_share(float v, float fc, float fd, float fcd, int32_t votes[4]) {
  const int32_t all = hs_round_half_even(v), column = hs_rounded_product(v, fc);
  const int32_t direction = hs_rounded_product(v, fd), both = hs_rounded_product(v, fcd);
  votes[3] = both;
  votes[2] = column - both;
  votes[1] = direction - both;
  votes[0] = all - column - votes[1];
}

/* gx, gy: gradient; weight = w(dx) w(dy) 2^q; row and column from describe_place, inside. */
HS_INLINE describe_votes describe_votes_of(const describe_window *w, float gx, float gy, float weight, float row,
                                           float column) {
  describe_votes votes;
  float magnitude, angle;
  hs_polar(gx, gy, (float)DESCRIBE_BINS, &magnitude, &angle);
  /* Lowe's bins count against the y-down sense, from the feature's orientation: -4 to 12. */
  const float direction = w->direction - angle;
  const int32_t r = hs_floor_int(row), c = hs_floor_int(column), d = hs_floor_int(direction);
  const float fr = row - (float)r, fc = column - (float)c, fd = direction - (float)d, fcd = fc * fd;
  const float v = magnitude * weight;
  const float v1 = v * fr, v0 = v - v1;
  votes.index = r * DESCRIBE_ROW + c * DESCRIBE_PADDED_BINS + (d & (DESCRIBE_BINS - 1));
  describe_share(v0, fc, fd, fcd, votes.v);
  describe_share(v1, fc, fd, fcd, votes.v + 4);
  return votes;
}

/* Bin i (0..127) of the cropped histogram: direction 8 is direction 0 again. Values below 0 from rounding become 0. */
HS_INLINE int32_t describe_crop(const int32_t *padded, int32_t i) {
  const int32_t d = i % DESCRIBE_BINS, cell = i / DESCRIBE_BINS;
  const int32_t at =
      (cell / DESCRIBE_CELLS + 1) * DESCRIBE_ROW + (cell % DESCRIBE_CELLS + 1) * DESCRIBE_PADDED_BINS + d;
  const int32_t sum = d < 1 ? padded[at] + padded[at + DESCRIBE_BINS] : padded[at];
  return sum > 0 ? sum : 0;
}

/* Lowe's clip, 0.2 of the norm, from the sum of squares. */
HS_INLINE int32_t describe_clip(uint64_t squares) { return (int32_t)(0.2f * hs_sqrtf((float)squares)); }

/* The factor for the clipped bins: 1 over their norm, or over their sum for RootSIFT; 0 for an empty histogram. */
HS_INLINE float describe_factor(uint64_t clipped_squares, uint32_t clipped_sum, bool root) {
  const float divisor = root ? (float)clipped_sum : hs_sqrtf((float)clipped_squares);
  return divisor > 0.0f ? 1.0f / divisor : 0.0f;
}

/* A bin's contribution to the pooled histogram: its value of unit norm in units of 2^-21, so that sums over all sizes
 * stay below 2^26. factor: describe_factor of the size's clipped bins. */
HS_INLINE int32_t domain_share(int32_t clipped, float factor) {
  return hs_round_half_even((float)clipped * (2097152.0f * factor));
}

/* One value of unit norm. */
HS_INLINE float describe_value(int32_t clipped, float factor, bool root) {
  const float v = (float)clipped * factor;
  return root ? hs_sqrtf(v) : v;
}

/* The 8-bit form: halves round up, OpenCV's to even. */
HS_INLINE int32_t describe_byte(float value, author_rule rule) {
  const float scaled = 512.0f * value;
  const int32_t b = rule == RULE_OPENCV ? hs_round_half_even(scaled) : (int32_t)(scaled + 0.5f);
  return b < 255 ? b : 255;
}

/* Position of bin i in VLFeat's order (its own inverse). */
HS_INLINE int32_t describe_vlfeat_index(int32_t i) { return (i & ~7) | ((8 - (i & 7)) & 7); }

#endif
