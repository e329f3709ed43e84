/*
 * Descriptor: 4 x 4 cells of 8 gradient directions in the patch rotated to the feature's orientation.
 * Lowe, IJCV 2004, section 6.
 *
 * Each sample of the window votes trilinearly into a padded histogram of 6 x 6 cells of 10 bins (360 in all; Li, Jia,
 * Zhang, ICPADS 2017). The tenth bin receives no vote here. Then bins are wrapped, the padding is cropped, and the
 * 128 sums are normalised. Their squares are added as exact integers; all later steps are float32.
 *
 * Pooled over domain sizes (Dong and Soatto, CVPR 2015), as in COLMAP: the histogram of each size is clipped,
 * normalised to unit norm and rounded to integers again; the sum of these integers replaces the histogram. So
 * descriptors of different sizes have equal weight, and the order of the sizes does not matter.
 */
#ifndef HARTSIFT_STAGES_DESCRIBE_H
#define HARTSIFT_STAGES_DESCRIBE_H

#include "stages/orient.h"

/* To change the number of bins to another power of two, say 16:
 *   1. DESCRIBE_BINS here, MATCH_LENGTH in match.h, HS_DESCRIPTOR_LENGTH in hartsift_types.h (else nothing compiles).
 *      All variants of the CPU follow. Votes keep their bits: the bound in fixed_point.c is on the sum of all bins;
 *   2. the CUDA kernels, where a warp holds 4 bins in each lane: lane_bins, describe_write in describe_votes.cuh and
 *      their calls in describe_cuda.cu; matching, which packs 128 bytes and squares of 23 bits: MATCH_SQUARE_BITS in
 *      match.h, MATCH_LANES and PRODUCTS_LANE_WORDS in cuda/match; rows of match_bound.c;
 *   3. DESCRIPTOR_LENGTH in python/hartsift/_library.py, the order of bins in _colmap.py; formats whose programs demand
 * 128 entries (FORMATS.md);
 *   4. the bytes change: METHOD.md, HS_METHOD_VERSION and digests (CONTRIBUTING.md, "How bytes are kept"). */
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

/* Input: features from first_feature on. Output: descriptors of 128 entries each (u8 or float), stored at the
 * feature's index. octaves: indexed by octave - first_octave. The octaves of these features must hold their levels;
 * with pooling, the next domain_octaves octaves must too, as far as the image has them. */
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

/* Window of one feature, in samples of its octave. */
typedef struct describe_window {
  float x, y;     /* centre of the patch */
  int32_t cx, cy; /* the sample at the window's centre */
  int32_t radius;
  float cosine, sine; /* cosine and sine of the orientation, divided by the cell's width */
  float direction;    /* orientation, in bins */
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
  return d->count > 0 ? (scales + d->levels[d->count - 1]) / scales : 0; /* level S of an octave is included; sizes
                                                                          * ascend, so the last one is the largest */
}

/* Finds the level for a size: the keypoint's level moved by d->levels[size], so that blur and window size stay in the
 * same proportion. If two octaves have that level (level S equals level 0 of the next octave, but has four times the
 * samples), the coarser octave is used. The octave is never finer than the keypoint's: smaller sizes use that octave's
 * level 0. In the last octave the level is at most S. */
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

/* Window of a feature: its plane (octave and level), and its position and size in samples of that octave. */
typedef struct describe_site {
  int32_t octave_index, level;
  float x, y, sigma;
} describe_site;

HS_INLINE describe_site describe_site_in(const keypoint_list *k, uint32_t i, int32_t octave, float shift) {
  describe_site s;
  s.x = sample_of_position(k->x[i], octave, shift);
  s.y = sample_of_position(k->y[i], octave, shift);
  s.sigma = k->sigma[i] * hs_power_of_two(-octave);
  return s;
}

/* Returns the window of keypoint i at the keypoint's size. */
HS_INLINE describe_site describe_site_of(const keypoint_list *k, uint32_t i, const sift_params *p,
                                         int32_t first_octave) {
  describe_site s = describe_site_in(k, i, k->octave[i], p->grid_shift);
  s.octave_index = k->octave[i] - first_octave;
  s.level = k->level[i];
  return s;
}

/* Returns the window of keypoint i at size `size` of p->domain. */
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

/* Computes the position of the sample at (dx, dy) from the window's centre, in cells: the centre of padded cell (r,
 * c) is at (r, c). True: both coordinates are strictly between 0 and 5, so the sample votes. */
HS_INLINE bool describe_position(const describe_window *w, float dx, float dy, float *row, float *column) {
  *column = hs_fmaf(dy, w->sine, hs_fmaf(dx, w->cosine, 2.5f));
  *row = hs_fmaf(dy, w->cosine, hs_fmaf(dx, -w->sine, 2.5f));
  return *row > 0.0f && *row < 5.0f && *column > 0.0f && *column < 5.0f;
}

/* The eight votes of a sample. v[4 r + 2 c + d] is added to the bin that is r rows, c columns and d directions (each 0
 * or 1) after bin `index`. */
typedef struct describe_votes {
  int32_t index;
  int32_t v[8];
} describe_votes;

/* Splits the share v of a sample in one row over two columns and two directions. The votes are differences of products,
 * each rounded once, so their sum is exactly the rounded v. Only votes[0] may be negative, by at most 2. */
HS_INLINE void describe_share(float v, float fc, float fd, float fcd, int32_t votes[4]) {
  const int32_t all = hs_round_half_even(v), column = hs_rounded_product(v, fc);
  const int32_t direction = hs_rounded_product(v, fd), both = hs_rounded_product(v, fcd);
  votes[3] = both;
  votes[2] = column - both;
  votes[1] = direction - both;
  votes[0] = all - column - votes[1];
}

/* Returns the votes of a sample that is inside. gx, gy: gradient; weight = w(dx) w(dy) 2^q; row, column: from
 * describe_position. */
HS_INLINE describe_votes describe_votes_of(const describe_window *w, float gx, float gy, float weight, float row,
                                           float column) {
  describe_votes votes;
  float magnitude, angle;
  hs_polar(gx, gy, (float)DESCRIBE_BINS, &magnitude, &angle);
  /* Lowe's bins turn against the y-down sense, and start at the feature's orientation; direction is in -4..12. */
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

/* Returns bin i (0..127) of the cropped histogram; direction 8 is added to direction 0. A negative sum, which only
 * rounding can cause, becomes 0. */
HS_INLINE int32_t describe_crop(const int32_t *padded, int32_t i) {
  const int32_t d = i % DESCRIBE_BINS, cell = i / DESCRIBE_BINS;
  const int32_t at =
      (cell / DESCRIBE_CELLS + 1) * DESCRIBE_ROW + (cell % DESCRIBE_CELLS + 1) * DESCRIBE_PADDED_BINS + d;
  const int32_t sum = d < 1 ? padded[at] + padded[at + DESCRIBE_BINS] : padded[at];
  return sum > 0 ? sum : 0;
}

/* Returns the limit of Lowe's clipping, 0.2 of the norm. squares: sum of the squared bins. */
HS_INLINE int32_t describe_clip(uint64_t squares) { return (int32_t)(0.2f * hs_sqrtf((float)squares)); }

/* Returns the factor that normalises the clipped bins: 1 / norm, or 1 / sum for RootSIFT; 0 for an empty histogram. */
HS_INLINE float describe_factor(uint64_t clipped_squares, uint32_t clipped_sum, bool root) {
  const float divisor = root ? (float)clipped_sum : hs_sqrtf((float)clipped_squares);
  return divisor > 0.0f ? 1.0f / divisor : 0.0f;
}

/* Returns a bin's contribution to the pooled histogram, in units of 2^-21 of a descriptor of unit norm; sums over all
 * sizes stay below 2^26. factor: describe_factor of the clipped bins of that size. */
HS_INLINE int32_t domain_share(int32_t clipped, float factor) {
  return hs_round_half_even((float)clipped * (2097152.0f * factor));
}

/* Returns an entry of the descriptor of unit norm. */
HS_INLINE float describe_value(int32_t clipped, float factor, bool root) {
  const float v = (float)clipped * factor;
  return root ? hs_sqrtf(v) : v;
}

/* Returns the 8-bit entry: halves are rounded up, for RULE_OPENCV to even. */
HS_INLINE int32_t describe_byte(float value, author_rule rule) {
  const float scaled = 512.0f * value;
  const int32_t b = rule == RULE_OPENCV ? hs_round_half_even(scaled) : (int32_t)(scaled + 0.5f);
  return b < 255 ? b : 255;
}

/* Returns the position of bin i in VLFeat's order. The mapping is its own inverse. */
HS_INLINE int32_t describe_vlfeat_index(int32_t i) {
  const int32_t bins = DESCRIBE_BINS - 1;
  return (i & ~bins) | ((DESCRIBE_BINS - (i & bins)) & bins);
}

#endif
