/*
 * The resolved parameters of the method, and lists of keypoints and features. Thresholds have the form in which stages
 * compare them, and each rule is one number.
 *
 * Filled once from the options (pipeline/context/options.c) and passed by value. All comparisons are strict (>
 * threshold). A rule that includes its threshold gets the next smaller float here, so no backend needs a branch.
 */
#ifndef HARTSIFT_STAGES_KEYPOINT_H
#define HARTSIFT_STAGES_KEYPOINT_H

#include "stages/base.h"
#include "stages/portable.h"

/* Window sizes whose descriptors are pooled, as multiples of the keypoint's size; see describe.h. */
enum { DOMAIN_SIZES_MAX = 16 };
typedef struct domain_sizes {
  int32_t count; /* 0: no pooling, only the keypoint's size */
  float size[DOMAIN_SIZES_MAX];
  int32_t levels[DOMAIN_SIZES_MAX]; /* level offset with the same blur relative to the window: round(S log2 size) */
} domain_sizes;

typedef struct sift_params {
  int32_t scales;        /* S */
  float sigma0;          /* blur of level 0, samples of its octave */
  float grid_shift;      /* the first sample is at (-grid_shift, -grid_shift), original pixels */
  int32_t border;        /* width of the margin of a level without candidates, samples */
  float candidate_above; /* a candidate's |D| is greater than this */
  bool extremum_ties;    /* a candidate may equal neighbours (OpenCV) */
  author_rule refine_rule;
  float settle;         /* maximum |offset| of a settled sample; RULE_OPENCV: the offset is strictly smaller */
  float contrast_above; /* the refined |D| is greater than this */
  float edge;           /* r: a keypoint has tr^2 r < (r+1)^2 det */
  author_rule orientation_rule;
  int32_t max_orientations; /* maximum features of a keypoint; 0: every peak */
  bool upright;
  author_rule descriptor_rule;
  bool root;             /* RootSIFT */
  bool vlfeat_layout;    /* order of the bins in a cell: 0 7 6 5 4 3 2 1 */
  bool descriptor_float; /* descriptors are float, otherwise u8 */
  domain_sizes domain;
} sift_params;

/* Lists of keypoints and features: structures of arrays with a count and a capacity.
 *
 * A stage that appends continues to count past the capacity without writing, so the count at the end of a frame gives
 * the required capacity. A result therefore never depends on a capacity. */

/* Convert between original pixels and samples of an octave. Sample 0 is at -shift (sift_params.grid_shift);
 * neighbouring samples are 2^octave pixels apart. Each conversion rounds at most once, because products by a power of
 * two are exact. */
HS_INLINE float position_of_sample(float sample, int32_t octave, float shift) {
  return sample * hs_power_of_two(octave) - shift;
}

HS_INLINE float sample_of_position(float position, int32_t octave, float shift) {
  return (position + shift) * hs_power_of_two(-octave);
}

/* Keypoints in the order octave, level, row, column of the settled sample. */
typedef struct keypoint_list {
  uint32_t *count;
  uint32_t capacity;
  float *x, *y;          /* original pixels */
  float *sigma;          /* original pixels */
  float *response;       /* |D| at the refined extremum */
  int32_t *column, *row; /* settled sample, in samples of the octave */
  int16_t *octave, *level;
} keypoint_list;

/* A keypoint in samples of its octave. */
typedef struct octave_keypoint {
  float x, y, sigma;
} octave_keypoint;

HS_INLINE octave_keypoint keypoint_in_octave(const keypoint_list *k, uint32_t n, float shift) {
  const int32_t octave = k->octave[n];
  octave_keypoint at;
  at.x = sample_of_position(k->x[n], octave, shift);
  at.y = sample_of_position(k->y[n], octave, shift);
  at.sigma = k->sigma[n] * hs_power_of_two(-octave);
  return at;
}

/* Features: a keypoint and one of its orientations, in the order of keypoints, then of angles. */
typedef struct feature_list {
  uint32_t *count;
  uint32_t capacity;
  uint32_t *keypoint; /* index into the keypoint list */
  float *orientation; /* radians in [0, 2 pi) */
} feature_list;

#endif
