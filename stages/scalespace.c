/* The sigma schedule and filter taps, in double on the host with the project's own functions. */
#include "stages/scalespace.h"

#include <math.h>

#include "stages/table_math.h"

double scalespace_level_sigma(double sigma0, int32_t scales, int32_t level) {
  return sigma0 * table_exp2((double)level / (double)scales);
}

double scalespace_step_sigma(double sigma0, int32_t scales, int32_t level) {
  const double k = table_exp2(1.0 / (double)scales);
  return scalespace_level_sigma(sigma0, scales, level - 1) * sqrt(k * k - 1.0);
}

double scalespace_base_sigma(double sigma0, double input_blur, int32_t first_octave) {
  const double blur = first_octave < 0 ? 2.0 * input_blur : input_blur / (double)(1 << first_octave);
  const double variance = sigma0 * sigma0 - blur * blur;
  return sqrt(variance > 0.01 ? variance : 0.01);
}

/* ceil and floor of small non-negative doubles without the C library. */
static int32_t ceil_int(double v) {
  const int32_t i = (int32_t)v;
  return (double)i < v ? i + 1 : i;
}

static int32_t filter_radius(double sigma, author_rule rule) {
  int32_t radius;
  if (rule == RULE_OPENCV) {
    /* cvRound(8 sigma + 1) | 1 taps; cvRound rounds halves to even */
    const double taps = 8.0 * sigma + 1.0;
    int32_t n = (int32_t)(taps + 0.5);
    if ((double)n - taps == 0.5 && (n & 1)) n--;
    radius = (n | 1) / 2;
  } else {
    radius = ceil_int(4.0 * sigma);
    if (rule == RULE_VLFEAT && radius < 1) radius = 1;
  }
  return radius < FILTER_RADIUS_MAX ? radius : FILTER_RADIUS_MAX;
}

void scalespace_filter(double sigma, author_rule radius_rule, gaussian_filter *filter) {
  double taps[FILTER_RADIUS_MAX + 1];
  filter->radius = filter_radius(sigma, radius_rule);
  double sum = 0.0;
  /* smallest first, so that the sum is as good as it gets */
  for (int32_t j = filter->radius; j >= 0; j--) {
    taps[j] = table_exp(-((double)j * (double)j) / (2.0 * sigma * sigma));
    sum += j == 0 ? taps[j] : 2.0 * taps[j];
  }
  for (int32_t j = 0; j <= FILTER_RADIUS_MAX; j++)
    filter->taps[j] = j <= filter->radius ? (float)(taps[j] / sum) : 0.0f;
}
