/*
 * The method's parameters, resolved: thresholds as the stages compare them, one number for each rule.
 *
 * Filled once from the options (pipeline/context/options.c) and passed by value. Comparisons are all strict (> threshold):
 * a rule that includes its threshold gets the next smaller float here, so no backend branches on it.
 */
#ifndef HARTSIFT_STAGES_PARAMS_H
#define HARTSIFT_STAGES_PARAMS_H

#include "stages/base.h"

/* Sizes of window whose descriptors are pooled, in the keypoint's own; describe.h. */
enum { DOMAIN_SIZES_MAX = 16 };
typedef struct domain_sizes {
  int32_t count; /* 0: the keypoint's own alone, and nothing is pooled */
  float size[DOMAIN_SIZES_MAX];
  int32_t levels[DOMAIN_SIZES_MAX]; /* from the keypoint's level to the one whose blur fits: round(S log2 size) */
} domain_sizes;

typedef struct sift_params {
  int32_t scales;        /* S */
  float sigma0;          /* blur of level 0, samples of its octave */
  float grid_shift;      /* the first sample lies at (-grid_shift, -grid_shift), original pixels */
  int32_t border;        /* samples at each side that cannot be candidates */
  float candidate_above; /* a candidate's |D| is greater than this */
  bool extremum_ties;    /* a candidate may equal neighbours (OpenCV) */
  author_rule refine_rule;
  float settle;         /* largest |offset| of a settled sample; RULE_OPENCV: strictly below it */
  float contrast_above; /* the refined |D| is greater than this */
  float edge;           /* r: tr^2 r < (r+1)^2 det */
  author_rule orientation_rule;
  int32_t max_orientations; /* 0: every peak */
  bool upright;
  author_rule descriptor_rule;
  bool root;             /* RootSIFT */
  bool vlfeat_layout;    /* bins 0 7 6 5 4 3 2 1 in each cell */
  bool descriptor_float; /* float rather than u8 */
  domain_sizes domain;
} sift_params;

#endif
