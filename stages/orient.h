/*
 * Orientation: the dominant gradient directions about a keypoint. Lowe, IJCV 2004, section 5.
 *
 * Gradient directions in a Gaussian window of 1.5 sigma form a histogram of 36 bins. Every local maximum of at least
 * 0.8 of the largest gives a feature. Its angle is the vertex of the parabola through three bins. Gradients come from
 * the Gaussian level of the settled sample.
 *
 * To change the window, change ORIENT_WINDOW_SIGMA or ORIENT_WINDOW_HALVES. Windows of all backends, the bits of votes
 * (fixed_point.c), the sides of affine patches (affine.h) and the halo of tiles (tile_plan.c) are computed from them;
 * a size that a kernel cannot hold does not compile. By hand:
 *   1. numbers in text: the proof in fixed_point.c; Orientation, Affine shape, Fixed point in METHOD.md, section 3;
 *   2. numbers in tests: test_bits in tests/unit/test_fixed_point.c;
 *   3. the bytes change: HS_METHOD_VERSION and digests (CONTRIBUTING.md, "How bytes are kept").
 * The descriptor's window is DESCRIBE_* in describe.h, with the same consequences.
 */
#ifndef HARTSIFT_STAGES_ORIENT_H
#define HARTSIFT_STAGES_ORIENT_H

#include "stages/elementary.h"
#include "stages/fixed_point.h"
#include "stages/image.h"
#include "stages/keypoint.h"

enum {
  ORIENT_BINS = 36,
  ORIENT_PEAKS_MAX = ORIENT_BINS / 2, /* two neighbours cannot both be local maxima */
  ORIENT_WINDOW_HALVES = 9            /* the window's radius in halves of the keypoint's sigma, as integer constants */
};
#define ORIENT_WINDOW_SIGMA  1.5f /* sigma of the Gaussian window, in the keypoint's sigma (Lowe, section 5) */
#define ORIENT_WINDOW_RADIUS (0.5f * ORIENT_WINDOW_HALVES) /* 4.5 sigma, which is 3 standard deviations */
#define TWO_PI_FLOAT         6.2831855f
#define TURNS_A_RADIAN       0.15915494f
#define LOG2_E_FLOAT         1.442695041f

/* Input: keypoints from first_keypoint on. Output: features, appended in the order of keypoints, then of angles.
 * octaves: indexed by octave - first_octave; the octaves of these keypoints must hold their levels. */
typedef struct orient_args {
  const octave_view *octaves;
  int32_t first_octave;
  uint32_t first_keypoint;
  keypoint_list keypoints;
  feature_list features;
  sift_params params;
  const vote_scales *scales;
} orient_args;

/* Window of one keypoint, in samples of its octave. */
typedef struct orient_window {
  float x, y;     /* keypoint's position, from which distances are measured */
  int32_t cx, cy; /* the sample at the window's centre */
  int32_t radius; /* the window's side is 2 radius + 1 samples */
  float limit;    /* samples vote if their squared distance is below this */
  float falloff;  /* weight = exp2(-distance^2 * falloff) */
  int32_t margin; /* samples in a margin of this width at the level's edge do not vote: 1, for VLFeat 0 */
} orient_window;

/* Returns the radius of the window for a sigma in samples of the octave. */
HS_INLINE int32_t orient_radius(float sigma, author_rule rule) {
  const float r = ORIENT_WINDOW_RADIUS * sigma;
  if (rule == RULE_VLFEAT) {
    const int32_t w = hs_floor_int(r);
    return w > 1 ? w : 1;
  }
  return hs_floor_int(r + 0.5f);
}

/* Returns the window of a keypoint. x, y, sigma: in samples of the octave; column, row: the settled sample. */
HS_INLINE orient_window orient_window_of(float x, float y, float sigma, int32_t column, int32_t row, author_rule rule) {
  orient_window w;
  const float a = ORIENT_WINDOW_SIGMA * sigma;
  const float radius = ORIENT_WINDOW_RADIUS * sigma;
  w.radius = orient_radius(sigma, rule);
  w.falloff = (0.5f * LOG2_E_FLOAT) / (a * a);
  w.margin = rule == RULE_VLFEAT ? 0 : 1;
  if (rule == RULE_OPENCV) {
    w.cx = column;
    w.cy = row;
    w.x = (float)column;
    w.y = (float)row;
    w.limit = 3.0e38f;
    return w;
  }
  w.cx = hs_floor_int(x + 0.5f);
  w.cy = hs_floor_int(y + 0.5f);
  w.x = x;
  w.y = y;
  w.limit = rule == RULE_VLFEAT ? (float)w.radius * (float)w.radius + 0.6f : radius * radius;
  return w;
}

/* Returns the weight for the distance in one coordinate. A sample's weight is the product of those for x and y. */
HS_INLINE float window_weight(float distance, float falloff) { return hs_exp2(-((distance * distance) * falloff)); }

/* Computes the gradient: half the central difference. At the edge of the level, which only VLFeat's windows include, it
 * is the one-sided difference. */
HS_INLINE void gradient_at(const plane_view *level, int32_t x, int32_t y, float *gx, float *gy) {
  const float *p = level->data + (size_t)y * level->stride + (size_t)x;
  *gx = 0.5f * (p[1] - p[-1]);
  *gy = 0.5f * (p[level->stride] - *(p - level->stride));
}

HS_INLINE void gradient_at_edge(const plane_view *level, int32_t x, int32_t y, float *gx, float *gy) {
  const float *p = level->data + (size_t)y * level->stride + (size_t)x;
  const int32_t w = level->width, h = level->height;
  if (w == 1)
    *gx = 0.0f;
  else if (x == 0)
    *gx = p[1] - p[0];
  else if (x == w - 1)
    *gx = p[0] - p[-1];
  else
    *gx = 0.5f * (p[1] - p[-1]);
  if (h == 1)
    *gy = 0.0f;
  else if (y == 0)
    *gy = p[level->stride] - p[0];
  else if (y == h - 1)
    *gy = p[0] - *(p - level->stride);
  else
    *gy = 0.5f * (p[level->stride] - *(p - level->stride));
}

HS_INLINE int32_t orient_wrap_bin(int32_t bin) {
  return bin < 0 ? bin + ORIENT_BINS : (bin >= ORIENT_BINS ? bin - ORIENT_BINS : bin);
}

/* Votes of one sample: v0 is added to bin0, v1 to bin1. weight = w(dx) w(dy) 2^q. */
typedef struct orient_vote {
  int32_t bin0, bin1;
  int32_t v0, v1;
} orient_vote;

HS_INLINE orient_vote orient_vote_of(float gx, float gy, float weight, author_rule rule) {
  orient_vote vote;
  float magnitude, position; /* position in bins, -18 to 18; the sign is the sense of rotation */
  hs_polar(gx, gy, (float)ORIENT_BINS, &magnitude, &position);
  const float v = magnitude * weight;
  if (rule == RULE_OPENCV) { /* votes for the nearest bin; bin i is centred at i */
    vote.bin0 = orient_wrap_bin(hs_round_half_even(position));
    vote.bin1 = vote.bin0;
    vote.v0 = hs_round_half_even(v);
    vote.v1 = 0;
    return vote;
  }
  /* bin i is centred at i + 0.5: the vote is split linearly between the two nearest bins, and the parts add up to
   * exactly the rounded v */
  const float shifted = position - 0.5f;
  const int32_t b = hs_floor_int(shifted);
  vote.bin0 = orient_wrap_bin(b);
  vote.bin1 = orient_wrap_bin(b + 1);
  vote.v1 = hs_rounded_product(v, shifted - (float)b);
  vote.v0 = hs_round_half_even(v) - vote.v1;
  return vote;
}

/* Returns one bin of the smoothed histogram, exact in integers. OpenCV: 16 times the filter [1 4 6 4 1] / 16. VLFeat
 * and Lowe's demo: six circular convolutions with [1 1 1], that is one with (1 + x + x^2)^6, whose coefficients sum
 * to 729. */
HS_INLINE int64_t orient_smooth_bin(const int32_t *histogram, int32_t bin, author_rule rule) {
  if (rule == RULE_OPENCV) {
    const int64_t h0 = histogram[bin];
    const int64_t h1 = (int64_t)histogram[orient_wrap_bin(bin - 1)] + histogram[orient_wrap_bin(bin + 1)];
    const int64_t h2 = (int64_t)histogram[orient_wrap_bin(bin - 2)] + histogram[orient_wrap_bin(bin + 2)];
    return 6 * h0 + 4 * h1 + h2;
  }
  int64_t sum = 141 * (int64_t)histogram[bin];
  sum += 126 * ((int64_t)histogram[orient_wrap_bin(bin - 1)] + histogram[orient_wrap_bin(bin + 1)]);
  sum += 90 * ((int64_t)histogram[orient_wrap_bin(bin - 2)] + histogram[orient_wrap_bin(bin + 2)]);
  sum += 50 * ((int64_t)histogram[orient_wrap_bin(bin - 3)] + histogram[orient_wrap_bin(bin + 3)]);
  sum += 21 * ((int64_t)histogram[orient_wrap_bin(bin - 4)] + histogram[orient_wrap_bin(bin + 4)]);
  sum += 6 * ((int64_t)histogram[orient_wrap_bin(bin - 5)] + histogram[orient_wrap_bin(bin + 5)]);
  sum += (int64_t)histogram[orient_wrap_bin(bin - 6)] + histogram[orient_wrap_bin(bin + 6)];
  return sum;
}

/* Whether a bin is a peak: above both neighbours, and at least 0.8 of the largest bin (VLFeat: above 0.8). The test
 * compares 5 h with 4 max. */
HS_INLINE bool orient_is_peak(int64_t left, int64_t centre, int64_t right, int64_t largest, author_rule rule) {
  if (!(centre > left && centre > right)) return false;
  return rule == RULE_VLFEAT ? 5 * centre > 4 * largest : 5 * centre >= 4 * largest;
}

/* Returns the angle of a peak in radians in [0, 2 pi): the vertex of the parabola through three bins. */
HS_INLINE float orient_peak_angle(int32_t bin, int64_t left, int64_t centre, int64_t right, author_rule rule) {
  const float offset = (0.5f * (float)(left - right)) / (float)((left + right) - 2 * centre);
  const float centre_of_bin = rule == RULE_OPENCV ? 0.0f : 0.5f;
  const float turn = hs_wrap_turn((((float)bin + centre_of_bin) + offset) * (1.0f / (float)ORIENT_BINS));
  return turn * TWO_PI_FLOAT;
}

#endif
