/*
 * hartsift_expert.h - options that replace single rules of a profile or implementations of stages. For experiments and
 * measurements only, because the rules of a profile are tuned to each other. Not included by hartsift.h.
 *
 *     hs_expert_options expert;  hs_expert_options_init(&expert, HS_PROFILE_LOWE);
 *     expert.descriptor_rule = HS_RULE_OPENCV;
 *     options.expert = &expert;
 */
#ifndef HARTSIFT_EXPERT_H
#define HARTSIFT_EXPERT_H

#include "hartsift_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Author of a rule. A profile may combine rules of several authors. */
typedef enum hs_rule {
  HS_RULE_LOWE = 0,   /* the paper's */
  HS_RULE_OPENCV = 1, /* OpenCV's */
  HS_RULE_VLFEAT = 2  /* VLFeat's */
} hs_rule;
/* Values of samples outside a level. */
typedef enum hs_border_rule {
  HS_BORDER_REFLECT_101 = 0, /* mirrored at the outermost sample, which is not repeated */
  HS_BORDER_REPLICATE = 1    /* the outermost sample */
} hs_border_rule;

/* Defaults are the lowe profile's; stages/METHOD.md has every rule's formulas and the rules of each profile. */
typedef struct hs_expert_options {
  size_t struct_size; /* sizeof(hs_expert_options), set by hs_expert_options_init; fields are only appended */

  /* Scale space */
  hs_rule octave_rule; /* number of octaves; HS_RULE_LOWE: while the smaller side has at least 2*border + 1 samples */
  hs_rule blur_radius_rule;   /* radius of a Gaussian filter; HS_RULE_LOWE: ceil(4 sigma) */
  hs_border_rule border_rule; /* samples outside a level while filtering; default HS_BORDER_REFLECT_101 */

  /* Keypoints */
  hs_rule candidate_rule; /* rule of the first, cheaper threshold on |D|; HS_RULE_LOWE: > 0.5 contrast/S */
  /* rule of refinement: how a Newton step moves, when a candidate has settled, what happens to unsettled candidates,
     and whether a second fit follows (HS_RULE_LOWE only). See METHOD.md, section 4, from "settled" to "singular
     system" */
  hs_rule refine_rule;

  /* Orientation and descriptor */
  hs_rule orientation_rule; /* rule of the 36-bin histogram: window, votes, smoothing and comparison; default
                               HS_RULE_LOWE */
  hs_rule
      /* HS_RULE_OPENCV: centred on the rounded position, float descriptors scaled by 512. HS_RULE_LOWE and
         HS_RULE_VLFEAT, which are equal here: centred on the exact position, unit norm */
      descriptor_rule;

  /* Implementations: no byte of the features depends on them */
  /* "stage=name,...": implementations of stages, with the names in hs_backend_report for the device in use; null: the
     fastest */
  const char *variant;
} hs_expert_options;

/* Fills *options with a profile's rules and no variant. Statuses: HS_ERR_ARGUMENT (null, unknown profile). */
#define hs_expert_options_init(options, profile)                                                                       \
  hs_expert_options_init_sized((options), sizeof(hs_expert_options), (profile))
HS_API hs_status hs_expert_options_init_sized(hs_expert_options *options, size_t struct_size, hs_profile profile);

#ifdef __cplusplus
}
#endif
#endif
