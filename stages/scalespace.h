/*
 * The scale space's numbers: how much blur each level step adds, and the filter that adds it.
 * Lowe, IJCV 2004, section 3; Rey-Otero & Delbracio, IPOL 2014, section 2.
 */
#ifndef HARTSIFT_STAGES_SCALESPACE_H
#define HARTSIFT_STAGES_SCALESPACE_H

#include "stages/base.h"

/* Largest filter radius any option gives: sigma0 = 4, S = 1 blurs level S+2 by 4 * 2^2 * sqrt(3) = 27.7 samples. */
enum { FILTER_RADIUS_MAX = 128 };

/* A symmetric filter: taps[0] weighs the centre, taps[j] both samples j away; taps[0] + 2 sum taps[j] = 1 in double. */
typedef struct gaussian_filter {
  int32_t radius;
  float taps[FILTER_RADIUS_MAX + 1];
} gaussian_filter;

/* The blur of level s of an octave, in its samples: sigma0 * k^s, k = 2^(1/S). */
double scalespace_level_sigma(double sigma0, int32_t scales, int32_t level);

/* The blur that turns level s-1 into level s (s >= 1): sigma0 * k^(s-1) * sqrt(k^2 - 1). */
double scalespace_step_sigma(double sigma0, int32_t scales, int32_t level);

/* The blur of the first octave's base: sqrt(sigma0^2 - blur^2), blur = input_blur * 2^-first_octave; at least 0.1, as
   OpenCV, so that an image assumed as blurred as level 0 still passes through a filter. */
double scalespace_base_sigma(double sigma0, double input_blur, int32_t first_octave);

/* Samples exp(-j^2 / (2 sigma^2)) out to the rule's radius, scaled to sum 1, rounded to float once. */
void scalespace_filter(double sigma, author_rule radius_rule, gaussian_filter *filter);

/* Outside samples, by repeated reflection that does not repeat the edge sample (reflect-101), or the edge repeated. */
typedef enum border_mode { BORDER_REFLECT_101 = 0, BORDER_REPLICATE = 1 } border_mode;

#endif
